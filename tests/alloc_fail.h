/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * alloc_fail.h - run a piece of code again and again, each time with another allocation failing:
 * the first, the second, and so on until one run needs no more.  Include it in one file of a program
 * that is linked with alloc_fail_link_args (tests/meson.build).
 *
 *	static int uses_memory(void) { ...; return r; }
 *
 *	static void survives(void) { CHECK(alloc_fail_each(uses_memory, -ENOMEM) > 3); }
 *
 * What fails is the allocation of our own objects, those of the C library's functions that hand
 * memory out included; the linker sends their calls here (--wrap).
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct {
	unsigned long left; /* allocations until one fails; 0: none will */
	bool has_failed;
} alloc_fail_state;

/* Count one; true if it is the one. */
static inline bool alloc_fail_now(void)
{
	if (alloc_fail_state.left == 0 || --alloc_fail_state.left > 0)
		return false;
	alloc_fail_state.has_failed = true;
	errno = ENOMEM;
	return true;
}

#define ALLOC_FAIL_WRAP(type, name, parameters, arguments) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return alloc_fail_now() ? NULL : __real_##name arguments; \
	}

ALLOC_FAIL_WRAP(void *, malloc, (size_t size), (size))
ALLOC_FAIL_WRAP(void *, calloc, (size_t count, size_t size), (count, size))
ALLOC_FAIL_WRAP(void *, realloc, (void *old, size_t size), (old, size))
ALLOC_FAIL_WRAP(char *, strdup, (const char *text), (text))
ALLOC_FAIL_WRAP(char *, strndup, (const char *text, size_t len), (text, len))
ALLOC_FAIL_WRAP(DIR *, fdopendir, (int fd), (fd))
ALLOC_FAIL_WRAP(DIR *, opendir, (const char *path), (path))

/* The second name is what a fortified build calls. */
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return alloc_fail_now() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
	return __wrap_vasprintf(ret, fmt, ap);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

/* How many different allocations were made to fail.  fn must return `failure` then, or 0 when it
 * could do without, and release all it took. */
static inline unsigned alloc_fail_each(int (*fn)(void), int failure)
{
	for (unsigned n = 1;; n++) {
		int r;

		alloc_fail_state.left = n;
		alloc_fail_state.has_failed = false;
		r = fn();
		alloc_fail_state.left = 0;
		if (!alloc_fail_state.has_failed) {
			CHECK(r == 0);
			return n - 1;
		}
		if (r != failure && r != 0)
			printf("# allocation %u: %d\n", n, r);
		CHECK(r == failure || r == 0);
	}
}
