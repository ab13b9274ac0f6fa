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
	if (event->is_output && event->bytes)
		r = show(observer, event);
	if (r == 0 && options->on_event)
		r = cancel_if(observer, options->on_event(options->ctx, event));
	return r;
}

int observer_take(const struct observer *observer, struct resoluto_result *result)
{
	uint64_t dropped_apart;
	int r = capture_take(&observer->merged, &result->output, &result->output_len,
	                     &result->output_dropped_bytes);

	if (r == 0)
		r = capture_take(&observer->out, &result->out, &result->out_len, &dropped_apart);
	if (r == 0)
		r = capture_take(&observer->errors, &result->errors, &result->errors_len,
		                 &dropped_apart);
	return r;
}
