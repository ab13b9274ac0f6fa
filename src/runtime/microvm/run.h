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
#include "runtime/microvm/kernel.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"
#include "runtime/microvm/state.h"

enum { ACCEL_NAME_MAX = 16 }; /* bytes, the 0 included */

/* A run directory that is ours. */
struct claim {
	struct claim *next;
	char id[RESOLUTO_ID_MAX + 1];
	struct rundir dir;
	bool is_callers; /* by microvm_claim() or microvm_open(): destroy leaves it */
	bool is_in_use;  /* a run lives in it */
	bool is_foreign; /* another process's: closing it removes nothing */
};

struct run {
	struct run *next;
	struct claim *claim; /* borrowed from the runtime's list */
	struct slot slot;
	struct proc shim;
	struct proc gateway; /* none without egress */
	int socket;          /* owned: frames to and from the shim */
	int prefix_fd;       /* owned: the conduit's directory of this run */
	struct buf in, out;
	uint64_t credit; /* bytes of stdin the shim takes */
	uint64_t news;   /* hints that came */
	uint64_t told;   /* hints for which wait() has returned */
	bool stdin_is_closed;
	bool has_ended;               /* the shim has closed its end, or is gone */
	bool end_was_told;            /* wait() has returned for that */
	char kernel[KERNEL_NAME_MAX]; /* kernel_describe() */
	char accel[ACCEL_NAME_MAX];

	/* Launched by another process: no socket, no slot, no lock; requests go through the door, news
	 * comes from inotify, and the shim is seen by its pidfd alone. */
	bool is_attached;
	int inotify_fd; /* owned; -1: this host gives no more of them, so everything is looked at often */
	bool watches_objects;
	struct run_record_doc record; /* root NULL: none is there yet */
	bool has_odd_record; /* it is there, but not as we write it: perhaps somebody wants the run */
};

struct microvm {
	struct resoluto_runtime base; /* first */
	struct config *config;
	char *state_dir, *qemu, *kernel, *initrd, *accel, *shim; /* owned; NULL: not configured */
	const struct machine_row *row; /* NULL: opened for runs that are there, launches none */
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
/* Release everything but the claim; the VM goes on. */
void run_leave(struct run *run);
/* Sleep until something came of this run or extra_fd is readable: *ret_extra. */
int run_poll(struct run *run, int extra_fd, int timeout_ms, bool *ret_extra);
/* What state.json itself says; -ENOENT, -EBADMSG. */
int run_read_state_file(int dirfd, struct run_state *ret_state, struct resoluto_err *err);

/* ops.c */
void microvm_forget_claim(struct microvm *microvm, struct claim *claim);

/* attach.c: runs that another process launched */
int microvm_attach(struct resoluto_runtime *runtime, const char *id,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err);
int microvm_detach(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                   struct resoluto_err *err);
int microvm_list(struct resoluto_runtime *runtime, const char *const *labels,
                 resoluto_sandbox_fn *each, void *ctx, struct resoluto_err *err);
int microvm_add_foreign_claim(struct microvm *microvm, const char *id, struct claim **ret_claim,
                              struct resoluto_err *err);
/* Whether its shim is still there. */
void attached_look(struct run *run);
int attached_poll(struct run *run, int extra_fd, int timeout_ms, bool *ret_extra);
/* The end of a run whose shim left no last word; written down, if nobody alive might still do it. */
void attached_conclude(struct run *run, struct run_state *state);
/* Whether this host was started anew since the launch. */
bool attached_has_restarted(const struct run *run);
/* Whether this end is not the last word: who holds the lock of a run that did not boot boots it once more. */
bool attached_may_go_on(const struct run *run, const struct run_state *state);
/* -EBUSY: nobody but its launcher can, and that one is alive. */
int attached_end(struct run *run, struct resoluto_err *err);
