/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_samples.c - the wire layer as a program, for the tests of this folder.
 *
 *	wire_samples documents      sample documents, one a line: schema, tab, JSON
 *	wire_samples write DIR      a finished run in DIR: its chunks, result and manifest; the program's output is
 *	                            standard input, after redaction
 *	wire_samples read DIR       what a host reads of the run in DIR, one JSON object a line
 *	wire_samples redact         standard input to standard output
 *	wire_samples parse          documents as `documents` writes them; for each line what was read of it, or "refused"
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "wire/base64.h"
#include "wire/chunk_reader.h"
#include "wire/chunk_writer.h"
#include "wire/json_text.h"
#include "wire/keys.h"
#include "wire/redact.h"
#include "wire/result.h"

enum { TEXT_MAX = 64 << 20 };

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "wire_samples: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void show(const char *schema, struct buf *document)
{
	printf("%s\t%s", schema, document->data);
	buf_clear(document);
}

static const struct event_head span_head = {
	.run_id = "run-0123456789abcdef",
	.span_id = "00000000000000aa",
	.parent_span_id = "00000000000000bb",
	.kind = "workload",
	.name = "n\xc3\xa4me \"\\\xff",
	.event = "close",
	.status = "success",
	.ts = 1764442313.25,
};

static void show_events(struct buf *out)
{
	static const struct event_piece pieces[] = {
		{ "plain", 5, false, true, 1 },
		{ "", 0, true, true, 2 },
		{ "prompt? ", 8, false, false, 3 },
		{ "\0\xff\xed\xa0\x80", 5, true, true, 4 },
		{ "\xe2\x80\xa8\xf0\x9f\x98\x80", 7, false, true, UINT64_MAX >> 1 },
	};
	struct event_head head = span_head;

	must(event_write(out, &head, "{\"argv\": [\"\xc3\xa4\", 1.5, null]}"), "event");
	show("event", out);
	must(event_write(out, &(struct event_head){ .kind = "k", .event = "open" }, NULL), "event");
	show("event", out);
	head.event = head.kind = "log";
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		must(event_write_piece(out, &head, &pieces[i]), "piece");
		show("event", out);
	}
}

static int show_chunk(void *ctx, const char *key, const void *bytes, size_t len)
{
	printf("event\t%.*s", (int) len, (const char *) bytes);
	return 0;
}

static void show_heartbeat(void)
{
	struct chunk_writer_options options = { .run_id = "run-1", .put = show_chunk };
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = NULL;

	must(chunk_writer_new(&options, &writer), "writer");
	must(chunk_writer_tick(writer, CHUNK_HEARTBEAT_MS, 1764442313.5), "heartbeat");
}

static struct node_result full_result(json_t *timings, json_t *canary)
{
	return (struct node_result){
		.node_id = "run",
		.has_exit_code = true,
		.exit_code = 137,
		.signal = 9,
		.ran = true,
		.output_archive = KEY_OUTBOX_OUTPUT,
		.reason = "out-of-memory",
		.detail = "d\xc3\xa4\n\x01",
		.guest_boot_id = "22222222-2222-2222-2222-222222222222",
		.timings_ms = timings,
		.canary = canary,
		.redactions = 3,
		.output_is_complete = true,
	};
}

static void show_results(struct buf *out)
{
	json_t *timings = json_pack("{s:i, s:i}", "boot", 300, "run", 12);
	json_t *canary = json_pack("[{s:s, s:b, s:s}]", "probe", "external", "ok", 1, "detail",
	                           "\xc3\xa4");
	struct node_result result = full_result(timings, canary);

	must(node_result_write(out, &result), "result");
	show("result", out);
	must(node_result_write(out, &(struct node_result){ 0 }), "result");
	show("result", out);
	must(node_result_write(out,
	                       &(struct node_result){ .success = true, .has_exit_code = true }),
	     "result");
	show("result", out);
	json_decref(timings);
	json_decref(canary);
}

static int run_documents(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

	show_events(&out);
	show_heartbeat();
	show_results(&out);
	must(manifest_write(&out, 0), "manifest");
	show("manifest", &out);
	must(manifest_write(&out, KEY_CHUNK_MAX), "manifest");
	show("manifest", &out);
	return 0;
}

struct run {
	int dirfd;
	struct chunk_writer *writer;
	uint64_t seq;
};

static int put(void *ctx, const char *key, const void *bytes, size_t len)
{
	struct run *run = ctx;

	return replace_file_at(run->dirfd, key, bytes, len, 0644, NULL);
}

static int add_piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	struct run *run = ctx;
	struct event_head head = { .parent_span_id = "00000000000000aa",
		                   .kind = "log",
		                   .event = "log",
		                   .ts = 1.5 };
	struct event_piece piece = { bytes, len, run->seq % 2, has_newline, run->seq + 1 };
	char id[EVENT_SPAN_ID_SIZE];

	event_span_id(++run->seq, id);
	head.span_id = id;
	return chunk_writer_piece(run->writer, &head, &piece, 1);
}

static void write_output(struct run *run, struct redactor *redactor)
{
	CLEANUP(buf_done) struct buf raw = BUF_INIT(TEXT_MAX), clean = BUF_INIT(TEXT_MAX);
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	struct line_cutter cutter = LINE_CUTTER_INIT;

	must(read_rest(STDIN_FILENO, &raw), "read standard input");
	must(redact_stream_new(redactor, &stream), "redact");
	must(redact_stream_feed(stream, raw.data, raw.len, &clean), "redact");
	must(redact_stream_end(stream, &clean), "redact");
	must(line_cutter_feed(&cutter, clean.data, clean.len, add_piece, run), "cut");
	must(line_cutter_idle(&cutter, add_piece, run), "cut");
	buf_done(&cutter.held);
}

static void write_span(struct run *run, const char *event)
{
	struct event_head head = span_head;

	head.event = event;
	must(chunk_writer_event(run->writer, &head, NULL, 1), "span");
}

static void write_end(struct run *run, uint64_t redactions)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
	struct node_result result = full_result(NULL, NULL);

	result.redactions = redactions;
	must(node_result_write(&out, &result), "result");
	must(put(run, KEY_RESULT, out.data, out.len), "put the result");
	must(chunk_writer_flush(run->writer), "flush");
	buf_clear(&out);
	must(manifest_write(&out, chunk_writer_count(run->writer)), "manifest");
	must(put(run, KEY_MANIFEST, out.data, out.len), "put the manifest");
}

static int run_write(int dirfd)
{
	struct run run = { .dirfd = dirfd };
	struct chunk_writer_options options = { .run_id = "run-0123456789abcdef",
		                                .put = put,
		                                .ctx = &run };
	CLEANUP(redactor_free) struct redactor *redactor = NULL;

	must(chunk_writer_new(&options, &run.writer), "writer");
	must(redactor_new(NULL, true, &redactor), "redactor");
	write_span(&run, "open");
	write_output(&run, redactor);
	write_span(&run, "close");
	write_end(&run, redactor_count(redactor));
	chunk_writer_free(&run.writer);
	return 0;
}

static int show_event(void *ctx, const struct resoluto_event *event)
{
	CLEANUP(buf_done) struct buf exact = BUF_INIT(TEXT_MAX), out = BUF_INIT(TEXT_MAX);

	must(base64_add(&exact, event->bytes, event->len), "base64");
	must(buf_add_str(&out, "{"), "show");
	must(json_add_member(&out, "run_id", event->run_id), "show");
	must(json_add_member(&out, "span_id", event->span_id), "show");
	must(json_add_member(&out, "parent_span_id", event->parent_span_id), "show");
	must(json_add_member(&out, "kind", event->kind), "show");
	must(json_add_member(&out, "name", event->name), "show");
	must(json_add_member(&out, "event", event->event), "show");
	must(json_add_member(&out, "status", event->status), "show");
	must(json_add_member(&out, "bytes", event->bytes ? exact.data : ""), "show");
	printf("%s,\"ts\":%.17g,\"seq\":%" PRIu64
	       ",\"is_stderr\":%d,\"is_output\":%d,\"data\":%s}\n",
	       out.data, event->ts, event->seq, event->is_stderr, event->is_output, event->data);
	return 0;
}

static uint32_t read_manifest(int dirfd)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(TEXT_MAX);
	uint32_t total;

	must(read_file_at(dirfd, KEY_MANIFEST, MANIFEST_JSON_MAX, &bytes, NULL),
	     "read the manifest");
	must(manifest_parse(bytes.data, bytes.len, &total), "manifest");
	return total;
}

static void show_result(int dirfd)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(TEXT_MAX), out = BUF_INIT(TEXT_MAX);
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };

	must(read_file_at(dirfd, KEY_RESULT, RESULT_JSON_MAX, &bytes, NULL), "read the result");
	must(node_result_parse(bytes.data, bytes.len, &doc, NULL), "result");
	must(node_result_write(&out, &doc.result), "show");
	printf("%s", out.data);
}

/* Events, then the result. */
static int run_read(int dirfd)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	uint32_t total = read_manifest(dirfd);

	must(chunk_reader_new(&reader), "reader");
	for (uint32_t number = 1; number <= total; number++) {
		CLEANUP(buf_done) struct buf chunk = BUF_INIT(TEXT_MAX);
		char key[KEY_SIZE];

		key_chunk(number, key);
		must(read_file_at(dirfd, key, TEXT_MAX, &chunk, NULL), "read a chunk");
		must(chunk_reader_feed(reader, chunk.data, chunk.len, show_event, NULL), "events");
	}
	if (chunk_reader_bad_lines(reader) > 0)
		must(-EBADMSG, "a line");
	show_result(dirfd);
	return 0;
}

static int say_refused(void)
{
	printf("refused\n");
	return 0;
}

static int parse_event(const char *json, size_t len)
{
	struct event_line line = { 0 };

	if (event_parse(json, len, &line) == 0)
		(void) show_event(NULL, &line.event);
	else
		say_refused();
	event_line_done(&line);
	return 0;
}

static int parse_result(const char *json, size_t len)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };

	if (node_result_parse(json, len, &doc, NULL) < 0)
		return say_refused();
	must(node_result_write(&out, &doc.result), "show");
	printf("%s", out.data);
	return 0;
}

static int parse_manifest(const char *json, size_t len)
{
	uint32_t total;

	if (manifest_parse(json, len, &total) < 0)
		return say_refused();
	printf("{\"total_chunks\":%u}\n", total);
	return 0;
}

static int parse_line(char *line, size_t len)
{
	static const struct {
		const char *name;
		int (*parse)(const char *json, size_t len);
	} parsers[] = {
		{ "event", parse_event },
		{ "result", parse_result },
		{ "manifest", parse_manifest },
	};
	const char *json = memchr(line, '\t', len);

	for (size_t i = 0; json && i < sizeof(parsers) / sizeof(parsers[0]); i++) {
		size_t name_len = strlen(parsers[i].name);

		if (name_len == (size_t) (json - line) &&
		    memcmp(line, parsers[i].name, name_len) == 0)
			return parsers[i].parse(json + 1, len - name_len - 1);
	}
	must(-EINVAL, "a line is no NAME<TAB>DOCUMENT");
	return 0;
}

/* Answers each line at once, so that a test can ask about one document after the other. */
static int run_parse(void)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, stdin)) > 0) {
		parse_line(line, (size_t) len - (line[len - 1] == '\n'));
		fflush(stdout);
	}
	free(line);
	return 0;
}

static int run_redact(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	CLEANUP(buf_done) struct buf raw = BUF_INIT(TEXT_MAX), clean = BUF_INIT(TEXT_MAX);

	must(read_rest(STDIN_FILENO, &raw), "read standard input");
	must(redactor_new(NULL, true, &redactor), "redactor");
	must(redact_stream_new(redactor, &stream), "redact");
	must(redact_stream_feed(stream, raw.data, raw.len, &clean), "redact");
	must(redact_stream_end(stream, &clean), "redact");
	must(write_all(STDOUT_FILENO, clean.data, clean.len), "write");
	return 0;
}

int main(int argc, char *argv[])
{
	CLEANUP(fd_close)
	int dirfd = argc == 3 ? open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (argc == 2 && strcmp(argv[1], "documents") == 0)
		return run_documents();
	if (argc == 2 && strcmp(argv[1], "redact") == 0)
		return run_redact();
	if (argc == 2 && strcmp(argv[1], "parse") == 0)
		return run_parse();
	if (dirfd >= 0 && strcmp(argv[1], "write") == 0)
		return run_write(dirfd);
	if (dirfd >= 0 && strcmp(argv[1], "read") == 0)
		return run_read(dirfd);
	fprintf(stderr, "usage: wire_samples documents | write DIR | read DIR | redact | parse\n");
	return 2;
}
