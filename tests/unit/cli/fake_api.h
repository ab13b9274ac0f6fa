/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * fake_api.h - the library's calls as the command line sees them, played by the test.
 *
 * resoluto_sandbox_run() records what it was asked, plays the script, and returns what the test
 * wants.  There is one run, "run-1", for those who attach.
 */

#include <stdbool.h>
#include <stddef.h>

#include "resoluto/sandbox.h"
#include "runtime/microvm/host.h"

enum { FAKE_WORDS = 16 };

struct fake_api {
	/* script */
	int run_code;
	const char *run_text;          /* of err when run_code is negative */
	struct resoluto_result result; /* its strings are literals */
	const char *out, *errors;      /* streamed, if there is a stream */
	const char *json;
	int image_code; /* of every image call */
	int part_code; /* of launch, drive (1: it goes on), collect, signal, destroy, list, sweep */
	bool never_starts; /* launch: only a result */
	bool is_refused;   /* run and launch: a result although their code is negative */
	enum resoluto_run_state state;
	bool plays_piece; /* drive: one piece of output, "a\n" of stderr, number 5, to on_event */
	struct host_kvm kvm;
	/* record */
	unsigned runs;
	struct resoluto_run_options options; /* lists and strings are only valid while it runs */
	char argv[FAKE_WORDS][32];
	size_t argc;
	int stream_code; /* the first negative one */
	char image_words[2][64];
	enum resoluto_pull pull;
	char attached[64], directory[64];
	struct resoluto_follow_options follow;
	struct resoluto_sweep_options sweep;
	char label[64]; /* the first of a list or sweep */
	int signo;
	unsigned opened, launched, destroyed;
};

extern struct fake_api fake_api;
