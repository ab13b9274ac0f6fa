/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - follow one sandbox from launch to its end.
 *
 * One loop: read what chunks there are, ask for the status when it is due, let the caller feed
 * stdin and look at signals, sleep in the runtime's wait.  What the statuses mean is watch.c's part;
 * here is the I/O.  What the guest wrote is hostile: chunks that no reader takes end the drive as
 * `protocol`, they do not fail it.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "conduit/seek.h"
#include "conduit/tail.h"
#include "sandbox/driver_internal.h"
#include "sandbox/options.h"
#include "sandbox/watch.h"
#include "wire/contract.h"
#include "wire/keys.h"
#include "wire/reason.h"
#include "wire/result.h"

enum {
	CHUNKS_PER_TURN = 64, /* read before status and stdin get their turn */
	SOON_MS = 2,          /* on_idle asked to be called again */
	BARREN_WAKES = 16,    /* wakes in a row that brought nothing before naps begin */
	NAP_MS = 10,
	/* Characters of substrate logs kept but for a silent sandbox: a console's 64 KiB, and what an
	 * emulator said beside it. */
	LOGS_MAX = (64 + 16) * 1024,
};

struct drive {
	struct resoluto_drive_options options;
	const struct driver_clock *clock;
	struct tail tail;
	struct watch watch;
	struct resoluto_handle handle;
	struct resoluto_outcome outcome;
	uint64_t next_poll_ms;
	bool has_sandbox;
	uint64_t from_seq;     /* output before it is not told */
	bool event_failed;     /* on_event, not the tail, returned the failure */
	bool woke_for_nothing; /* woken, but not for idle_fd: the status may have changed */
	unsigned barren;
};

static uint64_t real_now_ms(void *ctx)
{
	return clock_mono_ms();
}

static void real_nap(void *ctx, unsigned nap_ms)
{
	(void) poll(NULL, 0, (int) nap_ms);
}

const struct driver_clock driver_real_clock = { .now_ms = real_now_ms, .nap = real_nap };

static uint64_t now_ms(const struct drive *drive)
{
	return drive->clock->now_ms(drive->clock->ctx);
}

const char *resoluto_disposition_name(enum resoluto_disposition disposition)
{
	static const char *const names[] = {
		[RESOLUTO_COMPLETED] = "completed", [RESOLUTO_UNSTARTABLE] = "unstartable",
		[RESOLUTO_EXTERNAL] = "external",   [RESOLUTO_SILENT] = "silent",
		[RESOLUTO_STOPPED] = "stopped",     [RESOLUTO_REFUSED] = "refused",
	};

	return (size_t) disposition < sizeof(names) / sizeof(names[0]) ? names[disposition] : "";
}

void resoluto_outcome_done(struct resoluto_outcome *outcome)
{
	if (!outcome)
		return;
	free(outcome->result_json);
	free(outcome->substrate_logs);
	free(outcome->isolation_json);
	*outcome = (struct resoluto_outcome){ 0 };
}

static int conclude(struct drive *drive, enum resoluto_disposition disposition, const char *reason)
{
	size_t n = strnlen(reason, sizeof(drive->outcome.reason) - 1);

	drive->outcome.disposition = disposition;
	memcpy(drive->outcome.reason, reason, n);
	drive->outcome.reason[n] = '\0';
	return 1;
}

/* Steps below return 1 when there is an outcome, 0 to go on, or a failure of the drive itself. */

static int on_event(void *ctx, const struct resoluto_event *event)
{
	struct drive *drive = ctx;
	int r;

	drive->outcome.events++;
	if (strcmp(event->event, "open") == 0 && strcmp(event->kind, "workload") == 0)
		drive->outcome.has_started = true;
	if (!drive->options.on_event || drive->options.from_seq == RESOLUTO_SEQ_END ||
	    (event->is_output && event->seq != 0 && event->seq < drive->from_seq))
		return 0;
	r = drive->options.on_event(drive->options.ctx, event);
	drive->event_failed = r < 0;
	return r < 0 ? r : 0;
}

/* A failure to read may be the guest's doing (too large, not a manifest) or the store's. */
static int reading_failed(struct drive *drive, int r)
{
	if (drive->event_failed || (r != -EFBIG && r != -E2BIG && r != -EBADMSG))
		return r;
	return conclude(drive, RESOLUTO_EXTERNAL, reason_name(REASON_PROTOCOL));
}

static int read_chunks(struct drive *drive, int *ret_count, struct resoluto_err *err)
{
	int n = tail_poll(&drive->tail, CHUNKS_PER_TURN, on_event, drive, err);

	*ret_count = n;
	if (n < 0)
		return reading_failed(drive, n);
	drive->outcome.chunks += (uint64_t) n;
	if (n > 0)
		watch_chunk(&drive->watch, now_ms(drive));
	return 0;
}

/* Nobody shall read it again and come to another conclusion: as a string it ends at its first NUL. */
static int bad_result(struct drive *drive)
{
	free(drive->outcome.result_json);
	drive->outcome.result_json = NULL;
	return conclude(drive, RESOLUTO_COMPLETED, reason_name(REASON_BAD_RESULT));
}

/* The verdict of the guest itself; a stop that the runtime knows of (a deadline) explains it. */
static int take_verdict(struct drive *drive, struct resoluto_err *err)
{
	struct node_result_doc doc = { 0 };
	char key[RESOLUTO_KEY_MAX + 1];
	size_t len = 0;
	int r = tail_key(&drive->tail, KEY_RESULT, key, err);

	if (r < 0)
		return r;
	r = resoluto_conduit_get_bytes(drive->options.conduit, key, RESULT_JSON_MAX,
	                               &drive->outcome.result_json, &len, err);
	if (r == -ENOENT)
		return conclude(drive, RESOLUTO_COMPLETED, reason_name(REASON_NO_RESULT));
	if (r == -EFBIG)
		return conclude(drive, RESOLUTO_COMPLETED, reason_name(REASON_BAD_RESULT));
	if (r < 0)
		return r;
	r = node_result_parse(drive->outcome.result_json, len, &doc, err);
	if (r < 0)
		return r == -ENOMEM ? r : bad_result(drive);
	conclude(drive, RESOLUTO_COMPLETED, doc.result.reason ? doc.result.reason : "");
	node_result_doc_done(&doc);
	return 1;
}

static int complete(struct drive *drive, struct resoluto_err *err)
{
	const struct resoluto_drive_options *options = &drive->options;
	struct resoluto_status status;
	int r = take_verdict(drive, err);

	if (r < 0)
		return r;
	r = options->runtime->ops->status(options->runtime, &drive->handle, &status, NULL);
	if (r < 0)
		return 1;
	watch_status(&drive->watch, &status, false, now_ms(drive));
	if (watch_disposition(status.reason) == RESOLUTO_STOPPED)
		conclude(drive, RESOLUTO_STOPPED, status.reason);
	return 1;
}

static int check_complete(struct drive *drive, struct resoluto_err *err)
{
	int r = tail_is_complete(&drive->tail, err);

	if (r < 0)
		return reading_failed(drive, r);
	return r == 0 ? 0 : complete(drive, err);
}

/* All that is left to read, and then the manifest once more. */
static int last_tail(struct drive *drive, struct resoluto_err *err)
{
	int count, r;

	do {
		r = read_chunks(drive, &count, err);
		if (r != 0)
			return r;
	} while (count > 0);
	return check_complete(drive, err);
}

static int ended(struct drive *drive, struct resoluto_err *err)
{
	const struct resoluto_status *last = &drive->watch.last;
	int r = last_tail(drive, err);

	if (r != 0)
		return r;
	if (last->phase == RESOLUTO_PHASE_FAILED) {
		memcpy(drive->outcome.detail, last->detail, sizeof(last->detail));
		return conclude(drive, watch_disposition(last->reason), last->reason);
	}
	/* A manifest whose chunks are not there is no runner's work; a missing one is a lost run. */
	return conclude(drive, RESOLUTO_EXTERNAL,
	                reason_name(drive->tail.has_manifest ? REASON_PROTOCOL : REASON_NO_RESULT));
}

/* What the substrate says in its own words, which are none of our reasons. */
static void keep_words(struct drive *drive)
{
	const struct resoluto_status *last = &drive->watch.last;
	CLEANUP(buf_done)
	struct buf words = BUF_INIT(sizeof(last->reason) + sizeof(last->detail) + 64);
	const char *separator = "";

	if (last->reason[0] && buf_add_str(&words, last->reason) == 0)
		separator = ": ";
	if (last->exit_code > 0 &&
	    buf_addf(&words, "%sexit code %d", words.len > 0 ? ", " : "", last->exit_code) == 0)
		separator = ": ";
	if (last->detail[0])
		(void) buf_addf(&words, "%s%s", separator, last->detail);
	snprintf(drive->outcome.detail, sizeof(drive->outcome.detail), "%s",
	         words.data ? words.data : "");
}

static int unstartable(struct drive *drive)
{
	keep_words(drive);
	return conclude(drive, RESOLUTO_UNSTARTABLE, reason_name(REASON_UNSTARTABLE));
}

static int gone(struct drive *drive, struct resoluto_err *err)
{
	int r = last_tail(drive, err);

	if (r != 0)
		return r;
	keep_words(drive);
	return conclude(drive, RESOLUTO_EXTERNAL, reason_name(REASON_EXTERNAL));
}

static int judge(struct drive *drive, struct resoluto_err *err)
{
	switch (watch_judge(&drive->watch, now_ms(drive))) {
	case WATCH_UNSTARTABLE:
		return unstartable(drive);
	case WATCH_SILENT:
		return conclude(drive, RESOLUTO_SILENT, reason_name(REASON_SILENT));
	case WATCH_ENDED:
		return ended(drive, err);
	case WATCH_GONE:
		return gone(drive, err);
	case WATCH_GO_ON:
		break;
	}
	return 0;
}

/* The status is asked for when a poll is due, and when something woke us that was no chunk. */
static int look(struct drive *drive, struct resoluto_err *err)
{
	const struct resoluto_drive_options *options = &drive->options;
	uint64_t now = now_ms(drive);
	bool is_poll = now >= drive->next_poll_ms;
	struct resoluto_status status;
	int r;

	if (is_poll || drive->woke_for_nothing) {
		r = options->runtime->ops->status(options->runtime, &drive->handle, &status, err);
		if (r < 0)
			return resoluto_fail_in(err, r, "ask for the status");
		watch_status(&drive->watch, &status, is_poll, now);
	}
	if (is_poll)
		drive->next_poll_ms = now + options->poll_interval_ms;
	return judge(drive, err);
}

static int leave(struct drive *drive)
{
	drive->outcome.has_left = true;
	return 1;
}

/* What a callback said of its failure; it may have said nothing. */
static const char *words_of(const struct resoluto_err *why, const char *otherwise)
{
	return why->text[0] ? why->text : otherwise;
}

/* 0 is none, too: whoever leaves the member out does not mean its standard input. */
static int idle_fd(const struct resoluto_drive_options *options)
{
	return options->on_idle && options->idle_fd > 0 ? options->idle_fd : -1;
}

/* 1 in *ret_soon: on_idle wants to be called again soon. */
static int call_on_idle(struct drive *drive, bool *ret_soon, struct resoluto_err *err)
{
	struct resoluto_err why = { 0 };
	int r = 0;

	if (drive->options.on_idle)
		r = drive->options.on_idle(drive->options.ctx, &drive->handle, &why);
	*ret_soon = r == 1;
	if (r == RESOLUTO_IDLE_LEAVE)
		return leave(drive);
	if (r >= 0)
		return 0;
	if (r != -ECANCELED)
		return resoluto_fail(err, r, "%s", words_of(&why, "on_idle failed"));
	/* Show what was said until now; a verdict that came meanwhile stands. */
	r = last_tail(drive, err);
	return r != 0 ? r
	              : conclude(drive, RESOLUTO_STOPPED,
	                         words_of(&why, reason_name(REASON_CANCELLED)));
}

static int wait_ms(const struct drive *drive, bool soon)
{
	uint64_t now = now_ms(drive);
	uint64_t left = drive->next_poll_ms > now ? drive->next_poll_ms - now : 0;
	uint64_t silence = watch_left_ms(&drive->watch, now);

	if (soon && left > SOON_MS)
		left = SOON_MS;
	return (int) (silence < left ? silence : left);
}

static int sleep_in_runtime(struct drive *drive, bool soon, struct resoluto_err *err)
{
	const struct resoluto_drive_options *options = &drive->options;
	int timeout = wait_ms(drive, soon);
	uint64_t start = now_ms(drive);
	int r = options->runtime->ops->wait(options->runtime, &drive->handle, idle_fd(options),
	                                    timeout, err);
	bool is_early = now_ms(drive) - start < (uint64_t) timeout;

	if (r < 0)
		return resoluto_fail_in(err, r, "wait");
	drive->woke_for_nothing = r == 0 && is_early;
	drive->barren = drive->woke_for_nothing ? drive->barren + 1 : 0;
	/* A runtime that always says "look" must not make us spin. */
	if (drive->barren > BARREN_WAKES)
		drive->clock->nap(drive->clock->ctx, NAP_MS);
	return 0;
}

static int turn(struct drive *drive, struct resoluto_err *err)
{
	bool soon = false;
	int count, r;

	r = read_chunks(drive, &count, err);
	if (r != 0)
		return r;
	if (count > 0) {
		drive->barren = 0;
		drive->woke_for_nothing = false;
	}
	r = check_complete(drive, err);
	if (r == 0)
		r = look(drive, err);
	if (r == 0)
		r = call_on_idle(drive, &soon, err);
	if (r != 0 || count == CHUNKS_PER_TURN)
		return r;
	if (drive->options.until_now && count == 0)
		return leave(drive);
	if (drive->options.until_now)
		return 0;
	return sleep_in_runtime(drive, soon, err);
}

size_t driver_last_characters(const char *text, size_t count)
{
	size_t len = strlen(text), at = len;

	while (at > 0 && count > 0) {
		at--;
		if (((unsigned char) text[at] & 0xc0) != 0x80)
			count--;
	}
	return len - at;
}

static void take_logs(struct drive *drive)
{
	const struct resoluto_drive_options *options = &drive->options;
	size_t keep = drive->outcome.disposition == RESOLUTO_SILENT ? RESOLUTO_LOGS_KEPT : LOGS_MAX;
	CLEANUP(mem_free) char *text = NULL;

	/* Bounded by characters: as many lines as there are. */
	if (options->runtime->ops->logs(options->runtime, &drive->handle, UINT_MAX, &text, NULL) <
	            0 ||
	    !text)
		return;
	keep = driver_last_characters(text, keep);
	free(drive->outcome.substrate_logs);
	drive->outcome.substrate_logs = strdup(text + strlen(text) - keep);
}

static void take_evidence(struct drive *drive)
{
	const struct resoluto_drive_options *options = &drive->options;

	drive->outcome.observed_phase = drive->watch.last.phase;
	take_logs(drive);
	if (options->runtime->ops->isolation(options->runtime, &drive->handle,
	                                     &drive->outcome.isolation_json, NULL) < 0)
		drive->outcome.isolation_json = NULL;
}

static int launch(struct drive *drive, struct resoluto_err *err)
{
	const struct resoluto_drive_options *options = &drive->options;
	const struct resoluto_admission *admission = options->admission;
	uint64_t start = now_ms(drive);
	int r;

	if (options->handle) {
		drive->handle = *options->handle;
		return 0;
	}
	if (admission)
		r = admission->acquire(admission->ctx, options->runtime, options->spec,
		                       idle_fd(options), &drive->handle, err);
	else
		r = options->runtime->ops->launch(options->runtime, options->spec, &drive->handle,
		                                  err);
	if (admission)
		drive->outcome.queue_ms = now_ms(drive) - start;
	drive->has_sandbox = r >= 0;
	return r < 0 ? r : 0;
}

static void reap(struct drive *drive)
{
	const struct resoluto_drive_options *options = &drive->options;
	const struct resoluto_admission *admission = options->admission;

	if (!drive->has_sandbox || options->keep_sandbox || drive->outcome.has_left)
		return;
	/* What cannot be removed now carries the run's id: a sweep finds it. */
	(void) options->runtime->ops->destroy(options->runtime, &drive->handle, NULL);
	if (admission)
		admission->release(admission->ctx, &drive->handle);
}

static int follow(struct drive *drive, struct resoluto_err *err)
{
	struct resoluto_err why = { 0 };
	bool soon;
	int r = launch(drive, &why);

	if (r == -ECANCELED) {
		conclude(drive, RESOLUTO_STOPPED, words_of(&why, reason_name(REASON_CANCELLED)));
		return 0;
	}
	if (r < 0)
		return resoluto_fail(err, r, "%s",
		                     words_of(&why, drive->options.admission ? "acquire failed"
		                                                             : "launch failed"));
	drive->next_poll_ms = now_ms(drive);
	r = drive->has_sandbox ? call_on_idle(drive, &soon, err) : 0;
	while (r == 0)
		r = turn(drive, err);
	drive->outcome.handle = drive->handle;
	if (!drive->outcome.has_left)
		take_evidence(drive);
	return r < 0 ? r : 0;
}

/* What the guest wrote cannot fail it: it is read from its beginning then, and judged there. */
static int seek(struct drive *drive, struct resoluto_err *err)
{
	const struct resoluto_drive_options *options = &drive->options;
	struct resoluto_err why = { 0 };
	int r;

	drive->from_seq = options->from_seq;
	if (options->has_tail)
		r = tail_seek_lines(&drive->tail, options->tail_lines, options->tail_streams,
		                    &drive->from_seq, &why);
	else if (options->from_seq == RESOLUTO_SEQ_END)
		r = tail_seek_end(&drive->tail, &why);
	else
		r = tail_seek(&drive->tail, options->from_seq, &why);
	drive->outcome.has_started = drive->tail.knows_workload;
	if (r == -EBADMSG || r == -EFBIG)
		return 0;
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 0;
}

/* What its runner was told to write into each event; NULL: it was not told. */
static const char *run_id_of(const struct resoluto_launch_spec *spec)
{
	static const char name[] = ENV_RUN_ID "=";

	for (const char *const *entry = spec->env; entry && *entry; entry++) {
		if (strncmp(*entry, name, sizeof(name) - 1) == 0)
			return *entry + sizeof(name) - 1;
	}
	return NULL;
}

static int start(struct drive *drive, const struct resoluto_drive_options *options,
                 struct resoluto_err *err)
{
	int r = options_copy(&drive->options, sizeof(drive->options), options, err);

	if (r < 0)
		return r;
	options = &drive->options;
	if (!options->runtime || !options->conduit || !options->spec ||
	    !options->spec->store_prefix)
		return resoluto_fail(err, -EINVAL,
		                     "runtime, conduit, spec and its store_prefix are needed");
	if (drive->options.dead_after_ms == 0)
		drive->options.dead_after_ms = RESOLUTO_DEAD_AFTER_MS;
	if (drive->options.poll_interval_ms == 0)
		drive->options.poll_interval_ms = RESOLUTO_POLL_INTERVAL_MS;
	watch_init(&drive->watch, options->dead_after_ms);
	drive->outcome.substrate_logs = strdup("");
	if (!drive->outcome.substrate_logs)
		return resoluto_fail(err, -ENOMEM, "start the drive");
	r = tail_init(&drive->tail, options->conduit, options->spec->store_prefix);
	if (r < 0)
		return resoluto_fail(err, r, "start the drive");
	chunk_reader_expect(drive->tail.reader, run_id_of(options->spec));
	return seek(drive, err);
}

int driver_drive(const struct resoluto_drive_options *options, const struct driver_clock *clock,
                 struct resoluto_outcome *ret_outcome, struct resoluto_err *err)
{
	struct drive drive = { .clock = clock };
	/* What did not end the drive may have been recorded in it, too. */
	struct resoluto_err why = { 0 };
	int r = ret_outcome ? start(&drive, options, &why)
	                    : resoluto_fail(&why, -EINVAL, "no place for the outcome is given");

	if (r == 0) {
		r = follow(&drive, &why);
		reap(&drive);
	}
	if (drive.tail.reader) {
		drive.outcome.foreign_events = chunk_reader_foreign_events(drive.tail.reader);
		drive.outcome.bad_lines = chunk_reader_bad_lines(drive.tail.reader);
	}
	tail_done(&drive.tail);
	if (r == 0 && !drive.outcome.substrate_logs)
		r = resoluto_fail(&why, -ENOMEM, "keep the substrate's logs");
	if (r < 0) {
		resoluto_outcome_done(&drive.outcome);
		return resoluto_fail(err, r, "%s", why.text);
	}
	*ret_outcome = drive.outcome;
	return 0;
}

int resoluto_drive_node(const struct resoluto_drive_options *options,
                        struct resoluto_outcome *ret_outcome, struct resoluto_err *err)
{
	return driver_drive(options, &driver_real_clock, ret_outcome, err);
}
