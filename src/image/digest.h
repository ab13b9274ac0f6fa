/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * digest.h - "sha256:<64 hex digits>", the name that OCI gives to bytes.
 *
 * By nettle: libarchive loads it anyway, so it costs no further library (docs/design/image.md).
 */

#include <stdbool.h>
#include <stddef.h>

#include <nettle/sha2.h>

enum {
	DIGEST_HEX = 64,                  /* characters */
	DIGEST_SIZE = 7 + DIGEST_HEX + 1, /* "sha256:", hex, 0 */
};

struct digest_state {
	struct sha256_ctx sha256;
};

void digest_begin(struct digest_state *state);
void digest_add(struct digest_state *state, const void *bytes, size_t len);
/* state may be used again after this: it starts over. */
void digest_end(struct digest_state *state, char ret_digest[DIGEST_SIZE]);
void digest_of(const void *bytes, size_t len, char ret_digest[DIGEST_SIZE]);
/* "sha256:" and 64 lower-case hex digits, and nothing else. */
bool digest_is_valid(const char *text);
/* The hex digits of a valid digest. */
const char *digest_hex(const char *digest);
