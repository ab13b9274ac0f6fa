/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * keys.h - the names of the objects of a run (seed 000, "Key Namespace").  Pure.
 *
 * Keys here are relative to the run's prefix, which is opaque and comes from the caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_CANARY "_canary_ok"
#define KEY_RESULT "result.json"
#define KEY_MANIFEST "_manifest.json"
#define KEY_INBOX_WORKSPACE "inbox/workspace.tar.gz"
#define KEY_OUTBOX_OUTPUT "outbox/output.tar.gz"

enum {
	KEY_CHUNK_MAX = 999999, /* the largest chunk number */
	KEY_SIZE = 320,         /* bytes a relative key takes at the most, the 0 included */
};

enum key_kind {
	KEY_IS_UNKNOWN, /* not a key a guest may write */
	KEY_IS_CANARY,
	KEY_IS_CHUNK,
	KEY_IS_RESULT,
	KEY_IS_OUTBOX,
	KEY_IS_MANIFEST,
};

/* "events-000001.jsonl"; number is 1 to KEY_CHUNK_MAX. */
void key_chunk(uint32_t number, char ret_key[KEY_SIZE]);
/* What a guest's key is; *ret_number is the number of a chunk.  Exact: nothing else passes. */
enum key_kind key_classify(const char *key, size_t len, uint32_t *ret_number);
/* 1 to 40 of [a-z0-9-], the first not '-'. */
bool key_is_run_id(const char *id);
/* "name" of "outbox/name.tar.gz" and "inbox/name.tar.gz": [A-Za-z0-9][A-Za-z0-9._-]*, at most 64. */
bool key_is_archive_name(const char *name, size_t len);
