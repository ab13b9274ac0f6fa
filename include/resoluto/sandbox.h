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
 * Ownership  options are borrowed for the length of the call; the result belongs to the caller.
 * Strings    UTF-8 unless said otherwise; lists are NULL-terminated and may be NULL for none.
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
	RESOLUTO_STOP_GRACE_MS = 5000,          /* from the signal to the end of the VM */
	RESOLUTO_MAX_OUTPUT = 1048576,          /* bytes of output kept in a result */
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
	struct resoluto_resources resources;
	uint64_t dead_after_ms; /* 0 = RESOLUTO_FACADE_DEAD_AFTER_MS */
};

/**
 * Make a backend of these parts.  -EINVAL: a part is missing, or store_env holds something else than
 * RESOLUTO_STORE_*.  Release with resoluto_backend_free() (NULL is allowed) after its last run.
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
	const char *const *protect; /* kept despite the list */
	const char *const *output_paths; /* globs relative to the workspace; ** is recursive */
	const char *output_dir;          /* where outputs land; NULL: the workspace */

	struct resoluto_stdin input;
	const char *const *env; /* KEY=VALUE; wins over env_file and the image */
	const char *env_file;   /* KEY=VALUE lines */
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
	uint64_t drain_timeout_ms; /* 0: RESOLUTO_DRAIN_TIMEOUT_MS */
	size_t max_output;         /* bytes kept of output in the result; 0: RESOLUTO_MAX_OUTPUT */
	bool keep_run;             /* leave the run's directory for inspection */
	bool redact_values_only;   /* leave out the patterns of the contract */

	resoluto_stream_fn *stream;     /* NULL: only the result has the output */
	resoluto_event_fn *on_event;    /* every event; NULL: none */
	resoluto_progress_fn *progress; /* NULL: none */
	void *ctx;                      /* of the three */

	/* Each byte read from it is the number of a signal for the program.  SIGINT, SIGTERM and SIGHUP
	 * also start the grace time of RESOLUTO_STOP_GRACE_MS, after which (or at the second one)
	 * the sandbox is destroyed.  -1 or 0: none. */
	int signal_fd;
};

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
	char *output; /* both streams in the order the program wrote them; exact bytes */
	size_t output_len;
	char *out; /* stdout alone */
	size_t out_len;
	char *errors; /* stderr alone */
	size_t errors_len;
	uint64_t output_dropped_bytes; /* over max_output: head and tail are kept */
	char **artifacts;     /* NULL-terminated, sorted, relative to the output directory */
	char *result_json;    /* result.json of the workspace, if among the artifacts; else NULL */
	char *isolation_json; /* object */
	char *canary_json;    /* array */
	char *image_ref, *image_digest;
	struct resoluto_timings timings_ms;
	uint64_t redactions;
	char *substrate_logs; /* untrusted */
	struct {
		uint64_t left_out; /* workspace entries not staged */
		char *why;         /* "" or one line: how many for which reason */
	} staging;
};

/**
 * Run a program in a sandbox and wait for its end.
 *
 * 0 whenever the run was claimed, and then *ret_result tells all, also what went wrong; negative
 * when the options are wrong (-EINVAL: nothing was started, err says what to change) or nothing
 * could be started at all.  Release with resoluto_result_free().
 */
int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err);

void resoluto_result_free(struct resoluto_result *result);

/** The result as JSON (spec/run-result.schema.json), one line.  free(); NULL when out of memory. */
char *resoluto_result_to_json(const struct resoluto_result *result);

#ifdef __cplusplus
}
#endif
