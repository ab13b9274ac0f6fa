/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * check.h - the whole test framework, in TAP.  A test program is a list of functions:
 *
 *	static void adds_numbers(void) { CHECK(1 + 1 == 2); }
 *
 *	int main(void)
 *	{
 *		RUN(adds_numbers);
 *		return check_done();
 *	}
 *
 * A failed CHECK says where and what and fails its function; the others still run.  SKIP(reason)
 * ends a function as skipped.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	int count, failed;
	const char *skipped; /* reason; NULL: not skipped */
	jmp_buf out;
} check_state __attribute__((unused));

#define CHECK(cond) ((cond) ? (void) 0 : check_failed(__FILE__, __LINE__, #cond))
#define CHECK_STR(got, want) check_str(__FILE__, __LINE__, (got), (want))
#define SKIP(why) (check_state.skipped = (why), longjmp(check_state.out, 1))
#define RUN(fn) check_run(#fn, fn)

/* Words of others may be several lines: each becomes a remark, for TAP knows no other stray text. */
static inline void check_note(FILE *out, const char *text)
{
	do {
		size_t len = strcspn(text, "\n");

		fprintf(out, "# %.*s\n", (int) len, text);
		text += len + (text[len] == '\n');
	} while (*text);
}

static inline void check_failed(const char *file, int line, const char *cond)
{
	printf("# %s:%d: not true: %s\n", file, line, cond);
	longjmp(check_state.out, 2);
}

static inline void check_str(const char *file, int line, const char *got, const char *want)
{
	if (got && strcmp(got, want) == 0)
		return;
	printf("# got:\n");
	check_note(stdout, got ? got : "(null)");
	printf("# want:\n");
	check_note(stdout, want);
	check_failed(file, line, "strings are equal");
}

static inline void check_run(const char *name, void (*fn)(void))
{
	int how = setjmp(check_state.out);

	if (how == 0) {
		check_state.skipped = NULL;
		check_state.count++;
		fn();
	}
	if (how == 2)
		check_state.failed++;
	printf("%sok %d - %s%s%s\n", how == 2 ? "not " : "", check_state.count, name,
	       how == 1 ? " # SKIP " : "", how == 1 ? check_state.skipped : "");
	fflush(stdout);
}

static inline int check_done(void)
{
	printf("1..%d\n", check_state.count);
	return check_state.failed ? 1 : 0;
}
