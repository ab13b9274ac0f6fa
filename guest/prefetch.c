/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/image_path.h"
#include "guest/prefetch.h"
#include "guest/program.h"

#define C_LIBRARY "libc.so.6"

static void take_path(const uint8_t *at, size_t len, char ret_path[PREFETCH_PATH_SIZE])
{
	if (len >= PREFETCH_PATH_SIZE)
		return;
	memcpy(ret_path, at, len);
	ret_path[len] = '\0';
}

static void of_script(const uint8_t *head, size_t len, char ret_path[PREFETCH_PATH_SIZE])
{
	size_t at = 2, end;

	while (at < len && (head[at] == ' ' || head[at] == '\t'))
		at++;
	for (end = at; end < len && !strchr(" \t\n", head[end]); end++)
		;
	if (end < len)
		take_path(head + at, end - at, ret_path);
}

static void of_program(const uint8_t *head, size_t len, char ret_path[PREFETCH_PATH_SIZE])
{
	Elf64_Ehdr file;
	Elf64_Phdr part;

	if (len < sizeof(file))
		return;
	memcpy(&file, head, sizeof(file));
	if (file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_phentsize != sizeof(part) ||
	    file.e_phoff > len)
		return;
	for (size_t i = 0; i < file.e_phnum && (i + 1) * sizeof(part) <= len - file.e_phoff; i++) {
		memcpy(&part, head + file.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type != PT_INTERP)
			continue;
		/* With its 0. */
		if (part.p_offset < len && part.p_filesz > 0 &&
		    part.p_filesz <= len - part.p_offset)
			take_path(head + part.p_offset, part.p_filesz - 1, ret_path);
		return;
	}
}

void prefetch_interpreter(const uint8_t *head, size_t len, char ret_path[PREFETCH_PATH_SIZE])
{
	ret_path[0] = '\0';
	if (len >= 2 && memcmp(head, "#!", 2) == 0)
		of_script(head, len, ret_path);
	else if (len >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
		of_program(head, len, ret_path);
}

/* One more regular file, -1 if it is none.  By its whole path: from a directory in /proc a relative one would not leave its file
 * system (image_path.h). */
static int add(struct prefetch *prefetch, const char *cwd, const char *path)
{
	const bool is_whole = path[0] == '/';
	char whole[PROGRAM_PATH_MAX];
	CLEANUP(fd_close) int fd = -1;
	struct stat st;

	if (snprintf(whole, sizeof(whole), "%s%s%s", is_whole ? "" : cwd, is_whole ? "" : "/",
	             path) >= (int) sizeof(whole))
		return -1;
	/* Whatever else the image has there must not be waited for. */
	fd = image_open(whole, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	prefetch->files[prefetch->count++] = fd;
	return fd_take(&fd);
}

static int find(struct prefetch *prefetch, const char *name, const char *path, const char *cwd)
{
	char candidate[PROGRAM_PATH_MAX];
	int fd = -1;

	if (strchr(name, '/'))
		return add(prefetch, cwd, name);
	for (int tries = 0;
	     fd < 0 && tries < PREFETCH_TRIES && program_next_candidate(&path, name, candidate);
	     tries++)
		fd = add(prefetch, cwd, candidate);
	return fd;
}

/* Beside the loader, where its links lead. */
static void add_library(struct prefetch *prefetch, int loader)
{
	char link[64], path[PROGRAM_PATH_MAX], *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", loader);
	n = readlink(link, path, sizeof(path) - sizeof(C_LIBRARY));
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return;
	memcpy(slash + 1, C_LIBRARY, sizeof(C_LIBRARY));
	(void) add(prefetch, "", path);
}

void prefetch_open(const char *name, const char *path, const char *cwd, struct prefetch *ret)
{
	int fd;

	*ret = (struct prefetch){ .count = 0 };
	fd = find(ret, name, path, cwd);
	for (int depth = 0; fd >= 0 && depth < PREFETCH_DEPTH; depth++) {
		uint8_t head[PREFETCH_HEAD];
		char interpreter[PREFETCH_PATH_SIZE];
		ssize_t n = pread(fd, head, sizeof(head), 0);

		prefetch_interpreter(head, n > 0 ? (size_t) n : 0, interpreter);
		if (!interpreter[0])
			break;
		fd = add(ret, cwd, interpreter);
		/* A loader has none, and to read its head now would be one more request to wait for. */
		if (head[0] != '#')
			break;
	}
	if (fd >= 0)
		add_library(ret, fd);
}

void prefetch_read(struct prefetch *prefetch)
{
	for (unsigned i = 0; i < prefetch->count; i++)
		(void) readahead(prefetch->files[i], 0, PREFETCH_BYTES);
	prefetch_done(prefetch);
}

void prefetch_done(struct prefetch *prefetch)
{
	while (prefetch->count > 0)
		fd_close(&prefetch->files[--prefetch->count]);
}
