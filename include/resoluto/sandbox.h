/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * sandbox.h - run any program, assumed hostile, with a Linux kernel of its own: one call.
 *
 *	const char *const argv[] = { "python3", "-c", "print('hello')", NULL };
 *	struct resoluto_run_options options = { .struct_size = sizeof(options), .argv = argv };
 *	struct resoluto_result *result = NULL;
 *	struct resoluto_err err = { 0 };
 *
 *	if (resoluto_sandbox_run(&options, &result, &err) == 0)
 *		printf("%d %.*s\n", result->exit_code, (int) result->output_len, result->output);
 *	resoluto_result_free(result);
 *
 * stage -> run -> collect (seeds 001, 002): the workspace is packed into the conduit, the sandbox
 * is launched and its events are tailed, the result is assembled, the sandbox is reaped.
 *
 * A run that shall outlive its caller is the same in parts: resoluto_run_launch() in one process;
 * attach, drive, collect and destroy in that one or any other, as often as wanted.
 *
 * Ownership  options are borrowed for the length of the call; the result belongs to the caller.
 * Strings    UTF-8 unless said otherwise; lists are NULL-terminated and may be NULL for none.
 * NULL       where one is needed: -EINVAL.  Whatever is released, done or closed may be NULL.
 * Threads    calls share nothing: any number at once.  SIGPIPE is left alone by the library.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/conduit.h"
#include "resoluto/driver.h"
#include "resoluto/err.h"
#include "resoluto/image.h"
#include "resoluto/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESOLUTO_FACADE_DEAD_AFTER_MS = 600000, /* seeds: SubstrateBackend dead_after_s=600 */
	RESOLUTO_DRAIN_TIMEOUT_MS = 5000,       /* for output of grandchildren, at the end */
	RESOLUTO_DRAIN_TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000,
	RESOLUTO_STOP_GRACE_MS = 5000, /* from the signal to the end of the VM */
	RESOLUTO_MAX_OUTPUT = 1048576, /* bytes of output kept in a result */
};

/* Exit codes of the command line (docs/result.md); those of the program are passed on. */
enum {
	RESOLUTO_EXIT_MISUSE = 2,
	RESOLUTO_EXIT_DEADLINE = 124,
	RESOLUTO_EXIT_SANDBOX = 125,
	RESOLUTO_EXIT_NOT_EXECUTABLE = 126,
	RESOLUTO_EXIT_NOT_FOUND = 127,
	RESOLUTO_EXIT_SIGNAL = 128, /* + the signal's number */
};

struct resoluto_backend;

/* What every named backend is made of (seed 003, SubstrateBackend): inject your own parts. */
struct resoluto_backend_options {
	size_t struct_size;
	struct resoluto_runtime *runtime; /* borrowed for the life of the backend */
	struct resoluto_conduit *conduit; /* borrowed for the life of the backend */
	const char *image;                /* a reference */
	const char *const *store_env; /* RESOLUTO_STORE_*: what the guest may know of the store */
	/* For runs that ask for none.  What is 0 here, too, is 4 GiB and 2 CPUs (runtime.h), which a microvm lowers to
	 * what the host has. */
	struct resoluto_resources resources;
	uint64_t dead_after_ms; /* 0 = RESOLUTO_FACADE_DEAD_AFTER_MS */
};

/**
 * Make a backend of these parts.  A run has a result only with the proof that its sandbox has a kernel of its own
 * (runtime.h, isolation), but of a runtime that says outright that they have none.  -EINVAL: a part is missing, or
 * store_env holds something else than RESOLUTO_STORE_*.  Release with resoluto_backend_free() (NULL is allowed) after its last run.
 */
int resoluto_backend_new(const struct resoluto_backend_options *options,
                         struct resoluto_backend **ret_backend, struct resoluto_err *err);
void resoluto_backend_free(struct resoluto_backend *backend);

enum resoluto_stdin_kind {
	RESOLUTO_STDIN_NONE, /* the program reads an empty stdin */
	RESOLUTO_STDIN_BYTES,
	RESOLUTO_STDIN_FILE,
	RESOLUTO_STDIN_FD, /* read until its end, only when poll says so; borrowed, its flags are left alone */
};

struct resoluto_stdin {
	enum resoluto_stdin_kind kind;
	const void *bytes;
	size_t len;
	const char *path;
	int fd;
};

/* Output as it comes: exact bytes (but for redactions).  A negative return stops the run. */
typedef int resoluto_stream_fn(void *ctx, bool is_stderr, const char *bytes, size_t len);

/* What is going on, for people; done of total (0 = unknown). */
typedef void resoluto_progress_fn(void *ctx, const char *step, uint64_t done, uint64_t total);

/* Everything but struct_size and argv may be 0. */
struct resoluto_run_options {
	size_t struct_size;
	const char *const *argv; /* program and arguments */

	const struct resoluto_backend *backend; /* NULL: the one named by backend_name */
	const char *backend_name;               /* NULL: "local" */
	const char *image; /* NULL: RESOLUTO_SANDBOX_IMAGE, else the default base image */
	enum resoluto_pull pull;
	const char *platform, *authfile; /* as in resoluto_image_options */

	const char *workspace;      /* directory whose content becomes /workspace; NULL: nothing */
	const char *const *paths;   /* only these of it */
	const char *const *exclude; /* instead of the built-in list of names left out */
	const char *const *protect; /* names and paths that are kept despite the list */
	const char *const *output_paths; /* globs relative to the workspace; ** is recursive */
	const char *output_dir;          /* where outputs land; NULL: the workspace */

	struct resoluto_stdin input;
	/* KEY=VALUE; wins over env_file and the image.  A KEY has no blank and no control character, here and
	 * in env_file, and does not begin with RESOLUTO_ */
	const char *const *env;
	const char *env_file; /* KEY=VALUE lines; a pipe is waited for, before any deadline */
	/* In the guest; NULL: /workspace if one is staged, else the image's, else /workspace. */
	const char *workdir;
	const char *user;           /* non-root; NULL: the image's, else 1000:1000 */
	const char *const *setup;   /* argv of a hook before the program */
	const char *const *cleanup; /* argv of a hook behind it */

	struct resoluto_resources resources;
	const char *const *labels; /* KEY=VALUE */
	const char *id;            /* NULL: run- and 16 hex digits */
	uint64_t deadline_ms;      /* 0: none */
	uint64_t dead_after_ms;    /* silence window; 0: RESOLUTO_FACADE_DEAD_AFTER_MS */
	/* From the end of the program to that of its output, which processes that it left behind may
	 * hold open; then they are killed.  0: RESOLUTO_DRAIN_TIMEOUT_MS; at most
	 * RESOLUTO_DRAIN_TIMEOUT_MAX_MS */
	uint64_t drain_timeout_ms;
	size_t max_output; /* bytes kept in the result, of each stream; 0: RESOLUTO_MAX_OUTPUT */
	struct resoluto_quotas quotas; /* over one of them the run ends, with what was within it */
	bool keep_run;           /* leave what is stored of the run, for resoluto_run_attach() */
	bool redact_values_only; /* leave out the patterns of the contract */

	resoluto_stream_fn *stream;     /* NULL: only the result has the output */
	resoluto_event_fn *on_event;    /* every event; NULL: none */
	resoluto_progress_fn *progress; /* NULL: none */
	void *ctx;                      /* of the three */

	/* Each byte read from it is the number of a signal for the program.  SIGINT, SIGTERM and SIGHUP
	 * also start the grace time of RESOLUTO_STOP_GRACE_MS, after which (or at the second one)
	 * the sandbox is destroyed.  One that comes while outputs land ends that.  -1 or 0: none. */
	int signal_fd;
	/* SIGHUP is not for the program: once there is a sandbox the run is left to itself, as
	 * resoluto_run_launch() would, and resoluto_sandbox_run() returns 1. */
	bool detach_on_hangup;

	/* What the program may reach, by name: NAME[:PORT] (443), *.NAME[:PORT] for all names beneath one,
	 * http://NAME for plain HTTP (80).  NULL or empty: nothing at all, there is no network.  Addresses
	 * are refused. */
	const char *const *egress;
	const char *egress_file; /* more of them, one a line, # begins a comment */
	bool egress_wide;        /* `*` and `*.TLD` are taken too */
	bool egress_learn; /* nothing is reached, but what is asked for comes into the result */
	/* "http://[USER:PASSWORD@]HOST:PORT", through which allowed names are reached by CONNECT; it resolves
	 * them, so its own rules say which addresses.  NULL: RESOLUTO_EGRESS_PROXY, or none. */
	const char *egress_proxy;
};

/* Warnings about egress begin with this. */
#define RESOLUTO_WARNING_EGRESS "egress-"

/* The name of the warning that says why output is missing; it stands before a ':'. */
#define RESOLUTO_WARNING_OUTPUT "output-incomplete"

struct resoluto_timings {
	uint64_t queue, stage, boot, canary, setup, run, collect, total; /* ms */
};

/* spec/run-result.schema.json, and docs/result.md, say what each member means. */
struct resoluto_result {
	char *run_id;
	bool ran; /* the program was started */
	bool ok;  /* exit_code == 0 */
	int exit_code;
	int signal;   /* that ended the program; 0: none */
	char *reason; /* "" or one of the closed list */
	char *detail; /* one sentence for people; "" when ok */
	enum resoluto_disposition disposition;
	/* Of each no more than max_output is kept, its head and its tail: dropped_bytes lay between
	 * the first head_len bytes and the others.  Where none were dropped head_len is the length. */
	char *output; /* both streams in the order the program wrote them; exact bytes */
	size_t output_len, output_head_len;
	uint64_t output_dropped_bytes;
	char *out; /* stdout alone */
	size_t out_len, out_head_len;
	uint64_t out_dropped_bytes;
	char *errors; /* stderr alone */
	size_t errors_len, errors_head_len;
	uint64_t errors_dropped_bytes;
	/* All that the program wrote was read, and what was not dropped is here.  False where that is
	 * not certain: a process it left behind still had its output open when drain_timeout_ms was
	 * over, or the sandbox wrote what cannot be read (then a warning says so), or it ended before it
	 * could report. */
	bool output_is_complete;
	char **artifacts;     /* NULL-terminated, sorted, relative to the output directory */
	char *result_json;    /* result.json of the workspace, if among the artifacts; else NULL */
	char *isolation_json; /* object */
	char *canary_json;    /* array */
	char *egress_json;    /* array: decisions about connections, docs/result.md */
	char **warnings;      /* NULL-terminated sentences: what the run went well in spite of */
	char *image_ref, *image_digest;
	struct resoluto_timings timings_ms;
	uint64_t redactions;
	struct resoluto_quotas quotas; /* that held; 0: none did */
	const char *quota;    /* the name of the one that was exceeded; NULL: none.  Static */
	char *substrate_logs; /* untrusted */
	struct {
		uint64_t left_out; /* workspace entries not staged */
		char *why;         /* "" or one line: how many for which reason */
	} staging;
};

/**
 * Run a program in a sandbox and wait for its end.
 *
 * 0 whenever the run was claimed, and then *ret_result tells all, also what went wrong; 1 when it goes
 * on without us (detach_on_hangup), and then *ret_result says which one it is and what was staged;
 * negative when the options are wrong (-EINVAL: nothing was started, err says what to change) or the run could
 * not be claimed (-EEXIST: its id is taken): then *ret_result, where it is not NULL, says only that it was refused.
 * ret_result may be NULL.  Release with resoluto_result_free().
 */
int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err);

void resoluto_result_free(struct resoluto_result *result);

/** The result as JSON (spec/run-result.schema.json), one line.  free(); NULL when out of memory, or of no result. */
char *resoluto_result_to_json(const struct resoluto_result *result);

/*
 * Runs in parts (docs/design/detached.md).
 *
 * What is stored is the only truth: a run looks the same to every process, also after a crash of the
 * one that launched it and after a restart of the machine.  Any number may attach at once, and
 * each reads at its own pace: the sandbox waits for nobody.
 *
 * Failures  -ENOENT: no such run (any more); -EBUSY: it has not ended; -ESRCH: it has.
 */

struct resoluto_run; /* a run as one process looks at it */

/**
 * Stage and launch as resoluto_sandbox_run() does, wait until the program has started and has been
 * given all of its standard input, and let go.  From then on the run belongs to nobody: it ends by
 * itself, at its deadline, or after dead_after_ms of silence, and is kept until it is destroyed.
 *
 * 0: *ret_run is the run, and *ret_result (may be NULL) says what was staged and waited for; or the
 * program was never started, then *ret_run is NULL, *ret_result is the verdict, and nothing is left but
 * for keep_run.  Negative: as resoluto_sandbox_run().
 *
 * Not for a launch, -EINVAL: output_dir, stream, on_event and detach_on_hangup (collect and drive
 * have their own).
 */
int resoluto_run_launch(const struct resoluto_run_options *options, struct resoluto_run **ret_run,
                        struct resoluto_result **ret_result, struct resoluto_err *err);

struct resoluto_attach_options {
	size_t struct_size;
	const char *id;
	const struct resoluto_backend
		*backend; /* NULL: "local".  Borrowed until the run is closed */
};

/** Open a run that is there, alive or ended; also one in the foreground of another process. */
int resoluto_run_attach(const struct resoluto_attach_options *options,
                        struct resoluto_run **ret_run, struct resoluto_err *err);

/** Close it; the run itself goes on.  NULL is allowed. */
void resoluto_run_close(struct resoluto_run *run);

const char *resoluto_run_id(const struct resoluto_run *run);

/* Everything but struct_size may be 0. */
struct resoluto_follow_options {
	size_t struct_size;
	/* Where to begin: from_seq, has_tail, tail_lines and tail_streams as in
	 * struct resoluto_drive_options. */
	uint64_t from_seq;
	bool has_tail;
	uint64_t tail_lines;
	enum resoluto_streams tail_streams;
	bool until_now;    /* only what is stored now: 1 is returned unless that is all there is */
	bool is_read_only; /* a silent sandbox is somebody else's to end: wait on */
	size_t max_output; /* bytes kept in the result, of each stream; 0: RESOLUTO_MAX_OUTPUT */
	resoluto_stream_fn *stream; /* a negative return leaves with -ECANCELED; the run goes on */
	resoluto_event_fn *on_event;
	void *ctx;
	int stop_fd; /* readable: leave, 1 is returned.  -1 or 0: none */
};

/**
 * Tell a run's output and events from a cursor on, and follow it to its end.
 *
 * 0: it has ended, and *ret_result (may be NULL) is its verdict, without artifacts (collect) and with the output
 * that was told; release with resoluto_result_free().  1: it was left and goes on.
 */
int resoluto_run_drive(struct resoluto_run *run, const struct resoluto_follow_options *options,
                       struct resoluto_result **ret_result, struct resoluto_err *err);

/** The cursor behind what drive has told: the from_seq for whoever goes on from there, anywhere. */
uint64_t resoluto_run_cursor(const struct resoluto_run *run);

struct resoluto_outputs {
	char **artifacts;  /* NULL-terminated, sorted, relative to the directory; never NULL */
	char *result_json; /* result.json, if among them; else NULL */
};

/**
 * Put the outputs of a run that has ended, chosen by the output_paths of its launch, into a directory,
 * which is made.  What is there is replaced; twice gives the same.  -EBUSY: it has not ended;
 * -ENODATA: it asked for no outputs, or ended before they were packed; -EBADMSG: the archive was
 * refused; -EFBIG: it went over a quota of the launch, and what was within it has landed.  Release with
 * resoluto_outputs_done().
 */
int resoluto_run_collect(struct resoluto_run *run, const char *output_dir,
                         struct resoluto_outputs *ret_outputs, struct resoluto_err *err);

void resoluto_outputs_done(struct resoluto_outputs *outputs);

/** Deliver a signal to the program; before its start it is kept until then. */
int resoluto_run_signal(struct resoluto_run *run, int signo, struct resoluto_err *err);

/** End the run if it is alive, and remove all that is stored of it.  Twice is fine. */
int resoluto_run_destroy(struct resoluto_run *run, struct resoluto_err *err);

enum resoluto_run_state {
	RESOLUTO_RUN_STARTING, /* claimed, waiting for a slot, staging, booting */
	RESOLUTO_RUN_RUNNING,
	RESOLUTO_RUN_ENDED,
};

/** "starting", "running", "ended"; static. */
const char *resoluto_run_state_name(enum resoluto_run_state state);

int resoluto_run_look(struct resoluto_run *run, enum resoluto_run_state *ret_state,
                      struct resoluto_err *err);

/* What is known of a run without reading its output.  Borrowed for the call. */
struct resoluto_run_info {
	const char *id;
	enum resoluto_run_state state;
	const char *program;       /* argv[0]; "" unknown */
	const char *image;         /* reference; "" unknown */
	const char *const *labels; /* KEY=VALUE, NULL-terminated */
	double created, ended;     /* seconds since the epoch; 0: unknown, not yet */
	bool is_kept;              /* stays until it is destroyed or swept by name */
	/* Of a run that has ended, as in struct resoluto_result. */
	int exit_code, signal;
	const char *reason;
	enum resoluto_disposition disposition;
};

/* Returns 0 to go on, or what resoluto_run_list() shall return. */
typedef int resoluto_run_info_fn(void *ctx, const struct resoluto_run_info *info);

struct resoluto_list_options {
	size_t struct_size;
	const struct resoluto_backend *backend; /* NULL: "local" */
	const char *const *labels;              /* only runs that have all of these; NULL: all */
};

/**
 * All runs there are, by their ids.  One that cannot be looked at does not keep the others; the first such failure is
 * returned at the end.  options may be NULL.
 */
int resoluto_run_list(const struct resoluto_list_options *options, resoluto_run_info_fn *each,
                      void *ctx, struct resoluto_err *err);

struct resoluto_sweep_options {
	size_t struct_size;
	const struct resoluto_backend *backend; /* NULL: "local" */
	const char *const *labels;              /* only runs that have all of these */
	uint64_t older_ms;                      /* only runs that ended so long ago; 0: all */
	resoluto_run_info_fn *removed;          /* told of each one; may be NULL */
	void *ctx;
};

/**
 * Remove what is left of runs that have ended: of those that nobody wanted to keep, and with labels or
 * older_ms also of those that were kept.  What is alive is never touched.  Returns how many; one that
 * cannot be removed does not keep the others, and is told as a failure.
 */
int resoluto_run_sweep(const struct resoluto_sweep_options *options, struct resoluto_err *err);

#ifdef __cplusplus
}
#endif
