/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * err.h - how a failure travels from where it happened to whoever must be told.
 *
 * A function that can fail returns 0 (or a count) on success and a negative
 * errno value on failure, and takes a struct resoluto_err as its last argument.
 * The number is for the program, the text is for the person.  (Where the seeds
 * raise exceptions.)
 *
 * The struct belongs to the caller and holds no pointer: nothing to free, and it
 * works after fork() and when memory has run out.  NULL means "only the number".
 * It is written on failure and untouched on success.
 */

#ifdef __cplusplus
extern "C" {
#endif

enum { RESOLUTO_ERR_TEXT = 512 }; /* bytes, terminating 0 included; longer text is cut */

struct resoluto_err {
	int code;                     /* negative errno value; 0 = nothing recorded */
	char text[RESOLUTO_ERR_TEXT]; /* one line, no final newline, no strerror() */
};

/**
 * Record a failure and return its code, so that a caller can fail in one line:
 *
 *	return resoluto_fail(err, -errno, "open %s", path);
 *
 * code must be negative.
 */
int resoluto_fail(struct resoluto_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Put "what was being done: " in front of the text recorded by a callee, and
 * return code unchanged.
 */
int resoluto_fail_in(struct resoluto_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
