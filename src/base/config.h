/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * config.h - settings and places (docs/environment.md): the environment first, then the first of
 * these files that exists: the one named by RESOLUTO_LOCAL_ENV (missing: an error),
 * $XDG_CONFIG_HOME/resoluto-sandbox/local.env, /etc/resoluto-sandbox/local.env.
 */

#include "resoluto/err.h"

struct config;

/* Read the file, if there is one.  Release with config_free(). */
int config_load(struct config **ret_config, struct resoluto_err *err);
void config_free(struct config **config); /* a cleanup function */
/* The value of a name, NULL if it is nowhere.  Valid as long as config. */
const char *config_get(const struct config *config, const char *name);
/* Where the value came from, for people: "environment", a path, or "default". */
const char *config_origin(const struct config *config, const char *name);
/* The file that was read, NULL if there is none, and its KEY=VALUE entries (NULL-terminated; may be NULL). */
const char *config_file(const struct config *config);
const char *const *config_entries(const struct config *config);
/* Its lines that are neither KEY=VALUE nor comments, which nobody reads: "line 3" (NULL-terminated; may be NULL). */
const char *const *config_odd_lines(const struct config *config);
/* RESOLUTO_STATE_DIR, RESOLUTO_CACHE_DIR or their defaults (root: /var/lib, /var/cache). */
const char *config_state_dir(const struct config *config);
const char *config_cache_dir(const struct config *config);
/* The cache that is read besides: /var/cache/resoluto-sandbox; NULL if it is the same. */
const char *config_system_cache_dir(const struct config *config);
/* Find a helper program ("resoluto-shim"): in RESOLUTO_LIBEXEC_DIR, beside the running program, in the
 * folder this was built to be installed in.  *ret_path: free(). */
int config_find_helper(const struct config *config, const char *name, char **ret_path,
                       struct resoluto_err *err);
