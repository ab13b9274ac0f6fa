/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "shim/last_words.h"

enum { PHRASE_MAX = 64 }; /* bytes of the longest phrase, and more */

static const char panic_phrase[] = "Kernel panic - not syncing: ";
static const char halt_phrase[] = "reboot: System halted";
static const char runner_phrase[] = "resoluto-runner: ";

/* In the words of Linux: kernel/panic.c, kernel/reboot.c, mm/oom_kill.c. */
static const struct {
	const char *phrase;
	enum last_word word;
} phrases[] = {
	{ "reboot: Restarting system", LAST_WORD_RESTART },
	{ panic_phrase, LAST_WORD_PANIC },
	{ "Kernel panic - not syncing: System is deadlocked on memory", LAST_WORD_NO_MEMORY },
	{ "Kernel panic - not syncing: Out of memory", LAST_WORD_NO_MEMORY },
};

/* The rest of the line behind a phrase, the first time.  It is a guest's: only what a terminal can bear. */
static void keep_text(const char *line, const char *phrase, char ret[LAST_WORDS_TEXT])
{
	const char *at = strstr(line, phrase);

	if (!at || ret[0])
		return;
	snprintf(ret, LAST_WORDS_TEXT, "%s", at + strlen(phrase));
	for (; *ret; ret++) {
		if (*ret < ' ' || *ret > '~')
			*ret = '?';
	}
}

static void judge(struct last_words *words)
{
	char line[LAST_WORDS_LINE + 1];

	if (words->len > 0 && words->line[words->len - 1] == '\r')
		words->len--;
	/* A NUL must not hide what is behind it. */
	for (size_t i = 0; i < words->len; i++)
		line[i] = words->line[i] ? words->line[i] : '?';
	line[words->len] = '\0';
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		if (phrases[i].word > words->word && strstr(line, phrases[i].phrase))
			words->word = phrases[i].word;
	}
	words->has_halted |= strstr(line, halt_phrase) != NULL;
	keep_text(line, panic_phrase, words->panic);
	keep_text(line, runner_phrase, words->complaint);
}

/* A full line is looked at, and its end kept: a phrase may have begun there. */
static void make_room(struct last_words *words)
{
	const size_t keep = PHRASE_MAX;

	judge(words);
	memmove(words->line, words->line + LAST_WORDS_LINE - keep, keep);
	words->len = keep;
}

void last_words_feed(struct last_words *words, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n') {
			judge(words);
			words->len = 0;
			continue;
		}
		if (words->len == LAST_WORDS_LINE)
			make_room(words);
		words->line[words->len++] = bytes[i];
	}
}

void last_words_end(struct last_words *words)
{
	judge(words);
	words->len = 0;
}
