/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_rm.c - `rm` and `sweep`: remove what is stored of runs. */

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/runs.h"

struct rm_args {
	bool force;
};

static const struct option rm_options[] = {
	{ OPTION_FLAG, .name = "force", .offset = offsetof(struct rm_args, force),
	  .help = "also one that is alive: its sandbox is ended first" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static int check_ended(struct resoluto_run *run, struct resoluto_err *err)
{
	enum resoluto_run_state state;
	int r = resoluto_run_look(run, &state, err);

	if (r < 0 || state == RESOLUTO_RUN_ENDED)
		return r;
	return resoluto_fail(err, -EBUSY, "run %s is %s; wait for it, kill it, or rm --force",
	                     resoluto_run_id(run), resoluto_run_state_name(state));
}

static int remove_one(const struct invocation *invocation, const char *id, bool force)
{
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code, r;

	run = runs_open(invocation, id, &code);
	if (!run)
		return code;
	r = force ? 0 : check_ended(run, &err);
	if (r == 0)
		r = resoluto_run_destroy(run, &err);
	return r < 0 ? runs_failed(invocation, &err) : 0;
}

static int run_rm(const struct invocation *invocation, void *args)
{
	const struct rm_args *given = args;
	int code = 0;

	for (size_t i = 0; i < invocation->words.count; i++) {
		int one = remove_one(invocation, invocation->words.items[i], given->force);

		code = code ? code : one;
	}
	return code;
}

struct sweep_args {
	struct strv labels;
	uint64_t older_ms;
	bool json;
};

#define FIELD(member) .offset = offsetof(struct sweep_args, member)

static const struct option sweep_options[] = {
	{ OPTION_LIST, .name = "label", .value = "KEY=VALUE", FIELD(labels),
	  .help = "only runs with this label, and of them also those that were kept; repeatable" },
	{ OPTION_DURATION, .name = "older", .value = "TIME", FIELD(older_ms),
	  .help = "only runs that ended so long ago, such as 2h or 7d, and of them also those that "
	          "were kept" },
	{ OPTION_FLAG, .name = "json", FIELD(json), .help = "print a JSON object" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static int print_removed(void *ctx, const struct resoluto_run_info *info)
{
	puts(info->id);
	return 0;
}

static int add_removed(void *ctx, const struct resoluto_run_info *info)
{
	return json_array_append_new(ctx, json_string(info->id)) < 0 ? -ENOMEM : 0;
}

static void print_json(json_t *removed)
{
	json_t *root = json_pack("{s:i, s:O}", "schema", 1, "removed", removed);

	(void) json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

static int run_sweep(const struct invocation *invocation, void *args)
{
	const struct sweep_args *given = args;
	json_t *removed = json_array();
	const struct resoluto_sweep_options sweep = {
		.struct_size = sizeof(sweep),
		.labels = (const char *const *) given->labels.items,
		.older_ms = given->older_ms,
		.removed = given->json ? add_removed : print_removed,
		.ctx = removed,
	};
	struct resoluto_err err = { 0 };
	int r = resoluto_run_sweep(&sweep, &err), code;

	/* Also of those that went before one failed. */
	if (given->json)
		print_json(removed);
	json_decref(removed);
	code = command_finish_output(invocation);
	return r < 0 ? command_failed(invocation, &err) : code;
}

const struct command command_rm = {
	.name = "rm",
	.summary = "Remove a run and all that is stored of it",
	.synopsis = "[OPTION]... ID...",
	.description = "One that is alive is refused.",
	.options = rm_options,
	.words_min = 1,
	.words_max = WORDS_ANY,
	.args_size = sizeof(struct rm_args),
	.run = run_rm,
};

const struct command command_sweep = {
	.name = "sweep",
	.summary = "Remove what ended runs left",
	.synopsis = "[OPTION]...",
	.description =
		"Without options: what nobody wanted to keep, which the next run removes too. Runs "
		"that were kept, as detached ones are, go only when --label or --older name them. "
		"What is alive is never touched, whosever it is. Prints the id of each run that "
		"was removed.",
	.options = sweep_options,
	.args_size = sizeof(struct sweep_args),
	.run = run_sweep,
};
