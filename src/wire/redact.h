/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * redact.h - take secrets out of what is about to be written (interfaces section 8).
 *
 * First exact values (also their lines of 8 bytes or more, and their base64 forms), then, unless
 * left out, the patterns of the contract: authorization headers, x-access-token, URL
 * user:password, AWS secret and session values, GitHub tokens, JWTs.  Every other byte stays
 * exactly as it was.  A stream is worked on before it is cut into events, so that a secret that is
 * split over two writes is found; memory is bounded by REDACT_HOLD_MAX.  How a text is split makes no
 * difference to what comes out.
 *
 * A run of bytes that values cover becomes one REDACT_MARK.  Of headers, assignments and URLs only the
 * secret part is replaced: "Authorization: Bearer [REDACTED]", "https://[REDACTED]@host".
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	REDACT_HOLD_MAX = 64 * 1024, /* bytes held back of one stream at the most */
	REDACT_VALUE_MIN = 4, /* shorter values would hit everything and are not searched for */
	REDACT_VALUES_MAX = 256 * 1024, /* bytes of all values together */
};

#define REDACT_MARK "[REDACTED]"

struct redactor; /* what to look for, and how often it was found */

/* values: NULL-terminated, may be NULL.  -E2BIG: more than REDACT_VALUES_MAX. */
int redactor_new(const char *const *values, bool with_patterns, struct redactor **ret_redactor);
void redactor_free(struct redactor **redactor); /* a cleanup function; wipes the values */
/* Replacements so far; a value inside of what a pattern then takes out counts twice. */
uint64_t redactor_count(const struct redactor *redactor);

struct redact_stream; /* one byte stream */

int redact_stream_new(struct redactor *redactor, struct redact_stream **ret_stream);
void redact_stream_free(struct redact_stream **stream);
/* Append to out what is now sure; the rest is held. */
int redact_stream_feed(struct redact_stream *stream, const void *bytes, size_t len,
                       struct buf *out);
/* Nothing came for a while: append what is no secret whatever comes (a prompt must be seen), which is
 * more than a feed does: also the fixed first letters of a pattern, like the "ey" of a JWT. */
int redact_stream_idle(struct redact_stream *stream, struct buf *out);
/* The stream has ended: append all. */
int redact_stream_end(struct redact_stream *stream, struct buf *out);

/* A whole text. */
int redact_text(struct redactor *redactor, const char *text, struct buf *out);
/* In place: members under keys that look like key/secret/token/password/passwd/cred/auth become
 * REDACT_MARK, other strings go through redact_text.  -ELOOP: nested deeper than JSON_DEPTH_MAX. */
int redact_json(struct redactor *redactor, json_t *value);
