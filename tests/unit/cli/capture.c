/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "capture.h"
#include "cli/commands.h"

enum { WORDS_MAX = 32, CAPTURED_MAX = 4 * 1024 * 1024 };

/* A descriptor turned into a file in memory, and what it was. */
struct diverted {
	int fd, file, before;
};

static struct diverted divert(int fd)
{
	struct diverted diverted = { fd, memfd_create("captured", MFD_CLOEXEC), -1 };

	diverted.before = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (diverted.file < 0 || diverted.before < 0 || dup2(diverted.file, fd) < 0)
		abort();
	return diverted;
}

static char *restore(struct diverted *diverted)
{
	struct buf text = BUF_INIT(CAPTURED_MAX);

	if (dup2(diverted->before, diverted->fd) < 0 || lseek(diverted->file, 0, SEEK_SET) < 0 ||
	    read_rest(diverted->file, &text) < 0)
		abort();
	fd_close(&diverted->before);
	fd_close(&diverted->file);
	return buf_take(&text);
}

struct captured capture_main(const char *const *words)
{
	const char *argv[WORDS_MAX + 2] = { "resoluto-sandbox" };
	struct captured captured = { 0 };
	struct diverted out, errors;

	for (size_t i = 0; words[i] && i < WORDS_MAX; i++)
		argv[i + 1] = words[i];
	fflush(NULL);
	out = divert(STDOUT_FILENO);
	errors = divert(STDERR_FILENO);
	captured.code = command_main(cli_commands, argv);
	fflush(NULL);
	captured.out = restore(&out);
	captured.errors = restore(&errors);
	return captured;
}

void captured_done(struct captured *captured)
{
	free(captured->out);
	free(captured->errors);
}
