/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * prefetch.h - read what the program will need first, on another processor while it is being started: itself, its
 * interpreters and the C library.  Reading and unpacking these takes half of the start of a short program under
 * emulation.
 *
 * Only a hint: nothing depends on it, and nothing of it can fail.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	PREFETCH_BYTES = 2 * 1024 * 1024, /* from the start of each file */
	PREFETCH_HEAD = 4096, /* bytes of a file in which its interpreter is looked for */
	PREFETCH_PATH_SIZE = 256,
	PREFETCH_DEPTH = 3,  /* a script, its shell, the shell's loader */
	PREFETCH_TRIES = 64, /* places of path that are looked at */
};

enum { PREFETCH_FILES_MAX = 1 + PREFETCH_DEPTH + 1 };

/* Starts as { 0 }. */
struct prefetch {
	int files[PREFETCH_FILES_MAX]; /* owned */
	unsigned count;
};

/*
 * Before anything of the image runs: until then its files are what they are, and nobody is there who could hold up who opens them.
 * name as the shell would look for it in path, in the caller's root and in cwd, which is absolute.
 */
void prefetch_open(const char *name, const char *path, const char *cwd, struct prefetch *ret);
/* Read them, which may go on beside the program, and close them. */
void prefetch_read(struct prefetch *prefetch);
void prefetch_done(struct prefetch *prefetch);

/*
 * The interpreter that the head of a file names, of a script ("#!") or of a 64-bit program; "" for none, or for one
 * that does not fit.  Pure; hostile input.
 */
void prefetch_interpreter(const uint8_t *head, size_t len, char ret_path[PREFETCH_PATH_SIZE]);
