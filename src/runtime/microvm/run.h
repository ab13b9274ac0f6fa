/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * run.h - one launched microVM as its caller sees it: the shim, the socket to it, the run
 * directory.  Private to the microVM runtime.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/proc.h"
#include "resoluto/runtime.h"
#include "runtime/microvm/cmdline.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"
#include "runtime/microvm/state.h"

enum { KERNEL_NAME_MAX = 256 }; /* bytes, the 0 included */

/* A run directory that is ours. */
struct claim {
	struct claim *next;
	char id[RESOLUTO_ID_MAX + 1];
	struct rundir dir;
	bool is_callers; /* by microvm_claim(): destroy leaves it */
	bool is_in_use;  /* a run lives in it */
};

struct run {
	struct run *next;
	struct claim *claim; /* borrowed from the runtime's list */
	struct slot slot;
	struct proc shim;
	int socket;    /* owned: frames to and from the shim */
	int prefix_fd; /* owned: the conduit's directory of this run */
	struct buf in, out;
	uint64_t credit; /* bytes of stdin the shim takes */
	uint64_t news;   /* hints that came */
	uint64_t told;   /* hints for which wait() has returned */
	bool stdin_is_closed;
	bool has_ended;               /* the shim has closed its end */
	bool end_was_told;            /* wait() has returned for that */
	char kernel[KERNEL_NAME_MAX]; /* version, else the name of its file */
};

struct microvm {
	struct resoluto_runtime base; /* first */
	struct config *config;
	char *state_dir, *qemu, *kernel, *initrd, *accel, *shim; /* owned; NULL: not configured */
	const struct machine_row *row;
	struct run *runs;
	struct claim *claims;
};

/* launch.c */
int microvm_launch(struct resoluto_runtime *runtime, const struct resoluto_launch_spec *spec,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err);
struct claim *microvm_find_claim(struct microvm *microvm, const char *id);
int microvm_add_claim(struct microvm *microvm, const char *id, struct claim **ret_claim,
                      struct resoluto_err *err);
/* Remove the directory and forget the claim. */
int microvm_drop_claim(struct microvm *microvm, struct claim *claim, struct resoluto_err *err);

/* run.c: talking to the shim */
void run_init(struct run *run, struct claim *claim);
/* Take in what the shim sent, without waiting. */
int run_receive(struct run *run);
/* Send what waits, without waiting. */
int run_flush(struct run *run);
int run_send(struct run *run, uint8_t type, const void *payload, size_t len);
/* Until hints beyond `news` have come or the shim is gone; -ETIMEDOUT. */
int run_wait_news(struct run *run, uint64_t news, int timeout_ms);
/* What state.json says; a shim that died without a last word is told as shim-killed. */
int run_read_state(struct run *run, struct run_state *ret_state, struct resoluto_err *err);
/* The end of the VM: asked for, then forced.  Everything but the claim is released. */
void run_end(struct run *run);
