/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * runtime.h - the isolation and placement seam: what launches, watches and destroys sandboxes
 * (seed 003, SandboxRuntime).
 *
 * A runtime is an operation table and an instance.  "microvm" is the local one: a QEMU microVM,
 * no root, no daemon, no network card.  "fake" counts calls and plays back a script: the model
 * for tests.  tests/contract/runtime.c holds both to the promises below.
 *
 * Failures   negative errno values; a caller can act on
 *              -EINVAL  the spec is wrong: a mistake of the caller
 *              -EEXIST  a sandbox with this id is there already
 *              -EBUSY   no room now, later perhaps
 *              -ENOENT  destroy, logs: no such sandbox
 * Ownership  everything in a spec is borrowed for the length of the call.
 * Threads    one runtime, one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/conduit.h"
#include "resoluto/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESOLUTO_ID_MAX = 40,          /* bytes of a run id */
	RESOLUTO_REASON_MAX = 256,     /* bytes of a reason, the 0 included */
	RESOLUTO_DETAIL_MAX = 512,     /* bytes of a detail, the 0 included */
	RESOLUTO_LOG_TAIL_LINES = 200, /* the seeds' default for logs() */
};

#define RESOLUTO_DEFAULT_MEMORY_BYTES (4ull << 30) /* seeds: Resources memory="4Gi" */
#define RESOLUTO_DEFAULT_CPU_MILLI 2000u           /* seeds: cpu="2" */

/* What a sandbox may use (seed 003, Resources).  0 = the default. */
struct resoluto_resources {
	uint64_t memory_bytes; /* RAM of the guest */
	uint32_t cpu_milli;    /* thousandths of a CPU; a microVM rounds up to whole ones */
	uint64_t disk_bytes;   /* scratch disk; 0 = files of the guest live in its memory */
};

/* How much a run may store and bring back (docs/design/quotas.md).  0 = the default. */
struct resoluto_quotas {
	uint64_t bytes;         /* that all its objects cost, names and whole blocks counted */
	uint64_t objects;       /* begun, whether they came whole or not */
	uint64_t archive_bytes; /* of an archive as it is sent, and that its files cost */
	uint64_t members;       /* of an archive */
	uint64_t ratio;         /* unpacked to packed bytes, looked at beyond 64 MiB */
};

#define RESOLUTO_QUOTA_BYTES (64ull << 30)
#define RESOLUTO_QUOTA_OBJECTS 900000ull
#define RESOLUTO_QUOTA_ARCHIVE_BYTES (64ull << 30)
#define RESOLUTO_QUOTA_MEMBERS 1000000ull
#define RESOLUTO_QUOTA_RATIO 500ull

/* One sandbox to launch (seed 003, SandboxLaunchSpec). */
struct resoluto_launch_spec {
	/* sizeof(struct resoluto_launch_spec).  What an older, smaller one lacks is 0; a newer one is refused if it uses
	 * what this version does not know. */
	size_t struct_size;
	const char *id;    /* [a-z0-9][a-z0-9-]{0,39}; unique per runtime */
	const char *image; /* what the runtime boots: for microvm the path of a squashfs */
	/* NULL-terminated KEY=VALUE: the RESOLUTO_* contract (docs/environment.md) that configures
	 * the runner, and the program's own variables. */
	const char *const *env;
	const char *const *labels; /* KEY=VALUE: resoluto.run_id, resoluto.node_id ... */
	struct resoluto_resources resources;
	/* Where inputs lie and outputs go; a microVM needs a localfs one. */
	struct resoluto_conduit *conduit;
	/* "run/<id>", or with a '/' behind it: the sandbox sees nothing else of the conduit. */
	const char *store_prefix;
	uint64_t deadline_ms; /* from launch; 0 = none */
	bool has_stdin;       /* send_stdin will be used; else the program's stdin is empty */
	/* detach() is coming: the sandbox shall leave nothing in this process, not even a child. */
	bool outlives_caller;
	/* Silence after which a detached sandbox, which nobody may be watching, is ended by its runtime;
	 * 0 = none. */
	uint64_t dead_after_ms;
	/* Of what the sandbox stores: bytes, objects and archive_bytes; over one of them it is ended as
	 * `quota`.  The others count when outputs are unpacked. */
	struct resoluto_quotas quotas;
	/* What it may reach, by name (sandbox.h, egress): canonical patterns, checked.  NULL or empty, and not
	 * egress_learn: nothing at all.  A runtime that cannot do it refuses. */
	const char *const *egress_allow;
	bool egress_learn; /* nothing is reached, but what was asked for is written down */
	bool egress_wide;
	const char *egress_proxy; /* NULL: none */
	/* What it stores goes with it: the caller removes that after destroy(), unless detach() comes first.  So it need not
	 * outlive a power cut before. */
	bool drops_objects;
};

struct resoluto_handle {
	char id[RESOLUTO_ID_MAX + 1];
	void *state; /* the runtime's own */
};

enum resoluto_phase {
	RESOLUTO_PHASE_PENDING,
	RESOLUTO_PHASE_RUNNING,
	RESOLUTO_PHASE_SUCCEEDED,
	RESOLUTO_PHASE_FAILED,
	RESOLUTO_PHASE_UNKNOWN,
};

struct resoluto_status {
	enum resoluto_phase phase;
	/* "", one of the reasons of docs/result.md, or a word of the substrate. */
	char reason[RESOLUTO_REASON_MAX];
	/* What is known beyond the reason, a sentence for people; "" for nothing.  It may quote the
	 * sandbox: untrusted. */
	char detail[RESOLUTO_DETAIL_MAX];
	int exit_code; /* of the sandbox, not of the program; -1 unknown */
	double ended;  /* seconds since the epoch; 0: unknown, or not yet */
};

/* One sandbox of a listing.  Borrowed for the call. */
struct resoluto_sandbox_info {
	const char *id;
	const char *image;         /* as in its launch spec; "" unknown */
	const char *const *labels; /* KEY=VALUE, NULL-terminated; NULL: none */
	struct resoluto_status status;
	bool is_alive;  /* it runs, or somebody is about to start it */
	bool is_kept;   /* what is left of it stays until it is destroyed */
	double created; /* seconds since the epoch; 0: unknown */
};

/* Returns 0 to go on, 1 to stop early, or a negative errno value, which list then returns. */
typedef int resoluto_sandbox_fn(void *ctx, const struct resoluto_sandbox_info *info);

struct resoluto_runtime;

/* Every member is required; what a runtime cannot do returns -EOPNOTSUPP. */
struct resoluto_runtime_ops {
	const char *name;

	/* Start a sandbox; *ret_handle stays valid until destroy. */
	int (*launch)(struct resoluto_runtime *runtime, const struct resoluto_launch_spec *spec,
	              struct resoluto_handle *ret_handle, struct resoluto_err *err);
	/* What is known now, without waiting.  Gone = 0 and RESOLUTO_PHASE_UNKNOWN. */
	int (*status)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	              struct resoluto_status *ret_status, struct resoluto_err *err);
	/* Stop it by force if it runs, remove every resource of it.  Twice is fine.  -EBUSY: it has ended, or has not begun,
	 * and another handle, which launched it, still holds what there is. */
	int (*destroy)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	               struct resoluto_err *err);
	/* Destroy every sandbox that has all these labels (KEY=VALUE, NULL-terminated; none = all).
	 * Returns how many; a failure to list is a failure, never 0. */
	int (*sweep)(struct resoluto_runtime *runtime, const char *const *labels,
	             struct resoluto_err *err);
	/* The last tail_lines lines the substrate (not the program) printed: untrusted, for
	 * forensics.  *ret_text: free(). */
	int (*logs)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	            unsigned tail_lines, char **ret_text, struct resoluto_err *err);

	/* Beyond the seeds. */

	/* Sleep until something may have changed for this sandbox, extra_fd (-1: none) is readable,
	 * or timeout_ms is over.  Returns 1 if extra_fd is readable, else 0. */
	int (*wait)(struct resoluto_runtime *runtime, struct resoluto_handle *handle, int extra_fd,
	            int timeout_ms, struct resoluto_err *err);
	/* Hand over bytes of the program's standard input without waiting.  Returns how many were
	 * taken; 0 = full, wait() first; -EPIPE = the program does not read any more. */
	ssize_t (*send_stdin)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	                      const void *bytes, size_t len, struct resoluto_err *err);
	int (*close_stdin)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	                   struct resoluto_err *err);
	/* Deliver a signal to the program, not to the sandbox; one that has ended: -ESRCH or nothing. */
	int (*signal)(struct resoluto_runtime *runtime, struct resoluto_handle *handle, int signo,
	              struct resoluto_err *err);
	/* What the runtime proved about the isolation of this sandbox: a JSON object (the result's
	 * `isolation`).  *ret_json: free().  With "own_kernel": false it says that its sandboxes share a kernel, and
	 * the results of their runs say so.  Else the facade wants a boot id of the guest, here ("guest_boot_id") or in
	 * the guest's result, that is not this host's: without it the run is refused. */
	int (*isolation)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	                 char **ret_json, struct resoluto_err *err);

	/* Sandboxes that outlive their caller. */

	/* Give the handle up without ending its sandbox.  One that was launched here is let go: from now on
	 * it outlives this process, its standard input has ended, and what is left of it stays until
	 * somebody destroys it.  After a failure the handle is as it was. */
	int (*detach)(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
	              struct resoluto_err *err);
	/* A handle of a sandbox that was launched elsewhere, alive or ended: for all operations but
	 * send_stdin (-EPIPE).  close() and detach() do not end it, destroy() does.  -ENOENT: there is
	 * none of this id. */
	int (*attach)(struct resoluto_runtime *runtime, const char *id,
	              struct resoluto_handle *ret_handle, struct resoluto_err *err);
	/* Call each() once for every sandbox there is, alive or ended, that has all these labels (as in
	 * sweep).  each() may attach and destroy.  One that cannot be looked at does not keep the others; the
	 * first such failure is told at the end. */
	int (*list)(struct resoluto_runtime *runtime, const char *const *labels,
	            resoluto_sandbox_fn *each, void *ctx, struct resoluto_err *err);

	void (*close)(struct resoluto_runtime *runtime);
};

/* A runtime's own struct starts with this. */
struct resoluto_runtime {
	const struct resoluto_runtime_ops *ops;
};

struct resoluto_microvm_options {
	size_t struct_size;
	const char *state_dir; /* NULL: RESOLUTO_STATE_DIR or its default (docs/environment.md) */
	const char *qemu;      /* the rest, NULL: from the configuration, docs/environment.md */
	const char *kernel;
	const char *initrd;
	const char *accel; /* "kvm" or "tcg": what provisioning recorded; never chosen here */
	const char *shim;  /* path of resoluto-shim */
};

/**
 * The local runtime.  options may be NULL.  Release with resoluto_runtime_close().
 */
int resoluto_runtime_microvm_new(const struct resoluto_microvm_options *options,
                                 struct resoluto_runtime **ret_runtime, struct resoluto_err *err);

/* What the fake runtime does, and what it was asked.  All counters start at 0. */
struct resoluto_fake {
	size_t struct_size;
	/* Script: called at each launch with the conduit and prefix; may put objects as a guest
	 * would.  NULL: nothing is written.  A negative return fails the launch. */
	int (*guest)(void *ctx, const struct resoluto_launch_spec *spec);
	void *ctx;
	/* Phases that successive status calls report; the last one repeats.  NULL: RUNNING.  Past a spec's
	 * deadline_ms, by the real clock, a sandbox that has not ended is FAILED with the reason "deadline". */
	const struct resoluto_status *statuses;
	size_t status_count;
	/* Counters. */
	unsigned launches, status_calls, destroys, sweeps, logs_calls, waits, signals;
	unsigned attaches, detaches, lists;
	unsigned alive, alive_max;
	size_t stdin_bytes;
};

/** A runtime that starts nothing.  fake is borrowed for the life of the runtime. */
int resoluto_runtime_fake_new(struct resoluto_fake *fake, struct resoluto_runtime **ret_runtime,
                              struct resoluto_err *err);

/** Release a runtime; sandboxes that it launched and did not detach are destroyed.  NULL is allowed. */
void resoluto_runtime_close(struct resoluto_runtime *runtime);

#ifdef __cplusplus
}
#endif
