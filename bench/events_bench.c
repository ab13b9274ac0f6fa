/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events_bench.c - the C side of bench/events.sh: how long writing and reading the events of many lines takes.
 *
 * usage: events_bench emit DIR LINES [flushed]     redact, cut, write and store lines as the runner does
 *        events_bench tail DIR                     read them back as the host does
 *
 * The lines are those of events_original.py.  Prints the seconds and what came of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "conduit/local.h"
#include "conduit/tail.h"
#include "wire/chunk_writer.h"
#include "wire/keys.h"
#include "wire/redact.h"
#include "wire/result.h"

#define PREFIX "run/run-0123456789abcdef"

enum {
	READ_BYTES = 64 * 1024,       /* what the runner reads of a pipe at once */
	TEXT_MAX = 512 * 1024 * 1024, /* bytes of all lines together */
};

struct emitter {
	int root;
	enum local_durability durability;
	struct chunk_writer *writer;
	struct redactor *redactor;
	struct redact_stream *stream;
	struct line_cutter cutter;
	struct buf clean;
	uint64_t seq, now_ms;
	double ts;
	uint64_t id;
};

static void fail(const char *what)
{
	fprintf(stderr, "events_bench: %s\n", what);
	exit(1);
}

static int put(void *ctx, const char *key, const void *bytes, size_t len)
{
	struct emitter *emitter = ctx;

	return conduit_local_put_at(emitter->root, key, bytes, len, emitter->durability, NULL);
}

static int emit_piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	struct emitter *emitter = ctx;
	char id[EVENT_SPAN_ID_SIZE];
	struct event_head head = {
		.span_id = id,
		.parent_span_id = "00000000000000aa",
		.kind = "log",
		.event = "log",
		.ts = emitter->ts,
	};
	struct event_piece piece = { bytes, len, false, has_newline, ++emitter->seq };

	event_span_id(emitter->id += 0x9e3779b97f4a7c15ull, id);
	return chunk_writer_piece(emitter->writer, &head, &piece, emitter->now_ms);
}

static void emit_read(struct emitter *emitter, const char *bytes, size_t len)
{
	emitter->now_ms = clock_mono_ms();
	emitter->ts = clock_wall();
	buf_clear(&emitter->clean);
	if (redact_stream_feed(emitter->stream, bytes, len, &emitter->clean) < 0 ||
	    line_cutter_feed(&emitter->cutter, emitter->clean.data, emitter->clean.len, emit_piece,
	                     emitter) < 0)
		fail("emit");
	if (chunk_writer_tick(emitter->writer, emitter->now_ms, emitter->ts) < 0)
		fail("ship");
}

static void add_lines(struct buf *text, int lines)
{
	for (int i = 0; i < lines; i++) {
		if (buf_addf(text,
		             "2026-11-29 12:00:00 INFO worker-%d: step %d of the job is done, 42 "
		             "items left\n",
		             i % 8, i) < 0)
			fail("out of memory");
	}
}

static void emitter_init(struct emitter *emitter, const char *dir, bool is_flushed)
{
	CLEANUP(mem_free) char *path = NULL;
	struct chunk_writer_options options = { .run_id = "run-0123456789abcdef",
		                                .put = put,
		                                .ctx = emitter,
		                                .now_ms = clock_mono_ms() };

	*emitter = (struct emitter){
		.durability = is_flushed ? LOCAL_FLUSHED : LOCAL_RENAME_ONLY,
		.cutter = LINE_CUTTER_INIT,
		.clean = BUF_INIT(TEXT_MAX),
	};
	if (asprintf(&path, "%s/" PREFIX, dir) < 0 || mkdirs(path, 0700) < 0)
		fail("make the directory");
	emitter->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (emitter->root < 0 || chunk_writer_new(&options, &emitter->writer) < 0 ||
	    redactor_new(NULL, true, &emitter->redactor) < 0 ||
	    redact_stream_new(emitter->redactor, &emitter->stream) < 0)
		fail("set up");
}

static void emitter_done(struct emitter *emitter)
{
	chunk_writer_free(&emitter->writer);
	redact_stream_free(&emitter->stream);
	redactor_free(&emitter->redactor);
	buf_done(&emitter->cutter.held);
	buf_done(&emitter->clean);
	fd_close(&emitter->root);
}

static void write_span(struct emitter *emitter, const char *event)
{
	struct event_head head = { .span_id = "00000000000000aa",
		                   .kind = "workload",
		                   .name = "run",
		                   .event = event,
		                   .ts = 1 };

	if (chunk_writer_event(emitter->writer, &head, NULL, clock_mono_ms()) < 0)
		fail("write a span");
}

static void finish(struct emitter *emitter)
{
	CLEANUP(buf_done) struct buf manifest = BUF_INIT(MANIFEST_JSON_MAX);

	buf_clear(&emitter->clean);
	if (redact_stream_end(emitter->stream, &emitter->clean) < 0 ||
	    line_cutter_feed(&emitter->cutter, emitter->clean.data, emitter->clean.len, emit_piece,
	                     emitter) < 0 ||
	    line_cutter_idle(&emitter->cutter, emit_piece, emitter) < 0)
		fail("finish");
	write_span(emitter, "close");
	if (chunk_writer_flush(emitter->writer) < 0 ||
	    manifest_write(&manifest, chunk_writer_count(emitter->writer)) < 0 ||
	    put(emitter, KEY_MANIFEST, manifest.data, manifest.len) < 0)
		fail("finish");
}

static void run_emit(const char *dir, int lines, bool is_flushed)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	CLEANUP(emitter_done) struct emitter emitter;
	uint64_t start;

	add_lines(&text, lines);
	emitter_init(&emitter, dir, is_flushed);
	start = clock_mono_us();
	write_span(&emitter, "open");
	for (size_t at = 0; at < text.len; at += READ_BYTES)
		emit_read(&emitter, text.data + at,
		          text.len - at < READ_BYTES ? text.len - at : READ_BYTES);
	finish(&emitter);
	printf("%.6f %u\n", (double) (clock_mono_us() - start) / 1e6,
	       chunk_writer_count(emitter.writer));
}

struct told {
	uint64_t events, lines, bytes;
};

static int note(void *ctx, const struct resoluto_event *event)
{
	struct told *told = ctx;

	told->events++;
	told->lines += event->is_output;
	told->bytes += event->len;
	return 0;
}

static void close_conduit(struct resoluto_conduit **conduit)
{
	resoluto_conduit_close(*conduit);
}

static void run_tail(const char *dir)
{
	CLEANUP(close_conduit) struct resoluto_conduit *conduit = NULL;
	CLEANUP(mem_free) char *url = NULL;
	struct told told = { 0 };
	struct tail tail;
	uint64_t start;
	int r;

	if (asprintf(&url, "localfs://%s", dir) < 0 ||
	    resoluto_conduit_open_url(url, &conduit, NULL) < 0 ||
	    tail_init(&tail, conduit, PREFIX) < 0)
		fail("open");
	start = clock_mono_us();
	do
		r = tail_poll(&tail, 100, note, &told, NULL);
	while (r > 0);
	if (r < 0 || tail_is_complete(&tail, NULL) != 1)
		fail("tail");
	printf("%.6f %llu\n", (double) (clock_mono_us() - start) / 1e6,
	       (unsigned long long) told.events);
	tail_done(&tail);
}

int main(int argc, char *argv[])
{
	if (argc >= 4 && strcmp(argv[1], "emit") == 0)
		run_emit(argv[2], atoi(argv[3]), argc == 5 && strcmp(argv[4], "flushed") == 0);
	else if (argc == 3 && strcmp(argv[1], "tail") == 0)
		run_tail(argv[2]);
	else
		fail("usage: events_bench emit DIR LINES [flushed] | tail DIR");
	return 0;
}
