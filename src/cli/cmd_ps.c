/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_ps.c - `ps`: every run there is, and how it goes or went. */

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/runs.h"

enum {
	TIME_MAX = 32,  /* bytes of "2026-11-29 18:51" */
	STATE_MAX = 48, /* bytes of "exit 7" or a reason */
};

struct ps_args {
	bool json;
	struct strv labels;
};

#define FIELD(member) .offset = offsetof(struct ps_args, member)

static const struct option options[] = {
	{ OPTION_LIST, .name = "label", .value = "KEY=VALUE", FIELD(labels),
	  .help = "only runs with this label; repeatable" },
	{ OPTION_FLAG, .name = "json", FIELD(json), .help = "print a JSON array" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static void format_state(const struct resoluto_run_info *info, char ret_state[STATE_MAX])
{
	if (info->state != RESOLUTO_RUN_ENDED)
		snprintf(ret_state, STATE_MAX, "%s", resoluto_run_state_name(info->state));
	else if (info->reason[0])
		snprintf(ret_state, STATE_MAX, "%s", info->reason);
	else if (info->signal > 0)
		snprintf(ret_state, STATE_MAX, "signal %d", info->signal);
	else
		snprintf(ret_state, STATE_MAX, "exit %d", info->exit_code);
}

static void format_time(double seconds, char ret_time[TIME_MAX])
{
	time_t whole = (time_t) seconds;
	struct tm local;

	ret_time[0] = '\0';
	if (seconds > 0 && localtime_r(&whole, &local))
		(void) strftime(ret_time, TIME_MAX, "%Y-%m-%d %H:%M", &local);
}

/* Labels and names come from whoever launched it: nothing of them steers a terminal. */
static int print_row(void *ctx, const struct resoluto_run_info *info)
{
	CLEANUP(text_done) struct text words = TEXT_INIT;
	char state[STATE_MAX], created[TIME_MAX];

	format_state(info, state);
	format_time(info->created, created);
	failure_add_printable(&words, info->program, strlen(info->program));
	for (const char *const *label = info->labels; *label; label++) {
		if (strncmp(*label, "resoluto.", 9) == 0)
			continue;
		text_add(&words, "  ");
		failure_add_printable(&words, *label, strlen(*label));
	}
	printf("%-20s  %-16s  %-16s  %s\n", info->id, state, created, text_string(&words));
	return 0;
}

static json_t *labels_of(const struct resoluto_run_info *info)
{
	json_t *labels = json_object();

	for (const char *const *label = info->labels; *label; label++) {
		const char *equals = strchr(*label, '=');

		if (equals)
			(void) json_object_setn_new(labels, *label, (size_t) (equals - *label),
			                            json_string(equals + 1));
	}
	return labels;
}

static json_t *time_of(double seconds)
{
	return seconds > 0 ? json_real(seconds) : json_null();
}

static int add_row(void *ctx, const struct resoluto_run_info *info)
{
	bool has_ended = info->state == RESOLUTO_RUN_ENDED;
	json_t *row = json_pack(
		"{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:s, s:s}", "id", info->id,
		"state", resoluto_run_state_name(info->state), "program", info->program, "image",
		info->image, "labels", labels_of(info), "created", time_of(info->created), "ended",
		time_of(has_ended ? info->ended : 0), "kept", info->is_kept, "exit_code",
		has_ended ? json_integer(info->exit_code) : json_null(), "signal",
		info->signal > 0 ? json_integer(info->signal) : json_null(), "reason", info->reason,
		"disposition", has_ended ? resoluto_disposition_name(info->disposition) : "");

	return json_array_append_new(ctx, row) < 0 ? -ENOMEM : 0;
}

static int list_as_json(const struct resoluto_list_options *list, struct resoluto_err *err)
{
	json_t *rows = json_array();
	int r = resoluto_run_list(list, add_row, rows, err);

	if (r >= 0) {
		(void) json_dumpf(rows, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(rows);
	return r;
}

static int run_ps(const struct invocation *invocation, void *args)
{
	const struct ps_args *given = args;
	const struct resoluto_list_options list = {
		.struct_size = sizeof(list),
		.labels = (const char *const *) given->labels.items,
	};
	struct resoluto_err err = { 0 };
	int r;

	if (given->json) {
		r = list_as_json(&list, &err);
	} else {
		printf("%-20s  %-16s  %-16s  %s\n", "ID", "STATE", "CREATED", "PROGRAM, LABELS");
		r = resoluto_run_list(&list, print_row, NULL, &err);
	}
	return r < 0 ? command_failed(invocation, &err) : command_finish_output(invocation);
}

const struct command command_ps = {
	.name = "ps",
	.summary = "List the runs",
	.synopsis = "[OPTION]...",
	.description =
		"Those that are alive, and those that have ended and were kept or not yet "
		"cleaned up. STATE is starting, running, or how it ended: the program's exit "
		"status or signal, else the reason.",
	.options = options,
	.args_size = sizeof(struct ps_args),
	.run = run_ps,
};
