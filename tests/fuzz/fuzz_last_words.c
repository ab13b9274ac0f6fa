/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_last_words.c - a console on which a guest writes what it likes: what is kept of it is short and printable, never
 * gets milder, and does not depend on the pieces in which it came.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/last_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_text(const char text[LAST_WORDS_TEXT])
{
	require(memchr(text, '\0', LAST_WORDS_TEXT) != NULL);
	for (; *text; text++)
		require(*text >= ' ' && *text <= '~');
}

static void feed_pieces(struct last_words *words, const char *bytes, size_t len, size_t piece)
{
	while (len > 0) {
		const enum last_word before = words->word;
		const size_t n = len < piece ? len : piece;

		last_words_feed(words, bytes, n);
		require(words->word >= before && words->len <= LAST_WORDS_LINE);
		bytes += n;
		len -= n;
	}
	last_words_end(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct last_words whole = { 0 }, parts = { 0 };

	if (size == 0)
		return 0;
	feed_pieces(&whole, (const char *) data + 1, size - 1, size);
	feed_pieces(&parts, (const char *) data + 1, size - 1, 1 + data[0] % 64u);
	check_text(whole.panic);
	check_text(whole.complaint);
	require(whole.word == parts.word && whole.has_halted == parts.has_halted);
	require(strcmp(whole.panic, parts.panic) == 0);
	require(strcmp(whole.complaint, parts.complaint) == 0);
	return 0;
}
