/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * fake_api.h - the library's calls as the command line sees them, played by the test.
 *
 * resoluto_sandbox_run() records what it was asked, plays the script, and returns what the test
 * wants.
 */

#include <stdbool.h>
#include <stddef.h>

#include "resoluto/sandbox.h"

enum { FAKE_WORDS = 16 };

struct fake_api {
	/* script */
	int run_code;
	const char *run_text;          /* of err when run_code is negative */
	struct resoluto_result result; /* its strings are literals */
	const char *out, *errors;      /* streamed, if there is a stream */
	const char *json;
	int image_code; /* of every image call */
	/* record */
	unsigned runs;
	struct resoluto_run_options options; /* lists and strings are only valid while it runs */
	char argv[FAKE_WORDS][32];
	size_t argc;
	int stream_code; /* the first negative one */
	char image_words[2][64];
	enum resoluto_pull pull;
};

extern struct fake_api fake_api;
