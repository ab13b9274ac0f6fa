/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_collect.c - `collect`: the outputs of a run that has ended. */

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/runs.h"

struct collect_args {
	const char *workspace;
	bool json, quiet;
};

#define FIELD(member) .offset = offsetof(struct collect_args, member)

static const struct option options[] = {
	{ OPTION_TEXT, .name = "workspace", .value = "DIR", FIELD(workspace),
	  .hint = HINT_DIRECTORY, .help = "where they land; made if it is not there" },
	{ OPTION_FLAG, .name = "json", FIELD(json),
	  .help = "print a JSON object: run_id, artifacts, and the content of result.json" },
	{ OPTION_FLAG, .name = "quiet", FIELD(quiet), .help = "do not name what came back" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static void print_names(const struct resoluto_outputs *outputs)
{
	for (char **artifact = outputs->artifacts; *artifact; artifact++) {
		CLEANUP(text_done) struct text name = TEXT_INIT;

		failure_add_printable(&name, *artifact, strlen(*artifact));
		puts(text_string(&name));
	}
}

/* The program's result as it is: a line of JSON, with numbers that our reader may have no place for. */
static void print_json(const char *id, const struct resoluto_outputs *outputs)
{
	json_t *names = json_array(), *root;
	char *head;

	for (char **artifact = outputs->artifacts; *artifact; artifact++) {
		json_t *name = json_string(*artifact);

		(void) json_array_append_new(names, name ? name : json_string("?"));
	}
	root = json_pack("{s:i, s:s, s:o}", "schema", 1, "run_id", id, "artifacts", names);
	head = root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	if (head)
		printf("%.*s,\"result\":%s}\n", (int) strlen(head) - 1, head,
		       outputs->result_json ? outputs->result_json : "null");
	free(head);
	json_decref(root);
}

static int collect(const struct invocation *invocation, const struct collect_args *args,
                   struct resoluto_run *run)
{
	CLEANUP(resoluto_outputs_done) struct resoluto_outputs outputs = { 0 };
	struct resoluto_err err = { 0 };

	if (resoluto_run_collect(run, args->workspace, &outputs, &err) < 0)
		return runs_failed(invocation, &err);
	if (args->json)
		print_json(resoluto_run_id(run), &outputs);
	else if (!args->quiet)
		print_names(&outputs);
	return command_finish_output(invocation);
}

static int run_collect(const struct invocation *invocation, void *args)
{
	const struct collect_args *given = args;
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code;

	if (!given->workspace) {
		(void) resoluto_fail(&err, -EINVAL,
		                     "no place for the outputs: name one with --workspace");
		return command_misuse(invocation, &err);
	}
	run = runs_open(invocation, invocation->words.items[0], &code);
	return run ? collect(invocation, given, run) : code;
}

const struct command command_collect = {
	.name = "collect",
	.summary = "Fetch the outputs of a run that has ended",
	.synopsis = "[OPTION]... --workspace DIR ID",
	.description = "What run --output asked for, as run itself would have brought it back. "
		       "Files that are there are replaced; it may be done again.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.args_size = sizeof(struct collect_args),
	.run = run_collect,
};
