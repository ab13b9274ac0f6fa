/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "image/digest.h"

static const char prefix[] = "sha256:";

void digest_begin(struct digest_state *state)
{
	sha256_init(&state->sha256);
}

void digest_add(struct digest_state *state, const void *bytes, size_t len)
{
	sha256_update(&state->sha256, len, bytes);
}

void digest_end(struct digest_state *state, char ret_digest[DIGEST_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[SHA256_DIGEST_SIZE];
	char *at = ret_digest + sizeof(prefix) - 1;

	sha256_digest(&state->sha256, sizeof(raw), raw);
	memcpy(ret_digest, prefix, sizeof(prefix) - 1);
	for (size_t i = 0; i < sizeof(raw); i++) {
		*at++ = digits[raw[i] >> 4];
		*at++ = digits[raw[i] & 15];
	}
	*at = '\0';
}

void digest_of(const void *bytes, size_t len, char ret_digest[DIGEST_SIZE])
{
	struct digest_state state;

	digest_begin(&state);
	digest_add(&state, bytes, len);
	digest_end(&state, ret_digest);
}

bool digest_is_valid(const char *text)
{
	return strncmp(text, prefix, sizeof(prefix) - 1) == 0 &&
	       strspn(digest_hex(text), "0123456789abcdef") == DIGEST_HEX &&
	       text[DIGEST_SIZE - 1] == '\0';
}

const char *digest_hex(const char *digest)
{
	return digest + sizeof(prefix) - 1;
}
