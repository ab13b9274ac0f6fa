/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * conduit_backend.h - what a conduit backend must supply.  Not installed.
 *
 * A backend is one .c file with one const table, named in the list in conduit.c.  Its own struct
 * starts with struct resoluto_conduit.  Adding its name to tests/contract/meson.build is how it
 * proves that it keeps the promises of conduit.h.
 *
 * Before a call arrives here, conduit.c has checked every key and prefix, and made sure that no
 * pointer but err is NULL.  On failure record the step that failed, with resoluto_fail(); conduit.c
 * puts "put KEY: " in front of it.
 */

#include "resoluto/conduit.h"

struct conduit_ops;

struct resoluto_conduit {
	const struct conduit_ops *ops;
};

/* Every member is required; what a backend cannot do returns -EOPNOTSUPP. */
struct conduit_ops {
	/* place: the URL after "://". */
	int (*open)(const char *place, struct resoluto_conduit **ret_conduit,
	            struct resoluto_err *err);
	void (*close)(struct resoluto_conduit *conduit);

	int (*put)(struct resoluto_conduit *conduit, const char *key,
	           const struct resoluto_source *source, struct resoluto_err *err);
	int (*get)(struct resoluto_conduit *conduit, const char *key,
	           const struct resoluto_sink *sink, struct resoluto_err *err);
	/* prefix: "" or raw string prefix.  after: only keys that sort behind it ("" for all).  What
	 * each() returns other than 0 ends it; only a negative one is then returned. */
	int (*list)(struct resoluto_conduit *conduit, const char *prefix, const char *after,
	            resoluto_object_fn *each, void *ctx, struct resoluto_err *err);
	/* -ENOENT when there is no `from`. */
	int (*copy)(struct resoluto_conduit *conduit, const char *from, const char *to,
	            struct resoluto_err *err);
	/* Remove the objects beneath prefix (no final '/') and what only they needed.  Returns how
	 * many objects. */
	int (*delete_beneath)(struct resoluto_conduit *conduit, const char *prefix,
	                      struct resoluto_err *err);
};

/* Read from a source, up to cap bytes: how many, 0 at the end, or a failure, which is recorded. */
ssize_t conduit_read_source(const struct resoluto_source *source, void *bytes, size_t cap,
                            struct resoluto_err *err);
/* Hand bytes to a sink; len may be 0. */
int conduit_write_sink(const struct resoluto_sink *sink, const void *bytes, size_t len,
                       struct resoluto_err *err);

extern const struct conduit_ops conduit_local;
extern const struct conduit_ops conduit_memory;
extern const struct conduit_ops conduit_stdout;
