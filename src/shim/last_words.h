/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * last_words.h - what the guest says on its console about its own end.  Pure: bytes in, one word out.
 *
 * A machine without ACPI leaves by the same reset whether it was told to, panicked or faulted, so these words tell the
 * three apart.  They are the guest's: its root can write any of them, and a program that makes the kernel quote it can
 * try.  So they only choose among names of failures; what succeeds is told by the manifest alone.
 *
 * The phrases are longer than a name of a task (15 bytes), which the kernel prints of programs that it ends.
 */

#include <stdbool.h>
#include <stddef.h>

enum last_word {
	LAST_WORD_NONE,
	LAST_WORD_RESTART,   /* it was told to restart */
	LAST_WORD_PANIC,     /* it gave up */
	LAST_WORD_NO_MEMORY, /* ... since nothing was left that it could end to get memory */
};

enum {
	LAST_WORDS_LINE =
		512, /* bytes of a line that are looked at; of a longer one piece by piece */
	LAST_WORDS_TEXT = 256, /* bytes kept of what it said, the 0 included */
};

/* Starts as { 0 }. */
struct last_words {
	enum last_word word; /* the worst that was said */
	bool has_halted; /* it was told to stop, and does nothing any more, whatever it said before */
	char panic[LAST_WORDS_TEXT];     /* behind "not syncing: ", printable ASCII; "": no panic */
	char complaint[LAST_WORDS_TEXT]; /* why the runner gave up, likewise */
	char line[LAST_WORDS_LINE];
	size_t len;
};

void last_words_feed(struct last_words *words, const char *bytes, size_t len);
/* There is no more: what has no newline counts as well. */
void last_words_end(struct last_words *words);
