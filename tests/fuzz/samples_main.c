/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples_main.c - runs a fuzz target over its samples as an ordinary test, without libFuzzer.
 *
 * usage: fuzz-TARGET FOLDER      every file in it is one input
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAMPLE_MAX = 16 * 1024 * 1024 }; /* bytes */

static int run_sample(int dirfd, const char *name)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(0);
	struct resoluto_err err;
	char *exact;

	if (read_file_at(dirfd, name, SAMPLE_MAX, &bytes, &err) < 0) {
		printf("# %s\n", err.text);
		return -1;
	}
	/* A copy without the 0 behind it, so that the sanitizer sees a read beyond the end. */
	exact = malloc(bytes.len > 0 ? bytes.len : 1);
	if (!exact)
		return -1;
	memcpy(exact, bytes.data, bytes.len);
	(void) LLVMFuzzerTestOneInput((const uint8_t *) exact, bytes.len);
	free(exact);
	return 0;
}

int main(int argc, char *argv[])
{
	CLEANUP(dir_close) DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		printf("%sok %d - %s\n", run_sample(dirfd(dir), entry->d_name) < 0 ? "not " : "",
		       count, entry->d_name);
	}
	printf("1..%d\n", count);
	return count > 0 ? 0 : 1;
}
