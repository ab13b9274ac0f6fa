/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * redact.h - take secrets out of what is about to be written (interfaces section 8).
 *
 * First exact values (also their lines of 8 bytes or more, and their base64 forms), then, unless
 * left out, the patterns of the contract: authorization headers, x-access-token, URL
 * user:password, AWS secret and session values, GitHub tokens, JWTs.  Every other byte stays
 * exactly as it was.  A stream is worked on before it is cut into events, so that a secret that is
 * split over two writes is found; memory is bounded by REDACT_HOLD_MAX.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	REDACT_HOLD_MAX = 64 * 1024, /* bytes held back of one stream at the most */
	REDACT_VALUE_MIN = 4,        /* shorter values would hit everything and are not searched for */
};

#define REDACT_MARK "[REDACTED]"

struct redactor; /* what to look for, and how often it was found */

/* values: NULL-terminated, may be NULL. */
int redactor_new(const char *const *values, bool with_patterns, struct redactor **ret_redactor);
void redactor_free(struct redactor **redactor); /* a cleanup function; wipes the values */
uint64_t redactor_count(const struct redactor *redactor);

struct redact_stream; /* one byte stream */

int redact_stream_new(struct redactor *redactor, struct redact_stream **ret_stream);
void redact_stream_free(struct redact_stream **stream);
/* Append to out what is now sure; the rest is held. */
int redact_stream_feed(struct redact_stream *stream, const void *bytes, size_t len,
		       struct buf *out);
/* Nothing came for a while: append what cannot be the start of a secret value or pattern (a prompt
 * must be seen). */
int redact_stream_idle(struct redact_stream *stream, struct buf *out);
/* The stream has ended: append all. */
int redact_stream_end(struct redact_stream *stream, struct buf *out);

/* A whole text. */
int redact_text(struct redactor *redactor, const char *text, struct buf *out);
/* In place: members under keys that look like key/secret/token/password/passwd/cred/auth become
 * REDACT_MARK, other strings go through redact_text. */
int redact_json(struct redactor *redactor, json_t *value);
