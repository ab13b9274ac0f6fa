/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/report.h"
#include "wire/json_text.h"

enum { LINE_MAX_BYTES = 8 * 1024 }; /* of a line of ours */

static int fail(struct report *report, int r, const struct resoluto_err *err)
{
	if (report->failure.code == 0)
		report->failure = *err;
	return r;
}

/* Until the chunk that is under way is stored. */
static int settle(struct report *report)
{
	struct resoluto_err err = { .code = 0 };
	int r;

	if (!report->has_chunk)
		return 0;
	report->has_chunk = false;
	r = ship_settle(report->ship, report->chunk_key, report->chunk.data, report->chunk.len,
	                report->chunk_put, &err);
	return r < 0 ? fail(report, r, &err) : 0;
}

static int put_chunk(void *ctx, const char *key, const void *bytes, size_t len)
{
	struct report *report = ctx;
	struct resoluto_err err = { .code = 0 };
	int r;

	if (report->failure.code)
		return report->failure.code;
	r = settle(report);
	if (r < 0)
		return r;
	buf_clear(&report->chunk);
	r = buf_add(&report->chunk, bytes, len);
	if (r < 0)
		return fail(report, r, &(struct resoluto_err){ r, "a chunk is too large" });
	snprintf(report->chunk_key, sizeof(report->chunk_key), "%s", key);
	r = ship_send(report->ship, key, bytes, len, &report->chunk_put, &err);
	if (r < 0)
		return fail(report, r, &err);
	report->has_chunk = true;
	return 0;
}

int report_init(struct report *report, struct ship *ship, const struct job *job,
                uint64_t first_span, struct resoluto_err *err)
{
	int r;

	*report = (struct report){
		.ship = ship,
		.chunk = BUF_INIT(REPORT_CHUNK_MAX),
		.next_span = first_span,
	};
	r = chunk_writer_new(
		&(struct chunk_writer_options){ .run_id = job->run_id ? job->run_id : "",
	                                        .object_store = job->has_object_store,
	                                        .heartbeat_ms = job->heartbeat_ms,
	                                        .put = put_chunk,
	                                        .ctx = report,
	                                        .now_ms = clock_mono_ms() },
		&report->writer);
	return r < 0 ? resoluto_fail(err, r, "make room for events") : 0;
}

void report_done(struct report *report)
{
	chunk_writer_free(&report->writer);
	buf_done(&report->chunk);
}

static double now(const struct report *report)
{
	return report->told_late ? report->told_late : clock_wall();
}

static int write_open(struct report *report, const struct report_span *span, double when)
{
	return chunk_writer_event(report->writer,
	                          &(struct event_head){ .span_id = span->id,
	                                                .parent_span_id = span->parent,
	                                                .kind = span->kind,
	                                                .name = span->kind,
	                                                .event = "open",
	                                                .ts = when },
	                          NULL, clock_mono_ms());
}

/* Before anything else is written, or sent. */
static int begin(struct report *report)
{
	int r = report->failure.code;

	report->has_begun = true;
	for (unsigned i = 0; r == 0 && i < report->first_count; i++)
		r = write_open(report, report->first[i], report->first_opened[i]);
	report->first_count = 0;
	return r;
}

static int add_event(struct report *report, const struct event_head *head, const char *data_json)
{
	int r = begin(report);

	return r < 0 ? r : chunk_writer_event(report->writer, head, data_json, clock_mono_ms());
}

int report_open(struct report *report, const char *kind, const struct report_span *parent,
                struct report_span *ret_span)
{
	int r;

	event_span_id(report->next_span++, ret_span->id);
	snprintf(ret_span->parent, sizeof(ret_span->parent), "%s", parent ? parent->id : "");
	ret_span->kind = kind;
	if (!report->has_begun && report->first_count < REPORT_FIRST_SPANS) {
		report->first[report->first_count] = ret_span;
		report->first_opened[report->first_count++] = now(report);
		return 0;
	}
	r = begin(report);
	return r < 0 ? r : write_open(report, ret_span, now(report));
}

int report_close(struct report *report, const struct report_span *span, bool is_success)
{
	return add_event(report,
	                 &(struct event_head){ .span_id = span->id,
	                                       .parent_span_id = span->parent,
	                                       .kind = span->kind,
	                                       .name = span->kind,
	                                       .event = "close",
	                                       .status = is_success ? "success" : "failure",
	                                       .ts = now(report) },
	                 NULL);
}

/* A log event has a span id of its own; its parent is the span it belongs to. */
static struct event_head log_head(struct report *report, const struct report_span *span,
                                  char id[EVENT_SPAN_ID_SIZE])
{
	event_span_id(report->next_span++, id);
	return (struct event_head){ .span_id = id,
		                    .parent_span_id = span->id,
		                    .kind = "log",
		                    .event = "log",
		                    .ts = now(report) };
}

int report_line(struct report *report, const struct report_span *span, const char *fmt, ...)
{
	CLEANUP(buf_done) struct buf clean = BUF_INIT(4 * LINE_MAX_BYTES);
	CLEANUP(buf_done) struct buf json = BUF_INIT(32 * LINE_MAX_BYTES);
	char id[EVENT_SPAN_ID_SIZE], text[LINE_MAX_BYTES];
	struct event_head head = log_head(report, span, id);
	va_list ap;
	int r;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r = report->redactor ? redact_text(report->redactor, text, &clean)
	                     : buf_add_str(&clean, text);
	if (r == 0)
		r = buf_add_str(&json, "{\"line\":");
	if (r == 0)
		r = json_add_cstring(&json, clean.data);
	if (r == 0)
		r = buf_add_str(&json, "}");
	return r < 0 ? r : add_event(report, &head, json.data);
}

int report_row(struct report *report, const struct report_span *span, const char *kind,
               const char *data_json)
{
	char id[EVENT_SPAN_ID_SIZE];
	struct event_head head = log_head(report, span, id);

	head.kind = kind;
	return add_event(report, &head, data_json);
}

int report_piece(struct report *report, const struct report_span *span, bool is_stderr,
                 const void *bytes, size_t len, bool has_newline)
{
	char id[EVENT_SPAN_ID_SIZE];
	struct event_head head = log_head(report, span, id);
	struct event_piece piece = { .bytes = bytes,
		                     .len = len,
		                     .is_stderr = is_stderr,
		                     .has_newline = has_newline,
		                     .seq = ++report->seq };
	int r = begin(report);

	return r < 0 ? r : chunk_writer_piece(report->writer, &head, &piece, clock_mono_ms());
}

int report_tick(struct report *report)
{
	int r = begin(report);

	return r < 0 ? r : chunk_writer_tick(report->writer, clock_mono_ms(), clock_wall());
}

int report_due_ms(const struct report *report)
{
	uint64_t now = clock_mono_ms(), due = chunk_writer_due_ms(report->writer, now);

	return due - now > INT_MAX ? INT_MAX : (int) (due - now);
}

int report_send(struct report *report)
{
	int r = begin(report);

	return r < 0 ? r : chunk_writer_flush(report->writer);
}

int report_flush(struct report *report)
{
	int r = report_send(report);

	return r < 0 ? r : settle(report);
}
