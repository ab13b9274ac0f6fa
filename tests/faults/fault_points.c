/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_points.c - a library to preload: makes one call of a program fail.
 *
 *	FAULT_IN=PROGRAM           only in this one; children of other names are left alone
 *	FAULT_COUNTS=FILE          of FILE_SIZE bytes: how often each function was called, and whether
 *	                                    the fault has happened; kept by mapping it, since a
 *	                                    confined program opens nothing
 *	FAULT=FUNCTION:N:ACTION    the N-th call from 1; ACTION: EIO ENOSPC ENOMEM EMFILE EAGAIN fail without
 *	                                    doing anything, EINTR so too, "short" writes half
 *
 * A call that closes is done all the same, as the kernel does it.  What the C library calls inside itself is not
 * seen; of its memory, malloc() stands for mmap().
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_SIZE = 4096 };

enum point {
	POINT_WRITE,
	POINT_PWRITE,
	POINT_FSYNC,
	POINT_SYNCFS,
	POINT_RENAMEAT,
	POINT_CLOSE,
	POINT_OPENAT,
	POINT_OPENAT2,
	POINT_MKDIRAT,
	POINT_FTRUNCATE,
	POINT_COPY,
	POINT_MEMFD,
	POINT_SOCKETPAIR,
	POINT_FORK,
	POINT_MALLOC,
	POINT_COUNT,
};

static const char *const point_names[POINT_COUNT] = {
	"write",   "pwrite",    "fsync", "syncfs", "renameat",   "close", "openat", "openat2",
	"mkdirat", "ftruncate", "copy",  "memfd",  "socketpair", "fork",  "malloc",
};

static const struct {
	const char *name;
	int code;
} actions[] = {
	{ "EIO", EIO },       { "ENOSPC", ENOSPC }, { "ENOMEM", ENOMEM }, { "EMFILE", EMFILE },
	{ "EAGAIN", EAGAIN }, { "EINTR", EINTR },   { "short", 0 },
};

/* What lies in the file, for the test to read. */
struct counts {
	uint64_t happened;
	uint64_t calls[POINT_COUNT];
};

static struct counts *counts;
static int chosen = -1; /* a point */
static uint64_t chosen_call;
static int action;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static int find_point(const char *name, size_t len)
{
	for (int i = 0; i < POINT_COUNT; i++) {
		if (strlen(point_names[i]) == len && memcmp(point_names[i], name, len) == 0)
			return i;
	}
	return -1;
}

static void choose(const char *text)
{
	char *end;

	chosen = find_point(text, strcspn(text, ":"));
	text += strcspn(text, ":");
	chosen_call = *text ? strtoull(text + 1, &end, 10) : 0;
	if (chosen < 0 || chosen_call == 0 || *end != ':')
		abort();
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, end + 1) == 0) {
			action = actions[i].code;
			return;
		}
	}
	abort();
}

__attribute__((constructor)) static void set_up(void)
{
	const char *in = getenv("FAULT_IN"), *path = getenv("FAULT_COUNTS");
	const char *fault = getenv("FAULT");
	void *map;
	int fd;

	if (!in || !path || strcmp(in, program_invocation_short_name) != 0)
		return;
	fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	(void) syscall(SYS_close, fd);
	if (fault && fault[0])
		choose(fault);
	counts = map;
}

/* Whether this call is the one. */
static bool is_hit(enum point point)
{
	if (!counts ||
	    __atomic_add_fetch(&counts->calls[point], 1, __ATOMIC_RELAXED) != chosen_call ||
	    (int) point != chosen)
		return false;
	__atomic_store_n(&counts->happened, 1, __ATOMIC_RELAXED);
	return true;
}

static bool fails(enum point point)
{
	if (!is_hit(point))
		return false;
	errno = action;
	return true;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	if (is_hit(POINT_WRITE)) {
		if (action) {
			errno = action;
			return -1;
		}
		len = (len + 1) / 2;
	}
	return syscall(SYS_write, fd, bytes, len);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
	if (is_hit(POINT_PWRITE)) {
		if (action) {
			errno = action;
			return -1;
		}
		len = (len + 1) / 2;
	}
	return syscall(SYS_pwrite64, fd, bytes, len, at);
}

int fsync(int fd)
{
	return fails(POINT_FSYNC) ? -1 : (int) syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
	return fails(POINT_SYNCFS) ? -1 : (int) syscall(SYS_syncfs, fd);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return fails(POINT_RENAMEAT) ? -1
	                             : (int) syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int close(int fd)
{
	bool hit = is_hit(POINT_CLOSE);
	int r = (int) syscall(SYS_close, fd);

	if (!hit || r < 0)
		return r;
	errno = action;
	return -1;
}

int openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return fails(POINT_OPENAT) ? -1 : (int) syscall(SYS_openat, dir, path, flags, mode);
}

/* Of all calls by number only this one is a point. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		real = next("syscall");
	if (number == SYS_openat2 && fails(POINT_OPENAT2))
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	return fails(POINT_MKDIRAT) ? -1 : (int) syscall(SYS_mkdirat, dir, path, mode);
}

int ftruncate64(int fd, off64_t size)
{
	return fails(POINT_FTRUNCATE) ? -1 : (int) syscall(SYS_ftruncate, fd, size);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t len,
                        unsigned flags)
{
	return fails(POINT_COPY)
	               ? -1
	               : syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
}

int memfd_create(const char *name, unsigned flags)
{
	return fails(POINT_MEMFD) ? -1 : (int) syscall(SYS_memfd_create, name, flags);
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
	return fails(POINT_SOCKETPAIR)
	               ? -1
	               : (int) syscall(SYS_socketpair, domain, type, protocol, pair);
}

pid_t fork(void)
{
	static pid_t (*real)(void);

	if (!real)
		real = next("fork");
	return fails(POINT_FORK) ? -1 : real();
}

void *malloc(size_t size)
{
	return fails(POINT_MALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(POINT_MALLOC) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(POINT_MALLOC) ? NULL : __libc_realloc(old, size);
}
