/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/program.h"

enum { LOG_TAIL = 8 * 1024 }; /* bytes of a log that are looked at */

/* Without us nobody would remove what it leaves behind. */
static int die_with_us(void *ctx)
{
	pid_t us = *(pid_t *) ctx;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == us ? 0 : -ECANCELED;
}

int program_start(const char *package, const char *const *argv, const struct proc_fd *fds,
                  size_t fd_count, struct proc *ret_proc, struct resoluto_err *err)
{
	pid_t us = getpid();
	const struct proc_options options = { .argv = argv,
		                              .fds = fds,
		                              .fd_count = fd_count,
		                              .prepare = die_with_us,
		                              .ctx = &us };
	int r = proc_spawn(&options, ret_proc, err);

	if (r == -ENOENT)
		return resoluto_fail(err, -ENOPKG,
		                     "the program %s is not installed: apt-get install %s", argv[0],
		                     package);
	return r;
}

int program_wait(const char *name, struct proc *proc, const struct caller *caller, int *ret_status,
                 struct resoluto_err *err)
{
	bool is_watched = caller_can_stop(caller) || caller_looks(caller);
	int r = proc_wait(proc, is_watched ? CALLER_STEP_MS : -1, ret_status);
	/* Even if it has ended: Ctrl-C ends it too, and how is not what its caller is to read. */
	int stop = caller_check(caller, err);

	if (stop < 0)
		return stop;
	if (r < 0 && r != -ETIMEDOUT)
		return resoluto_fail(err, r, "wait for %s", name);
	return r == 0 ? 1 : 0;
}

/* Behind msg=" in a line of logrus, with its escapes undone. */
static void copy_message(const char *line, size_t len, struct program_words *words)
{
	const char *msg = memmem(line, len, "msg=\"", 5);
	const char *end = line + len;
	size_t n = 0;

	if (msg) {
		line = msg + 5;
		if (end > line && end[-1] == '"')
			end--;
	}
	for (; line < end && n < sizeof(words->text) - 1; line++) {
		bool is_escape = msg && *line == '\\' && line + 1 < end;

		line += is_escape;
		if (is_escape && strchr("nrt", *line))
			words->text[n++] = ' ';
		else
			words->text[n++] = *line >= ' ' && *line <= '~' ? *line : ' ';
	}
	words->text[n] = '\0';
}

struct program_words program_words_of(const char *text)
{
	struct program_words words = { "it said nothing" };
	size_t end = strlen(text), start;

	while (end > 0 && strchr("\n\r \t", text[end - 1]))
		end--;
	for (start = end; start > 0 && text[start - 1] != '\n'; start--)
		;
	if (end > start)
		copy_message(text + start, end - start, &words);
	return words;
}

struct program_words program_last_words(int log)
{
	char tail[LOG_TAIL + 1];
	struct stat st;
	ssize_t n = 0;

	if (fstat(log, &st) == 0)
		n = pread(log, tail, LOG_TAIL, st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0);
	tail[n > 0 ? n : 0] = '\0';
	return program_words_of(tail);
}
