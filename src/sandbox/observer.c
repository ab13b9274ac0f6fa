/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "sandbox/observer.h"

void observer_init(struct observer *observer, const struct resoluto_run_options *options)
{
	size_t max = options->max_output ? options->max_output : RESOLUTO_MAX_OUTPUT;

	*observer = (struct observer){ .options = options };
	capture_init(&observer->merged, max);
	capture_init(&observer->out, max);
	capture_init(&observer->errors, max);
}

void observer_done(struct observer *observer)
{
	capture_done(&observer->merged);
	capture_done(&observer->out);
	capture_done(&observer->errors);
}

static int keep(struct observer *observer, const struct resoluto_event *event)
{
	struct capture *apart = event->is_stderr ? &observer->errors : &observer->out;
	int r = capture_add(&observer->merged, event->bytes, event->len);

	return r < 0 ? r : capture_add(apart, event->bytes, event->len);
}

/* A reader may begin anywhere; from there on each piece has the next number. */
static void check_order(struct observer *observer, uint64_t seq)
{
	if (observer->last_seq != 0 && seq != observer->last_seq + 1)
		observer->has_gap = true;
	observer->last_seq = seq;
}

static int cancel_if(struct observer *observer, int r)
{
	if (r >= 0)
		return 0;
	observer->was_cancelled = true;
	return -ECANCELED;
}

static int show(struct observer *observer, const struct resoluto_event *event)
{
	const struct resoluto_run_options *options = observer->options;
	int r = keep(observer, event);

	if (r < 0 || !options->stream || event->len == 0)
		return r;
	return cancel_if(observer,
	                 options->stream(options->ctx, event->is_stderr, event->bytes, event->len));
}

int observer_event(struct observer *observer, const struct resoluto_event *event, uint64_t now_ms)
{
	const struct resoluto_run_options *options = observer->options;
	int r = 0;

	if (observer->first_event_ms == 0)
		observer->first_event_ms = now_ms;
	if (strcmp(event->kind, "workload") == 0 && strcmp(event->event, "open") == 0)
		observer->has_started = true;
	if (strcmp(event->kind, "setup") == 0)
		observer->has_setup = true;
	if (event->is_output && event->bytes) {
		check_order(observer, event->seq);
		r = show(observer, event);
	}
	if (r == 0 && options->on_event)
		r = cancel_if(observer, options->on_event(options->ctx, event));
	return r;
}

int observer_take(const struct observer *observer, struct resoluto_result *result)
{
	struct capture_kept merged = { 0 }, out = { 0 }, errors = { 0 };
	int r = capture_take(&observer->merged, &merged);

	if (r == 0)
		r = capture_take(&observer->out, &out);
	if (r == 0)
		r = capture_take(&observer->errors, &errors);
	/* What there is by now goes with the result, also after a failure. */
	result->output = merged.bytes;
	result->output_len = merged.len;
	result->output_head_len = merged.head_len;
	result->output_dropped_bytes = merged.dropped;
	result->out = out.bytes;
	result->out_len = out.len;
	result->out_head_len = out.head_len;
	result->out_dropped_bytes = out.dropped;
	result->errors = errors.bytes;
	result->errors_len = errors.len;
	result->errors_head_len = errors.head_len;
	result->errors_dropped_bytes = errors.dropped;
	return r;
}
