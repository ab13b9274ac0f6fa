/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_prefetch.c - the head of an image's script or program, read by PID 1: the interpreter that is found stands in it, fits,
 * and does not depend on what follows.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/prefetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void find(const uint8_t *data, size_t size, char ret_path[PREFETCH_PATH_SIZE])
{
	memset(ret_path, 'x', PREFETCH_PATH_SIZE); /* nothing that was there before may count */
	prefetch_interpreter(data, size, ret_path);
	require(memchr(ret_path, '\0', PREFETCH_PATH_SIZE) != NULL);
}

static void check(const uint8_t *data, size_t size, const char *path)
{
	const size_t len = strlen(path);
	const uint8_t *at = memmem(data, size, path, len);

	require(at != NULL);
	if (memcmp(data, "#!", 2) == 0)
		require(!strpbrk(path, " \t\n") && at + len < data + size);
	else
		require(size >= sizeof(Elf64_Ehdr) && memcmp(data, ELFMAG, SELFMAG) == 0 &&
		        data[EI_CLASS] == ELFCLASS64);
}

/* A head of which less could be read, with nothing behind it that a sanitizer would take for its own. */
static void check_cut(const uint8_t *data, size_t size, const char *whole)
{
	char path[PREFETCH_PATH_SIZE];
	uint8_t *cut = malloc(size > 0 ? size : 1);

	require(cut != NULL);
	memcpy(cut, data, size);
	find(cut, size, path);
	require(!path[0] || strcmp(path, whole) == 0);
	free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[PREFETCH_PATH_SIZE];

	if (size > PREFETCH_HEAD)
		size = PREFETCH_HEAD;
	if (!data || size == 0)
		return 0;
	find(data, size, path);
	if (path[0])
		check(data, size, path);
	check_cut(data, size - 1, path);
	check_cut(data, size / 2, path);
	return 0;
}
