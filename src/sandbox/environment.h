/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * environment.h - the environment of a run: the contract that configures the runner
 * (wire/contract.h) and the program's own variables, in rising priority the image's, the env
 * file's and the caller's.
 */

#include "base/buf.h"
#include "resoluto/image.h"
#include "resoluto/sandbox.h"
#include "sandbox/stops.h"

#define ENVIRONMENT_WORKSPACE "/workspace"

struct environment_inputs {
	const struct resoluto_run_options *options;
	const struct resoluto_image *image; /* env, workdir and user count; NULL: none known */
	const char *const *file_env;        /* from environment_read_file() */
	const char *const *store_env;       /* RESOLUTO_STORE_* of the backend */
	const char *run_id, *node_id, *store_prefix;
	const char *host_boot_id; /* no sandbox may have it */
};

/* KEY=VALUE entries of options->env_file, none if there is no file.  -EINVAL names the file, the line
 * and what is wrong; -ECANCELED: the caller asked to stop before it was read. */
int environment_read_file(const char *path, struct stops *stops, struct strv *ret_env,
                          struct resoluto_err *err);

/* Pure.  Each name once.  -E2BIG: more than a job can carry. */
int environment_compose(const struct environment_inputs *inputs, struct strv *ret_env,
                        struct resoluto_err *err);
