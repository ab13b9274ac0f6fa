/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * progress.h - what is going on, on standard error.
 *
 * On a terminal one line that is redrawn and, before anything else is written, erased.  Elsewhere a
 * line per step, where the command allows it (never `run`: its standard error is the program's).
 * No colours anywhere, so that NO_COLOR has nothing to ask for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PROGRESS_LINE_MAX = 256, /* bytes of a line */
	PROGRESS_STEP_MAX = 80,  /* bytes of a step's name */
};

enum progress_style {
	PROGRESS_NONE,
	PROGRESS_REDRAWN,
	PROGRESS_LINES,
};

struct progress {
	int fd;
	enum progress_style style;
	size_t columns;               /* of the terminal */
	size_t shown;                 /* bytes on the terminal's line now */
	uint64_t drawn_ms;            /* when it was drawn */
	char step[PROGRESS_STEP_MAX]; /* the last one */
};

/* lines_elsewhere: a line per step where there is no terminal. */
void progress_init(struct progress *progress, bool is_quiet, bool lines_elsewhere);
/* Of type resoluto_progress_fn, ctx being a struct progress. */
void progress_show(void *ctx, const char *step, uint64_t done, uint64_t total);
void progress_erase(struct progress *progress);

/* "step  12.0 MiB of 40.0 MiB (30 %)", cut to columns - 1.  Pure; returns its length. */
size_t progress_line(const char *step, uint64_t done, uint64_t total, size_t columns,
                     char ret_line[PROGRESS_LINE_MAX]);
