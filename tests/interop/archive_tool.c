/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_tool.c - pack.h as a program, for tests that hold it against other programs and for bench/.
 *
 *	archive-tool pack DIR [GLOB...] > ARCHIVE       nothing is excluded; with globs as for outputs
 *	archive-tool unpack DIR [GLOB...] < ARCHIVE
 *	archive-tool stage DIR > ARCHIVE                as a workspace, with the default excludes
 *
 * Says what it did as one line of JSON on stderr; ends with 1 and the reason on failure.
 * LIMIT_BYTES, LIMIT_MEMBERS, LIMIT_RATIO, LIMIT_APPARENT in the environment are the limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "wire/pack.h"

static int write_stdout(void *ctx, const void *bytes, size_t len)
{
	(void) ctx;
	return write_all(STDOUT_FILENO, bytes, len);
}

static ssize_t read_stdin(void *ctx, void *bytes, size_t cap)
{
	ssize_t n = read(STDIN_FILENO, bytes, cap);

	(void) ctx;
	return n < 0 ? -errno : n;
}

/* The most memory this program has held, of /proc/self/status (that of getrusage() counts the parent's
 * before the exec). */
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

static int do_pack(int dirfd, const struct pack_options *options, struct resoluto_err *err)
{
	const struct resoluto_sink sink = { write_stdout, NULL };
	struct pack_report report;
	int r = pack_tree(dirfd, options, &sink, &report, err);

	if (r == 0)
		fprintf(stderr,
		        "{\"entries\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"excluded\": %" PRIu64
		        ", \"special\": %" PRIu64 ", \"links_out\": %" PRIu64
		        ", \"unreadable\": %" PRIu64 ", \"peak_kib\": %ld}\n",
		        report.entries, report.bytes, report.excluded, report.special,
		        report.links_out, report.unreadable, peak_kib());
	return r;
}

static uint64_t limit(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static int do_unpack(int dirfd, const char *const *globs, struct resoluto_err *err)
{
	const struct unpack_options options = {
		.globs = globs,
		.limits = { .bytes = limit("LIMIT_BYTES"),
		            .members = limit("LIMIT_MEMBERS"),
		            .ratio = limit("LIMIT_RATIO"),
		            .apparent = limit("LIMIT_APPARENT") },
	};
	const struct resoluto_source source = { read_stdin, NULL };
	struct unpack_report report;
	int r = unpack_tree(dirfd, &source, &options, &report, err);

	if (r == 0)
		fprintf(stderr,
		        "{\"members\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"left_out\": %" PRIu64
		        ", \"peak_kib\": %ld}\n",
		        report.members, report.bytes, report.left_out, peak_kib());
	return r;
}

int main(int argc, char **argv)
{
	static const char *const none[] = { NULL };
	const char *const *globs = argc > 3 ? (const char *const *) argv + 3 : NULL;
	struct resoluto_err err = { 0 };
	int dirfd, r = -EINVAL;

	if (argc < 3)
		return 2;
	dirfd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0) {
		perror(argv[2]);
		return 2;
	}
	if (strcmp(argv[1], "pack") == 0)
		r = do_pack(dirfd, &(struct pack_options){ .excludes = none, .globs = globs },
		            &err);
	else if (strcmp(argv[1], "stage") == 0)
		r = do_pack(dirfd, &(struct pack_options){ 0 }, &err);
	else if (strcmp(argv[1], "unpack") == 0)
		r = do_unpack(dirfd, globs, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", strerrorname_np(-r), err.text);
	close(dirfd);
	return r < 0 ? 1 : 0;
}
