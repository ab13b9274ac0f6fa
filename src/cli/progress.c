/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/progress.h"

enum {
	REDRAW_MS = 100,      /* at most so often for the same step */
	COLUMNS_UNKNOWN = 80, /* where the terminal does not tell */
	AMOUNT_MAX = 32,      /* bytes of "12.0 MiB" */
};

static size_t terminal_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return COLUMNS_UNKNOWN;
	return size.ws_col;
}

void progress_init(struct progress *progress, bool is_quiet, bool lines_elsewhere)
{
	*progress = (struct progress){ .fd = STDERR_FILENO };
	if (is_quiet)
		return;
	if (isatty(progress->fd))
		progress->style = PROGRESS_REDRAWN;
	else if (lines_elsewhere)
		progress->style = PROGRESS_LINES;
	progress->columns = terminal_columns(progress->fd);
}

size_t progress_line(const char *step, uint64_t done, uint64_t total, size_t columns,
                     char ret_line[PROGRESS_LINE_MAX])
{
	char amount[AMOUNT_MAX], whole[AMOUNT_MAX];
	size_t len;

	quantity_format_bytes(done, amount, sizeof(amount));
	quantity_format_bytes(total, whole, sizeof(whole));
	if (total > 0)
		snprintf(ret_line, PROGRESS_LINE_MAX, "%s  %s of %s (%.0f %%)", step, amount, whole,
		         100.0 * (double) (done < total ? done : total) / (double) total);
	else if (done > 0)
		snprintf(ret_line, PROGRESS_LINE_MAX, "%s  %s", step, amount);
	else
		snprintf(ret_line, PROGRESS_LINE_MAX, "%s", step);
	len = strlen(ret_line);
	/* The last column stays free: a full line would wrap and could not be erased. */
	if (columns > 0 && len > columns - 1)
		len = columns - 1;
	ret_line[len] = '\0';
	return len;
}

void progress_erase(struct progress *progress)
{
	char blanks[PROGRESS_LINE_MAX + 2];

	if (progress->shown == 0)
		return;
	memset(blanks, ' ', sizeof(blanks));
	blanks[0] = '\r';
	blanks[progress->shown + 1] = '\r';
	(void) write_all(progress->fd, blanks, progress->shown + 2);
	progress->shown = 0;
}

static void redraw(struct progress *progress, const char *step, uint64_t done, uint64_t total)
{
	char line[PROGRESS_LINE_MAX];
	size_t len = progress_line(step, done, total, progress->columns, line);

	progress_erase(progress);
	(void) write_all(progress->fd, line, len);
	progress->shown = len;
	progress->drawn_ms = clock_mono_ms();
}

void progress_show(void *ctx, const char *step, uint64_t done, uint64_t total)
{
	struct progress *progress = ctx;
	bool is_new = strncmp(progress->step, step, PROGRESS_STEP_MAX - 1) != 0;

	if (progress->style == PROGRESS_NONE)
		return;
	if (is_new)
		snprintf(progress->step, sizeof(progress->step), "%s", step);
	if (progress->style == PROGRESS_LINES) {
		if (is_new)
			dprintf(progress->fd, "%s: %s\n", PROGRAM_NAME, progress->step);
	} else if (is_new || clock_mono_ms() - progress->drawn_ms >= REDRAW_MS) {
		redraw(progress, progress->step, done, total);
	}
}
