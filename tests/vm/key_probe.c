/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_probe.c - the only program of an image, under two names.
 *
 * As /program it asks for a key that nobody has, which a kernel answers by starting /sbin/request-key as root, and says
 * what came of it.  As /sbin/request-key it leaves a mark in what is its root.  With an argument it prints that file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK "/mark-of-request-key"

static int print(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[4096];

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stdout);
	return file ? fclose(file) : 1;
}

int main(int argc, char **argv)
{
	long key;

	if (argc > 1)
		return print(argv[1]);
	if (strcmp(argv[0], "/sbin/request-key") == 0)
		return creat(MARK, 0644) < 0;
	/* The kernel waits for its program before it answers. */
	key = syscall(SYS_request_key, "user", "resoluto-no-such-key", "", 0);
	printf("%s %s\n", key < 0 ? strerrorname_np(errno) : "a key",
	       access(MARK, F_OK) == 0 ? "started" : "not started");
	return 0;
}
