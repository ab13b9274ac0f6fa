/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * collect.h - the outputs of a run out of its outbox and into a directory.  The archive is hostile:
 * only members that match the caller's patterns land, beneath the directory, and nothing is
 * followed or written through (wire/pack.h).
 */

#include <stdbool.h>

#include "base/buf.h"
#include "resoluto/conduit.h"
#include "sandbox/bridge.h"
#include "wire/quota.h"

enum {
	COLLECT_RESULT_MAX = 1024 * 1024, /* bytes of a result.json of the workspace */
	COLLECT_NAMES_MAX = 256 * 1024 *
	                    1024, /* bytes of names of artifacts, which are held in memory */
};

struct collection {
	struct strv artifacts; /* sorted, each once */
	char *result_json;     /* owned: result.json, if it came and is JSON */
	bool has_odd_result;   /* it came and is not */
	enum quota over;       /* the quota that ended it */
};

void collection_done(struct collection *collection);

struct collect_options {
	struct resoluto_conduit *conduit;
	const char *store_prefix;
	const char *
		archive; /* its key beneath the prefix, of a parsed result (wire/result.h); NULL: outbox/output.tar.gz */
	int output_fd;
	const char *const *globs;
	const struct resoluto_quotas *quotas;
	bridge_tick_fn
		*tick; /* may be NULL.  Negative: what has not landed shall not; that is returned */
	void *tick_ctx;
};

/*
 * 0: all is there; *ret_has_archive tells whether the guest had sent any.  -EBADMSG, -EFBIG: the
 * archive was refused, and over a quota the text begins with its name (quota_explain()).  What came before
 * a failure is in *ret_collection in any case.
 */
int collect_outputs(const struct collect_options *options, struct collection *ret_collection,
                    bool *ret_has_archive, struct resoluto_err *err);
