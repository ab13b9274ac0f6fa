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

/* Not flushed: a power cut ends the run whatever is written here, and a disk that others keep busy would hold
 * up the guest, which waits for its answers. */
int shim_write_state(struct shim *shim)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);
	int r = run_state_write(&json, &shim->state);

	return r < 0 ? r
	             : replace_file_unflushed_at(SHIM_FD_RUN, "state.json", json.data, json.len,
	                                         0600, NULL);
}

/* Where it fails, readers see a shim that is gone: shim-killed. */
static void write_last_state(struct shim *shim)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);

	if (shim_write_state(shim) == 0)
		(void) unlinkat(SHIM_FD_RUN, STATE_SPARE, 0);
	else if (run_state_write(&json, &shim->state) == 0)
		(void) run_state_use_reserve(SHIM_FD_RUN, json.data, json.len);
}

static int write_ring(const struct ring *ring, const char *name)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONSOLE_RING + EMULATOR_RING);
	int r = ring_copy(ring, &text);

	return r < 0 ? r
	             : replace_file_unflushed_at(SHIM_FD_RUN, name, text.data ? text.data : "",
	                                         text.len, 0600, NULL);
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

/* QEMU takes some signals as a wish, and ends like one that was not asked. */
static const char *copy_signal(int wait_status, char *ret, size_t size)
{
	if (!WIFSIGNALED(wait_status))
		return "a signal asked it to end";
	snprintf(ret, size, "signal %d (%s)", WTERMSIG(wait_status),
	         strsignal(WTERMSIG(wait_status)));
	return ret;
}

/* What is known beyond the reason's own sentence; "" for nothing. */
static const char *particulars(const struct shim *shim, enum reason reason, char *ret, size_t size)
{
	switch (reason) {
	case REASON_EMULATOR_KILLED:
	case REASON_EMULATOR_CRASHED:
		return copy_signal(shim->ending.wait_status, ret, size);
	case REASON_EMULATOR_FAILED:
		copy_last_line(shim, ret, size);
		return ret;
	case REASON_GUEST_PANIC:
	case REASON_GUEST_OUT_OF_MEMORY:
		return shim->last_words.panic;
	case REASON_GUEST_POWER_OFF:
	case REASON_GUEST_RESET:
	case REASON_BOOT_FAILED:
		return shim->last_words.complaint;
	default:
		return "";
	}
}

/* Short enough for state.json, sentence and particulars together. */
static void explain(struct shim *shim, enum reason reason)
{
	char text[LAST_WORDS_TEXT] = "";
	const char *more = particulars(shim, reason, text, sizeof(text));

	if (!shim->detail[0] && more[0])
		snprintf(shim->detail, sizeof(shim->detail), "%s: %s", reason_sentence(reason),
		         more);
}

/* Of a run that was to be dropped, and was not: somebody may want it, so it is on the disk or not complete. */
static void flush_late(struct shim *shim)
{
	struct resoluto_err err = { 0 };

	if (shim->is_dropped || !shim->ending.has_manifest || store_flush(&shim->store, &err) == 0)
		return;
	(void) unlinkat(SHIM_FD_PREFIX, KEY_MANIFEST, 0);
	shim->ending.has_manifest = false;
	shim->ending.stop = shim->store.trouble;
	snprintf(shim->detail, sizeof(shim->detail), "%s", err.text);
}

void shim_end(struct shim *shim)
{
	struct verdict verdict;

	flush_late(shim);
	last_words_end(&shim->last_words);
	shim->ending.last_word = shim->last_words.word;
	shim->ending.qemu_end = shim->qmp.end;
	shim->ending.store = shim->store.trouble;
	verdict = verdict_of(&shim->ending);
	explain(shim, verdict.reason);
	(void) shim_write_logs(shim);
	shim->state.phase = verdict.phase;
	shim->state.ended_at = clock_wall();
	snprintf(shim->state.reason, sizeof(shim->state.reason), "%s", reason_name(verdict.reason));
	snprintf(shim->state.detail, sizeof(shim->state.detail), "%s", shim->detail);
	write_last_state(shim);
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
	write_last_state(shim);
}
