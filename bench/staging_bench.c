/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging_bench.c - our side of bench/staging.sh:
 *
 *	staging_bench in TREE ARCHIVE     pack TREE as a workspace; ARCHIVE appears whole and is on disk
 *	staging_bench out ARCHIVE TREE    unpack ARCHIVE into the directory TREE
 *
 * Prints "SECONDS PEAK", PEAK being the most memory it has held, in KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "wire/pack.h"

static int write_fd(void *ctx, const void *bytes, size_t len)
{
	return write_all(*(int *) ctx, bytes, len);
}

static ssize_t read_fd(void *ctx, void *bytes, size_t cap)
{
	ssize_t n = read(*(int *) ctx, bytes, cap);

	return n < 0 ? -errno : n;
}

static long peak_kib(void)
{
	char text[4096] = "";
	const char *line;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read_up_to(fd, text, sizeof(text) - 1) < 0)
		return -1;
	close(fd);
	line = strstr(text, "VmHWM:");
	return line ? strtol(line + strlen("VmHWM:"), NULL, 10) : -1;
}

/* As a local Conduit puts an object, and the original does: temporary file, flush, rename. */
static int stage_in(const char *tree, const char *archive, struct resoluto_err *err)
{
	struct pack_report report;
	char part[4096];
	int dirfd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, r;
	const struct resoluto_sink sink = { write_fd, &fd };

	snprintf(part, sizeof(part), "%s.part", archive);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (dirfd < 0 || fd < 0)
		return resoluto_fail(err, -errno, "open %s or %s", tree, part);
	r = pack_tree(dirfd, &(struct pack_options){ 0 }, &sink, &report, err);
	if (r == 0 && (fsync(fd) < 0 || rename(part, archive) < 0))
		r = resoluto_fail(err, -errno, "put %s", archive);
	close(fd);
	close(dirfd);
	return r;
}

static int stage_out(const char *archive, const char *tree, struct resoluto_err *err)
{
	struct unpack_report report;
	int dirfd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open(archive, O_RDONLY | O_CLOEXEC), r;
	const struct resoluto_source source = { read_fd, &fd };

	if (dirfd < 0 || fd < 0)
		return resoluto_fail(err, -errno, "open %s or %s", tree, archive);
	r = unpack_tree(dirfd, &source, &(struct unpack_options){ 0 }, &report, err);
	close(fd);
	close(dirfd);
	return r;
}

int main(int argc, char **argv)
{
	struct resoluto_err err = { 0 };
	uint64_t start = clock_mono_us();
	int r = -EINVAL;

	if (argc == 4 && strcmp(argv[1], "in") == 0)
		r = stage_in(argv[2], argv[3], &err);
	else if (argc == 4 && strcmp(argv[1], "out") == 0)
		r = stage_out(argv[2], argv[3], &err);
	if (r < 0) {
		fprintf(stderr, "staging_bench: %s: %s\n", err.text, strerror(-r));
		return 1;
	}
	printf("%.6f %ld\n", (double) (clock_mono_us() - start) / 1e6, peak_kib());
	return 0;
}
