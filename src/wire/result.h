/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* result.h - result.json and _manifest.json (seed 000, NodeResult).  Pure; hostile input when read. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum {
	RESULT_JSON_MAX = 1024 * 1024, /* bytes a reader takes */
	MANIFEST_JSON_MAX = 4096,
	RESULT_STRING_MAX = 4096, /* bytes of reason and detail a reader keeps */
};

/* What the runner knows at the end.  Strings are borrowed when writing. */
struct node_result {
	const char *node_id;
	bool success;
	bool has_exit_code;
	int exit_code;
	const char *output_archive; /* key relative to the prefix, NULL: none */
	const char *reason;         /* a name of reason.h, "" for none */
	/* Extra members of ours. */
	const char *detail; /* for people */
	int signal;         /* 0: none */
	bool ran;
	const char *guest_boot_id; /* "" when unknown */
	json_t *timings_ms; /* object {boot, canary, stage, setup, run, collect}; borrowed; may be NULL */
	json_t *canary;   /* array of {probe, ok, detail}; borrowed; may be NULL */
	json_t *warnings; /* array of sentences "name: ..."; borrowed; may be NULL */
	uint64_t redactions;
	bool output_is_complete; /* false: the drain time ended with a stream still open */
};

int node_result_write(struct buf *out, const struct node_result *result);

/* A parsed result.json; the strings of `result` point into root. */
struct node_result_doc {
	struct node_result result;
	json_t *root; /* owned */
};

/* -EBADMSG: not JSON, not an object, wrong types, status neither success nor failure.  Accepts what the
 * Python original writes (a negative exit code is a death by signal). */
int node_result_parse(const char *json, size_t len, struct node_result_doc *ret_doc,
                      struct resoluto_err *err);
void node_result_doc_done(struct node_result_doc *doc);

int manifest_write(struct buf *out, uint32_t total_chunks);
/* -EBADMSG unless an object with a whole number total_chunks of 0 to 999,999. */
int manifest_parse(const char *json, size_t len, uint32_t *ret_total_chunks);
