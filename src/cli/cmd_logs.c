/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_logs.c - `logs`: the output of a run, now or as it comes. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/pieces.h"
#include "cli/runs.h"
#include "wire/base64.h"
#include "wire/json_text.h"
#include "wire/utf8.h"

enum { LINE_MAX_BYTES = 1024 * 1024 }; /* of JSON; a piece of output is at most 32 KiB */

struct logs_args {
	struct option_count tail;
	const char *stream;
	uint64_t max_output;
	bool follow, json;
};

struct logs {
	const struct logs_args *args;
	struct reader reader;
	struct pieces pieces; /* with --json, instead of the reader's limit */
	enum resoluto_streams streams;
};

static const struct option_choice streams[] = {
	{ .name = "stdout" },
	{ .name = "stderr" },
	{ .name = NULL },
};

#define FIELD(member) .offset = offsetof(struct logs_args, member)

static const struct option options[] = {
	{ OPTION_FLAG, 'f', .name = "follow", FIELD(follow),
	  .help = "go on until the end of the run" },
	{ OPTION_COUNT, .name = "tail", .value = "N", FIELD(tail),
	  .help = "begin with the last N lines; 0 is only what is still to come" },
	{ OPTION_CHOICE, .name = "stream", .value = "NAME", FIELD(stream), .choices = streams,
	  .help = "only one of the two streams" },
	{ OPTION_BYTES, .name = "max-output", .value = "SIZE", FIELD(max_output),
	  .help = "how much of each stream is printed, its head and its tail; the middle of more "
	          "is left out and counted (default: all of it)" },
	{ OPTION_FLAG, .name = "json", FIELD(json),
	  .help = "print a JSON object per piece of output: seq, stream, ts, and text or base64; "
	          "with --max-output the bound is of these lines" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static bool is_text(const char *bytes, size_t len)
{
	return utf8_is_valid(bytes, len) && !memchr(bytes, '\0', len);
}

static int add_piece(struct buf *out, const struct resoluto_event *event)
{
	bool as_text = is_text(event->bytes, event->len);
	int r = buf_addf(out, "{\"seq\":%llu,\"stream\":\"%s\"", (unsigned long long) event->seq,
	                 event->is_stderr ? "stderr" : "stdout");

	/* Whole microseconds, written without the comma of a locale. */
	if (r == 0)
		r = buf_addf(out, ",\"ts\":%llu.%06llu,\"%s\":", (unsigned long long) event->ts,
		             (unsigned long long) (event->ts * 1e6) % 1000000,
		             as_text ? "text" : "base64");
	if (r == 0 && as_text)
		r = json_add_string(out, event->bytes, event->len, NULL);
	if (r == 0 && !as_text)
		r = buf_add_str(out, "\"");
	if (r == 0 && !as_text)
		r = base64_add(out, event->bytes, event->len);
	if (r == 0 && !as_text)
		r = buf_add_str(out, "\"");
	return r < 0 ? r : buf_add_str(out, "}\n");
}

static int print_piece(struct logs *logs, const struct resoluto_event *event)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
	int r;

	if (!logs->args->json)
		return limit_write(&logs->reader.limit, event->is_stderr, event->bytes, event->len);
	r = add_piece(&line, event);
	if (r < 0)
		return logs->reader.output.code = r;
	return pieces_add(&logs->pieces, line.data, line.len, event->len);
}

/* Of type resoluto_event_fn. */
static int show(void *ctx, const struct resoluto_event *event)
{
	struct logs *logs = ctx;

	if (!event->is_output || !event->bytes ||
	    (logs->streams == RESOLUTO_STREAMS_STDOUT && event->is_stderr) ||
	    (logs->streams == RESOLUTO_STREAMS_STDERR && !event->is_stderr))
		return 0;
	return print_piece(logs, event);
}

static int print_logs(const struct invocation *invocation, struct logs *logs,
                      struct resoluto_run *run)
{
	const struct resoluto_follow_options follow = {
		.struct_size = sizeof(follow),
		.has_tail = logs->args->tail.is_set,
		.tail_lines = logs->args->tail.value,
		.tail_streams = logs->streams,
		.until_now = !logs->args->follow,
		.is_read_only = true,
		.max_output = 1, /* nobody asks for it in the result */
		.on_event = show,
		.ctx = logs,
		.stop_fd = logs->reader.signals.wake_fd,
	};
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int r = resoluto_run_drive(run, &follow, &result, &err);

	resoluto_result_free(result);
	(void) limit_end(&logs->reader.limit);
	(void) pieces_end(&logs->pieces);
	if (r < 0 && r != -ECANCELED)
		return runs_failed(invocation, &err);
	return reader_code(&logs->reader, invocation);
}

static int run_logs(const struct invocation *invocation, void *args)
{
	struct logs logs = { .args = args };
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code;

	if (logs.args->stream)
		logs.streams = strcmp(logs.args->stream, "stderr") == 0 ? RESOLUTO_STREAMS_STDERR
		                                                        : RESOLUTO_STREAMS_STDOUT;
	run = runs_open(invocation, invocation->words.items[0], &code);
	if (!run)
		return code;
	if (reader_open(&logs.reader, logs.args->max_output, &err) < 0)
		return command_failed(invocation, &err);
	pieces_init(&logs.pieces, &logs.reader.output, logs.args->max_output);
	code = print_logs(invocation, &logs, run);
	pieces_done(&logs.pieces);
	reader_close(&logs.reader);
	return code;
}

const struct command command_logs = {
	.name = "logs",
	.summary = "Print the output of a run",
	.synopsis = "[OPTION]... ID",
	.description = "What the program wrote, each stream to ours of the same name. The exit "
		       "status says only whether that worked.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.args_size = sizeof(struct logs_args),
	.run = run_logs,
};
