/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cleanup.h - a local variable that releases what it holds when it goes out of scope.
 *
 *	CLEANUP(fd_close) int fd = -1;
 *
 * Initialise at the declaration, always to the empty value (-1, NULL, {0}).  To give
 * the resource away, take it out: "return fd_take(&fd);" leaves -1 behind.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Close *fd unless it is -1; errno is kept. */
void fd_close(int *fd);

static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void mem_free(void *p) /* p: address of any pointer variable */
{
	free(*(void **) p);
}

static inline void *mem_take(void *p) /* p: address of any pointer variable */
{
	void *taken = *(void **) p;

	*(void **) p = NULL;
	return taken;
}

static inline void dir_close(DIR **dir)
{
	if (*dir)
		(void) closedir(*dir);
}

static inline void file_close(FILE **file)
{
	if (*file)
		(void) fclose(*file);
}
