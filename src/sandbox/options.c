/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "image/platform.h"
#include "image/reference.h"
#include "resoluto/version.h"
#include "sandbox/options.h"
#include "secrets/dotenv.h"
#include "wire/contract.h"
#include "wire/glob.h"
#include "wire/keys.h"

bool options_is_utf8(const char *text)
{
	json_t *string = json_string(text);
	bool is_utf8 = string != NULL;

	json_decref(string);
	return is_utf8;
}

bool options_is_reserved(const char *entry)
{
	return strncmp(entry, ENV_PREFIX, strlen(ENV_PREFIX)) == 0;
}

bool options_user_is_root(const char *user)
{
	size_t n = strcspn(user, ":");

	return (n == 4 && memcmp(user, "root", 4) == 0) || (n > 0 && strspn(user, "0") == n);
}

static int check_argv(const char *what, const char *const *argv, struct resoluto_err *err)
{
	if (!argv[0])
		return resoluto_fail(err, -EINVAL, "%s: no program is given", what);
	if (!argv[0][0])
		return resoluto_fail(err, -EINVAL, "%s: the name of the program is empty", what);
	for (size_t i = 0; argv[i]; i++) {
		if (!options_is_utf8(argv[i]))
			return resoluto_fail(
				err, -EINVAL,
				"%s: argument %zu is not UTF-8, and arguments travel as JSON", what,
				i);
	}
	return 0;
}

static int check_programs(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	int r;

	if (!options->argv)
		return resoluto_fail(err, -EINVAL, "argv: no program is given");
	r = check_argv("argv", options->argv, err);
	if (r == 0 && options->setup)
		r = check_argv("setup", options->setup, err);
	if (r == 0 && options->cleanup)
		r = check_argv("cleanup", options->cleanup, err);
	return r;
}

int options_check_variable(const char *entry, struct resoluto_err *err)
{
	const char *equals = strchr(entry, '=');
	int len = equals ? (int) (equals - entry) : 0;

	if (!equals)
		return resoluto_fail(err, -EINVAL, "'%.60s' is not KEY=VALUE", entry);
	if (len == 0)
		return resoluto_fail(err, -EINVAL,
		                     "a variable is not KEY=VALUE: it has no name before its '='");
	if (!dotenv_is_name(entry, (size_t) len))
		return resoluto_fail(err, -EINVAL,
		                     "'%.*s' is no name of a variable: it has a blank or control "
		                     "character",
		                     len, entry);
	if (options_is_reserved(entry))
		return resoluto_fail(err, -EINVAL,
		                     "%.*s: names that begin with " ENV_PREFIX
		                     " configure the sandbox and cannot be given to the program",
		                     len, entry);
	if (!options_is_utf8(entry))
		return resoluto_fail(err, -EINVAL,
		                     "the value of %.*s is not UTF-8, and variables travel as JSON",
		                     len, entry);
	return 0;
}

static int check_env(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	int r = 0;

	for (const char *const *entry = options->env; entry && *entry && r == 0; entry++)
		r = options_check_variable(*entry, err);
	return r < 0 ? resoluto_fail_in(err, r, "env") : 0;
}

static int check_labels(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	for (const char *const *label = options->labels; label && *label; label++) {
		const char *equals = strchr(*label, '=');

		if (!equals || equals == *label)
			return resoluto_fail(err, -EINVAL, "label: '%.60s' is not KEY=VALUE",
			                     *label);
		if (strncmp(*label, "resoluto.run_id=", 16) == 0 ||
		    strncmp(*label, "resoluto.node_id=", 17) == 0)
			return resoluto_fail(err, -EINVAL,
			                     "label: %.*s is set by the sandbox itself",
			                     (int) (equals - *label), *label);
		if (!options_is_utf8(*label))
			return resoluto_fail(err, -EINVAL, "label: %.*s is not UTF-8",
			                     (int) (equals - *label), *label);
	}
	return 0;
}

/* "bin/" is the name "bin"; "./bin" would be one place, and a name is left out wherever it is met. */
static char *without_slashes(const char *name)
{
	size_t len = strlen(name);

	while (len > 1 && name[len - 1] == '/')
		len--;
	return strndup(name, len);
}

/* A list without entries stays as it is: it may say something else than none. */
static int plain_list(const char *const **list, char *(*spell)(const char *), struct strv *kept)
{
	for (const char *const *item = *list; item && *item; item++) {
		CLEANUP(mem_free) char *text = spell(*item);
		int r = text ? strv_add(kept, text) : -ENOMEM;

		if (r < 0)
			return r;
	}
	if (kept->count > 0)
		*list = (const char *const *) kept->items;
	return 0;
}

int options_make_plain(struct resoluto_run_options *options, struct options_plain *plain,
                       struct resoluto_err *err)
{
	int r = plain_list(&options->paths, path_plain, &plain->paths);

	if (r == 0)
		r = plain_list(&options->exclude, without_slashes, &plain->exclude);
	if (r == 0)
		r = plain_list(&options->protect, path_plain, &plain->protect);
	if (r == 0 && options->workdir) {
		plain->workdir = path_plain(options->workdir);
		options->workdir = plain->workdir;
		r = plain->workdir ? 0 : -ENOMEM;
	}
	return r < 0 ? resoluto_fail(err, r, "read the options") : 0;
}

void options_plain_done(struct options_plain *plain)
{
	strv_done(&plain->paths);
	strv_done(&plain->exclude);
	strv_done(&plain->protect);
	mem_free(&plain->workdir);
}

/* A name to leave out: one component. */
static bool is_name(const char *name)
{
	return path_is_beneath(name) && !strchr(name, '/');
}

static int not_beneath(const char *what, const char *path, struct resoluto_err *err)
{
	return resoluto_fail(err, -EINVAL,
	                     "%s: '%s' is not a path relative to the workspace, without '..'", what,
	                     path);
}

static int check_names(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	for (const char *const *path = options->paths; path && *path; path++) {
		if (!path_is_beneath(*path) && strcmp(*path, ".") != 0)
			return not_beneath("path", *path, err);
	}
	for (const char *const *name = options->exclude; name && *name; name++) {
		if (!is_name(*name))
			return resoluto_fail(err, -EINVAL,
			                     "exclude: '%s' is not a single name: what has it is "
			                     "left out wherever it is",
			                     *name);
	}
	for (const char *const *path = options->protect; path && *path; path++) {
		if (!path_is_beneath(*path))
			return not_beneath("protect", *path, err);
	}
	return 0;
}

static int check_workspace(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	if (options->workspace && !options->workspace[0])
		return resoluto_fail(err, -EINVAL, "workspace: the name of the directory is empty");
	if (!options->workspace && (options->paths || options->exclude || options->protect))
		return resoluto_fail(
			err, -EINVAL,
			"paths, exclude and protect choose from a workspace, and none is given");
	return check_names(options, err);
}

static int check_output_place(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	bool has_outputs = options->output_paths && options->output_paths[0];

	if (options->output_dir && !options->output_dir[0])
		return resoluto_fail(err, -EINVAL,
		                     "output_dir: the name of the directory is empty");
	if (has_outputs && !options->output_dir && !options->workspace)
		return resoluto_fail(err, -EINVAL,
		                     "outputs are asked for, and there is no place to put them: "
		                     "give an output directory or a workspace");
	return 0;
}

static int check_outputs(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	for (const char *const *glob = options->output_paths; glob && *glob; glob++) {
		int r = glob_check(*glob, err);

		if (r < 0)
			return resoluto_fail_in(err, r, "output path '%s'", *glob);
		if (!options_is_utf8(*glob))
			return resoluto_fail(
				err, -EINVAL,
				"an output path is not UTF-8, and patterns travel as JSON");
	}
	return 0;
}

static bool is_user_part(const char *text, size_t len)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	static const uint32_t uid_max = UINT32_MAX - 1; /* the last one means "leave as it is" */
	uint64_t number = 0;

	if (len == 0 || len > 32 || strspn(text, allowed) < len)
		return false;
	if (strspn(text, "0123456789") < len)
		return text[0] != '-';
	for (size_t i = 0; i < len && number <= uid_max; i++)
		number = number * 10 + (uint64_t) (text[i] - '0');
	return number <= uid_max;
}

static int check_user(const char *user, struct resoluto_err *err)
{
	const char *group;

	if (!user)
		return 0;
	group = strchr(user, ':');
	if (!is_user_part(user, strcspn(user, ":")) ||
	    (group && !is_user_part(group + 1, strlen(group + 1))))
		return resoluto_fail(err, -EINVAL,
		                     "user: '%s' is not NAME, UID, NAME:GROUP or UID:GID", user);
	if (options_user_is_root(user))
		return resoluto_fail(err, -EINVAL,
		                     "user: '%s' is root, and the program never runs as root",
		                     user);
	return 0;
}

static int check_workdir(const char *workdir, struct resoluto_err *err)
{
	if (!workdir)
		return 0;
	if (workdir[0] != '/' || (workdir[1] && !path_is_beneath(workdir + 1)))
		return resoluto_fail(err, -EINVAL,
		                     "workdir: '%s' is not an absolute path without '..'", workdir);
	if (strlen(workdir) >= PATH_MAX || !options_is_utf8(workdir))
		return resoluto_fail(err, -EINVAL, "workdir is too long or not UTF-8");
	return 0;
}

static int check_stdin(const struct resoluto_stdin *input, struct resoluto_err *err)
{
	switch (input->kind) {
	case RESOLUTO_STDIN_NONE:
		return 0;
	case RESOLUTO_STDIN_BYTES:
		if (input->bytes || input->len == 0)
			return 0;
		return resoluto_fail(err, -EINVAL,
		                     "input: bytes are asked for, and there are none");
	case RESOLUTO_STDIN_FILE:
		if (input->path && input->path[0])
			return 0;
		return resoluto_fail(err, -EINVAL, "input: the name of the file is empty");
	case RESOLUTO_STDIN_FD:
		if (input->fd >= 0)
			return 0;
		return resoluto_fail(err, -EINVAL, "input: %d is not a descriptor", input->fd);
	}
	return resoluto_fail(err, -EINVAL, "input: unknown kind %d", (int) input->kind);
}

/* The runner refuses more, when the machine has been started for it. */
static int check_drain_timeout(uint64_t ms, struct resoluto_err *err)
{
	if (ms <= RESOLUTO_DRAIN_TIMEOUT_MAX_MS)
		return 0;
	return resoluto_fail(err, -EINVAL, "drain_timeout: %" PRIu64 " ms is more than %d ms (24h)",
	                     ms, RESOLUTO_DRAIN_TIMEOUT_MAX_MS);
}

static int check_backend(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	const char *name = options->backend_name;

	if (options->backend && name)
		return resoluto_fail(err, -EINVAL,
		                     "backend and backend_name are given: one of them, please");
	if (!name || strcmp(name, "local") == 0)
		return 0;
	if (strcmp(name, "k8s") == 0)
		return resoluto_fail(err, -EINVAL,
		                     "backend 'k8s' is not part of version " RESOLUTO_VERSION
		                     ": use 'local', or give a backend of your own");
	return resoluto_fail(err, -EINVAL, "backend '%s' is unknown: there is 'local'", name);
}

/* What a backend of the caller's takes for a reference is its own. */
static int check_image(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	struct reference reference;
	struct platform platform;
	int r = 0;

	if (options->backend)
		return 0;
	if (options->image && options->image[0])
		r = reference_parse(options->image, &reference, err);
	if (r == 0 && options->platform)
		r = platform_parse(options->platform, "", &platform, err);
	return r < 0 ? resoluto_fail_in(err, r, "image") : 0;
}

static int check_all(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	int r = check_programs(options, err);

	if (r == 0)
		r = check_env(options, err);
	if (r == 0)
		r = check_labels(options, err);
	if (r == 0)
		r = check_image(options, err);
	if (r == 0)
		r = check_workspace(options, err);
	if (r == 0)
		r = check_outputs(options, err);
	if (r == 0)
		r = check_user(options->user, err);
	if (r == 0)
		r = check_workdir(options->workdir, err);
	if (r == 0)
		r = check_stdin(&options->input, err);
	if (r == 0)
		r = check_drain_timeout(options->drain_timeout_ms, err);
	if (r == 0)
		r = check_backend(options, err);
	if (r == 0 && options->id && !key_is_run_id(options->id))
		r = resoluto_fail(err, -EINVAL,
		                  "id: '%s' is not 1 to 40 of a-z, 0-9 and '-', beginning with a "
		                  "letter or digit",
		                  options->id);
	return r;
}

int options_check(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	int r = check_all(options, err);

	return r < 0 ? r : check_output_place(options, err);
}

int options_check_launch(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	if (options->output_dir)
		return resoluto_fail(err, -EINVAL,
		                     "output_dir: a launch brings nothing back; collect names the "
		                     "directory");
	if (options->stream || options->on_event)
		return resoluto_fail(err, -EINVAL,
		                     "stream and on_event: a launch tells no output; drive does");
	if (options->detach_on_hangup)
		return resoluto_fail(err, -EINVAL,
		                     "detach_on_hangup: a launched run is detached anyway");
	return check_all(options, err);
}
