/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "shim/shim.h"

#define PANIC_WORDS "Kernel panic"

/* Also with the first reason kept: killing twice does no harm. */
int shim_stop(struct shim *shim, enum reason reason, const char *detail)
{
	if (shim->ending.stop == REASON_NONE && reason != REASON_NONE) {
		shim->ending.stop = reason;
		snprintf(shim->detail, sizeof(shim->detail), "%s", detail ? detail : "");
	}
	shim->is_stopping = true;
	(void) proc_kill(&shim->qemu, SIGKILL);
	return 0;
}

int shim_write_state(struct shim *shim)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);
	int r = run_state_write(&json, &shim->state);

	return r < 0 ? r
	             : replace_file_at(SHIM_FD_RUN, "state.json", json.data, json.len, 0600, NULL);
}

static int write_ring(const struct ring *ring, const char *name)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONSOLE_RING + EMULATOR_RING);
	int r = ring_copy(ring, &text);

	return r < 0 ? r
	             : replace_file_at(SHIM_FD_RUN, name, text.data ? text.data : "", text.len,
	                               0600, NULL);
}

int shim_write_logs(struct shim *shim)
{
	int r = write_ring(&shim->console_ring, "console.log");

	/* Logs are for people: a full disk must not end the run. */
	if (r == 0 && (shim->emulator_ring.at > 0 || shim->emulator_ring.is_full))
		r = write_ring(&shim->emulator_ring, "qemu.log");
	(void) r;
	return 0;
}

static bool console_panics(const struct shim *shim)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONSOLE_RING);

	if (ring_copy(&shim->console_ring, &text) < 0 || text.len == 0)
		return false;
	return memmem(text.data, text.len, PANIC_WORDS, strlen(PANIC_WORDS)) != NULL;
}

/* The last line on QEMU's stderr says why it gave up. */
static void copy_last_line(const struct shim *shim, char *ret, size_t size)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EMULATOR_RING);
	const char *start;

	if (ring_copy(&shim->emulator_ring, &text) < 0 || text.len == 0)
		return;
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.data[--text.len] = '\0';
	start = memrchr(text.data, '\n', text.len);
	snprintf(ret, size, "%s", start ? start + 1 : text.data);
	for (char *at = ret; *at; at++) {
		if ((unsigned char) *at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

static void explain(struct shim *shim, enum reason reason)
{
	const int status = shim->ending.wait_status;

	if (shim->detail[0])
		return;
	if (reason == REASON_EMULATOR_KILLED)
		snprintf(shim->detail, sizeof(shim->detail), "QEMU was ended by signal %d (%s)",
		         WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (reason == REASON_EMULATOR_FAILED)
		copy_last_line(shim, shim->detail, sizeof(shim->detail));
}

void shim_end(struct shim *shim)
{
	struct verdict verdict;

	shim->ending.console_panics = console_panics(shim);
	shim->ending.qemu_end = shim->qmp.end;
	shim->ending.store = shim->store.trouble;
	verdict = verdict_of(&shim->ending);
	explain(shim, verdict.reason);
	(void) shim_write_logs(shim);
	shim->state.phase = verdict.phase;
	shim->state.ended_at = clock_wall();
	snprintf(shim->state.reason, sizeof(shim->state.reason), "%s", reason_name(verdict.reason));
	snprintf(shim->state.detail, sizeof(shim->state.detail), "%s", shim->detail);
	(void) shim_write_state(
		shim); /* where it fails, readers see a shim that is gone: shim-killed */
	shim_tell_news(shim);
	(void) shim_feed_caller(shim);
}

void shim_refuse(struct shim *shim, enum reason reason, const struct resoluto_err *err)
{
	shim->state.phase = RESOLUTO_PHASE_FAILED;
	shim->state.ended_at = clock_wall();
	snprintf(shim->state.reason, sizeof(shim->state.reason), "%s", reason_name(reason));
	snprintf(shim->state.detail, sizeof(shim->state.detail), "%.400s: %.100s", err->text,
	         strerror(-err->code));
	(void) shim_write_state(shim);
}
