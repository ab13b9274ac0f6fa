/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/run_options.h"
#include "wire/quota.h"

enum { SHOWN = 80 }; /* bytes of a user's word that a message repeats */

void run_request_done(struct run_request *request)
{
	strv_done(&request->env);
	strv_done(&request->setup);
	strv_done(&request->cleanup);
}

static const char *const *list_of(const struct strv *list)
{
	return (const char *const *) list->items;
}

static enum resoluto_pull pull_of(const char *name)
{
	if (name && strcmp(name, "always") == 0)
		return RESOLUTO_PULL_ALWAYS;
	if (name && strcmp(name, "never") == 0)
		return RESOLUTO_PULL_NEVER;
	return RESOLUTO_PULL_MISSING;
}

/* The entry KEY=VALUE of an environment. */
static const char *find_variable(const char *const *environment, const char *key)
{
	size_t len = strlen(key);

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, key, len) == 0 && (*environment)[len] == '=')
			return *environment;
	}
	return NULL;
}

static int fill_env(struct run_request *request, const struct run_args *args,
                    const char *const *environment, struct resoluto_err *err)
{
	for (size_t i = 0; i < args->env.count; i++) {
		const char *entry = args->env.items[i];

		if (!strchr(entry, '=')) {
			const char *found = find_variable(environment, entry);

			if (!found)
				return resoluto_fail(
					err, -EINVAL,
					"--env %.*s: there is no such variable here to "
					"pass on; set it, or write %.*s=VALUE",
					SHOWN, entry, SHOWN, entry);
			entry = found;
		}
		if (strv_add(&request->env, entry) < 0)
			return resoluto_fail(err, -ENOMEM, "out of memory");
	}
	request->options.env = list_of(&request->env);
	return 0;
}

static int add_json_argv(struct strv *argv, const char *name, const char *text,
                         struct resoluto_err *err)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *item;
	size_t i;
	int r = 0;

	json_array_foreach(root, i, item)
	{
		if (!json_is_string(item))
			break;
		if (r == 0)
			r = strv_add(argv, json_string_value(item));
	}
	/* Nothing in it, something that is no string, or no JSON at all. */
	if (argv->count == 0 || argv->count != json_array_size(root))
		r = resoluto_fail(
			err, -EINVAL,
			"%s: %.*s is not a JSON array of strings; for a line of the shell "
			"that begins with [ put a blank before it",
			name, SHOWN, text);
	json_decref(root);
	return r;
}

static int fill_hook(struct strv *argv, const char *name, const char *text,
                     struct resoluto_err *err)
{
	static const char *const shell[] = { "/bin/sh", "-c", NULL };

	if (!text)
		return 0;
	if (text[0] == '[')
		return add_json_argv(argv, name, text, err);
	if (strv_add_all(argv, shell) < 0 || strv_add(argv, text) < 0)
		return resoluto_fail(err, -ENOMEM, "out of memory");
	return 0;
}

static int fill_input(struct run_request *request, const struct run_args *args,
                      struct resoluto_err *err)
{
	struct resoluto_stdin *input = &request->options.input;
	const char *file = args->stdin_file;
	bool is_ours = file && strcmp(file, "-") == 0;

	if (args->reads_our_stdin && file && !is_ours)
		return resoluto_fail(
			err, -EINVAL,
			"-i and --stdin %.*s: a program has one standard input; leave one "
			"of the two out",
			SHOWN, file);
	if (args->reads_our_stdin || is_ours)
		*input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = STDIN_FILENO };
	else if (file)
		*input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE,
			                          .path = file,
			                          .fd = -1 };
	return 0;
}

static int check_choice(const struct run_args *args, struct resoluto_err *err)
{
	if (!args->workspace && (args->paths.count || args->exclude.count || args->protect.count))
		return resoluto_fail(
			err, -EINVAL,
			"--path, --exclude and --protect choose from a workspace; give "
			"one with --workspace");
	return 0;
}

/* What only the end of a run can bring is asked of those who wait for it. */
static int check_detached(const struct run_args *args, struct resoluto_err *err)
{
	if (args->output_dir)
		return resoluto_fail(
			err, -EINVAL,
			"--output-dir with --detach: nothing lands there before the end; "
			"collect ID --workspace DIR fetches the outputs then");
	if (args->max_output)
		return resoluto_fail(err, -EINVAL,
		                     "--max-output with --detach: give it to attach or wait");
	if (args->timings)
		return resoluto_fail(err, -EINVAL,
		                     "--timings with --detach: give it to attach or wait");
	return check_choice(args, err);
}

/* An option that would do nothing is a misunderstanding: say so before anything is started. */
static int check_together(const struct run_args *args, struct resoluto_err *err)
{
	bool has_output = args->outputs.count > 0;

	if (args->detach)
		return check_detached(args, err);
	if (has_output && !args->workspace && !args->output_dir)
		return resoluto_fail(
			err, -EINVAL,
			"--output %.*s has no place to land; name one with --output-dir, "
			"or give a --workspace",
			SHOWN, args->outputs.items[0]);
	if (args->output_dir && !has_output)
		return resoluto_fail(
			err, -EINVAL,
			"--output-dir without --output: nothing would land there; name "
			"what to bring back with --output");
	return check_choice(args, err);
}

static int check_egress(const struct run_args *args, struct resoluto_err *err)
{
	const bool has_list = args->egress.count > 0 || args->egress_file;

	if (args->egress_learn && has_list)
		return resoluto_fail(err, -EINVAL,
		                     "--egress-learn: such a run is allowed nothing; leave %s out",
		                     args->egress.count > 0 ? "--egress" : "--egress-file");
	if (args->egress_wide && !has_list)
		return resoluto_fail(err, -EINVAL,
		                     "--egress-wide allows nothing by itself; name what with "
		                     "--egress");
	return 0;
}

static int fill_quotas(struct resoluto_quotas *quotas, const struct strv *given,
                       struct resoluto_err *err)
{
	for (size_t i = 0; i < given->count; i++) {
		int r = quota_parse(given->items[i], quotas, err);

		if (r < 0)
			return resoluto_fail_in(err, r, "--quota");
	}
	return 0;
}

static void fill_plain(struct resoluto_run_options *options, const struct run_args *args)
{
	options->backend_name = args->backend;
	options->image = args->image;
	options->pull = pull_of(args->pull);
	options->platform = args->platform;
	options->authfile = args->authfile;
	options->workspace = args->workspace;
	options->paths = list_of(&args->paths);
	options->exclude = list_of(&args->exclude);
	options->protect = list_of(&args->protect);
	options->output_paths = list_of(&args->outputs);
	options->output_dir = args->output_dir;
	options->env_file = args->env_file;
	options->workdir = args->workdir;
	options->user = args->user;
	options->labels = list_of(&args->labels);
	options->id = args->id;
	options->resources.memory_bytes = args->memory_bytes;
	options->resources.cpu_milli = args->cpu_milli;
	options->resources.disk_bytes = args->disk_bytes;
	options->deadline_ms = args->deadline_ms;
	options->dead_after_ms = args->dead_after_ms;
	options->drain_timeout_ms = args->drain_timeout_ms;
	options->max_output = (size_t) args->max_output;
	options->keep_run = args->keep;
	options->redact_values_only = args->no_redact_patterns;
	options->detach_on_hangup = !args->detach;
	options->egress = list_of(&args->egress);
	options->egress_file = args->egress_file;
	options->egress_learn = args->egress_learn;
	options->egress_wide = args->egress_wide;
	options->signal_fd = -1;
}

int run_request_fill(struct run_request *request, const struct run_args *args,
                     const char *const *program, const char *const *environment,
                     struct resoluto_err *err)
{
	int r = check_together(args, err);

	if (r == 0)
		r = check_egress(args, err);
	request->options.struct_size = sizeof(request->options);
	request->options.argv = program;
	fill_plain(&request->options, args);
	if (r == 0)
		r = fill_env(request, args, environment, err);
	if (r == 0)
		r = fill_input(request, args, err);
	if (r == 0)
		r = fill_hook(&request->setup, "--setup", args->setup, err);
	if (r == 0)
		r = fill_hook(&request->cleanup, "--cleanup", args->cleanup, err);
	if (r == 0)
		r = fill_quotas(&request->options.quotas, &args->quotas, err);
	request->options.setup = list_of(&request->setup);
	request->options.cleanup = list_of(&request->cleanup);
	return r;
}
