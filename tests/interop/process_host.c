/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_host.c - our host over a runtime that starts a plain process: the public library with parts of one's own.
 *
 *	process_host run     facade: prints the result of the run
 *	process_host drive   driver alone: prints the outcome
 *
 * stdin is a JSON object {argv[], launcher[], conduit, workspace_dir, guest_boot_id, log; and what the run is to have: id,
 * workspace, output_paths[], output_dir, env[], setup[], cleanup[], exclude[], deadline_ms, dead_after_ms}.  The launcher is run
 * with the sandbox's environment, in which the workspace lies at workspace_dir; what it prints goes to the file log.
 * Test only: a plain process isolates nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "resoluto/sandbox.h"

enum {
	LOOK_MS = 20, /* how often the conduit is looked at */
	LOG_MAX = 64 * 1024,
	POLL_MS = 20,
};

static json_t *config;

static const char *text_of(const char *name)
{
	return json_string_value(json_object_get(config, name));
}

static uint64_t number_of(const char *name)
{
	return (uint64_t) json_integer_value(json_object_get(config, name));
}

/* NULL if it is not there; lives until the program ends, its strings as long as config. */
static const char **list_of(const char *name)
{
	const json_t *array = json_object_get(config, name);
	const char **list = array ? calloc(json_array_size(array) + 1, sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < json_array_size(array); i++)
		list[i] = json_string_value(json_array_get(array, i));
	return list;
}

/* --- the runtime: one process at a time --- */

struct process_runtime {
	struct resoluto_runtime base; /* first */
	pid_t pid;                    /* 0: none */
	int pidfd, wait_status;
	bool has_ended;
};

static struct process_runtime *process_of(struct resoluto_runtime *runtime)
{
	return (struct process_runtime *) runtime;
}

/* The sandbox's variables; its workspace is a directory of this machine. */
static char **process_env(const struct resoluto_launch_spec *spec)
{
	static const char name[] = "RESOLUTO_WORKSPACE_DIR=";
	size_t count = 0, used = 0;
	char **env;

	while (spec->env[count])
		count++;
	env = calloc(count + 1, sizeof(*env));
	for (size_t i = 0; env && i < count; i++) {
		if (strncmp(spec->env[i], name, strlen(name)) != 0)
			env[used++] = strdup(spec->env[i]);
		else if (asprintf(&env[used], "%s%s", name, text_of("workspace_dir")) >= 0)
			used++;
	}
	return env;
}

static int spawn(struct process_runtime *process, const char *const *argv, char **env)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int r;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, text_of("log"), O_WRONLY | O_CREAT | O_APPEND,
	                                 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	r = posix_spawnp(&process->pid, argv[0], &files, &attributes, (char *const *) argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

static int process_launch(struct resoluto_runtime *runtime, const struct resoluto_launch_spec *spec,
                          struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct process_runtime *process = process_of(runtime);
	const char **launcher = list_of("launcher");
	char **env = process_env(spec);
	int r;

	if (process->pid)
		return resoluto_fail(err, -EBUSY, "one process at a time");
	r = spawn(process, launcher, env);
	for (char **at = env; at && *at; at++)
		free(*at);
	free(env);
	free(launcher);
	if (r < 0) {
		process->pid = 0;
		return resoluto_fail(err, r, "start the launcher");
	}
	process->pidfd = pidfd_open(process->pid, 0);
	process->has_ended = false;
	snprintf(ret_handle->id, sizeof(ret_handle->id), "%s", spec->id);
	ret_handle->state = process;
	return 0;
}

static int process_status(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                          struct resoluto_status *ret_status, struct resoluto_err *err)
{
	struct process_runtime *process = process_of(runtime);

	*ret_status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_UNKNOWN, .exit_code = -1 };
	if (!process->pid)
		return 0;
	if (!process->has_ended)
		process->has_ended = waitpid(process->pid, &process->wait_status, WNOHANG) ==
		                     process->pid;
	ret_status->phase = RESOLUTO_PHASE_RUNNING;
	if (!process->has_ended)
		return 0;
	ret_status->phase = process->wait_status == 0 ? RESOLUTO_PHASE_SUCCEEDED
	                                              : RESOLUTO_PHASE_FAILED;
	if (WIFEXITED(process->wait_status))
		ret_status->exit_code = WEXITSTATUS(process->wait_status);
	return 0;
}

static int process_destroy(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                           struct resoluto_err *err)
{
	struct process_runtime *process = process_of(runtime);

	if (!process->pid)
		return 0;
	kill(-process->pid, SIGKILL);
	if (!process->has_ended)
		waitpid(process->pid, &process->wait_status, 0);
	close(process->pidfd);
	process->pid = 0;
	return 0;
}

static int process_sweep(struct resoluto_runtime *runtime, const char *const *labels,
                         struct resoluto_err *err)
{
	return resoluto_fail(err, -EOPNOTSUPP, "nothing outlives this runtime");
}

static int process_logs(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                        unsigned tail_lines, char **ret_text, struct resoluto_err *err)
{
	FILE *file = fopen(text_of("log"), "re");
	char *text = calloc(1, LOG_MAX + 1);

	if (file && text)
		text[fread(text, 1, LOG_MAX, file)] = '\0';
	if (file)
		fclose(file);
	*ret_text = text;
	return text ? 0 : resoluto_fail(err, -ENOMEM, "logs");
}

/* Nobody tells when an object was put: look often. */
static int process_wait(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                        int extra_fd, int timeout_ms, struct resoluto_err *err)
{
	struct process_runtime *process = process_of(runtime);
	struct pollfd polls[2] = { { .fd = process->has_ended ? -1 : process->pidfd,
		                     .events = POLLIN },
		                   { .fd = extra_fd, .events = POLLIN } };

	if (poll(polls, 2, timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS) < 0 && errno != EINTR)
		return resoluto_fail(err, -errno, "wait");
	return polls[1].revents != 0;
}

static ssize_t process_send_stdin(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                  const void *bytes, size_t len, struct resoluto_err *err)
{
	return resoluto_fail(err, -EOPNOTSUPP, "the original's runner reads no standard input");
}

static int process_close_stdin(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                               struct resoluto_err *err)
{
	return 0;
}

static int process_signal(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                          int signo, struct resoluto_err *err)
{
	return resoluto_fail(err, -EOPNOTSUPP, "the original's runner takes no signals");
}

/* What the test says: a plain process has no kernel of its own. */
static int process_isolation(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                             char **ret_json, struct resoluto_err *err)
{
	const char *id = text_of("guest_boot_id");

	if (asprintf(ret_json,
	             "{\"runtime\":\"process\",\"guest_boot_id\":\"%s\",\"verdict\":\"same-uid\"}",
	             id ? id : "") < 0)
		return resoluto_fail(err, -ENOMEM, "isolation");
	return 0;
}

static void process_close(struct resoluto_runtime *runtime)
{
	(void) process_destroy(runtime, NULL, NULL);
}

static const struct resoluto_runtime_ops process_ops = {
	.name = "process",
	.launch = process_launch,
	.status = process_status,
	.destroy = process_destroy,
	.sweep = process_sweep,
	.logs = process_logs,
	.wait = process_wait,
	.send_stdin = process_send_stdin,
	.close_stdin = process_close_stdin,
	.signal = process_signal,
	.isolation = process_isolation,
	.close = process_close,
};

/* --- the host --- */

struct parts {
	struct process_runtime runtime;
	struct resoluto_conduit *conduit;
	char *store_root; /* RESOLUTO_STORE_ROOT=... */
};

static int open_parts(struct parts *parts, struct resoluto_err *err)
{
	char *url = NULL;
	int r;

	parts->runtime.base.ops = &process_ops;
	if (asprintf(&url, "localfs://%s", text_of("conduit")) < 0 ||
	    asprintf(&parts->store_root, "RESOLUTO_STORE_ROOT=%s", text_of("conduit")) < 0)
		return -ENOMEM;
	r = resoluto_conduit_open_url(url, &parts->conduit, err);
	free(url);
	return r;
}

static int facade(struct parts *parts, const struct resoluto_backend *backend,
                  struct resoluto_err *err)
{
	const struct resoluto_run_options options = {
		.struct_size = sizeof(options),
		.argv = list_of("argv"),
		.backend = backend,
		.id = text_of("id"),
		.workspace = text_of("workspace"),
		.exclude = list_of("exclude"),
		.output_paths = list_of("output_paths"),
		.output_dir = text_of("output_dir"),
		.env = list_of("env"),
		.setup = list_of("setup"),
		.cleanup = list_of("cleanup"),
		.deadline_ms = number_of("deadline_ms"),
		.dead_after_ms = number_of("dead_after_ms"),
		.keep_run = true,
	};
	struct resoluto_result *result = NULL;
	int r = resoluto_sandbox_run(&options, &result, err);
	char *json = r < 0 ? NULL : resoluto_result_to_json(result);

	if (json)
		printf("{\"result\":%s,\"detail\":", json);
	if (json)
		json_dumpf(json_string(result->detail), stdout,
		           JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (json)
		printf("}\n");
	free(json);
	resoluto_result_free(result);
	return r;
}

static int run(struct parts *parts, struct resoluto_err *err)
{
	const char *const store_env[] = { "RESOLUTO_STORE_KIND=localfs", parts->store_root, NULL };
	const struct resoluto_backend_options options = {
		.struct_size = sizeof(options),
		.runtime = &parts->runtime.base,
		.conduit = parts->conduit,
		.image = "none",
		.store_env = store_env,
	};
	struct resoluto_backend *backend = NULL;
	int r = resoluto_backend_new(&options, &backend, err);

	if (r == 0)
		r = facade(parts, backend, err);
	resoluto_backend_free(backend);
	return r;
}

static int drive(struct parts *parts, struct resoluto_err *err)
{
	const char **env = list_of("env");
	const struct resoluto_launch_spec spec = {
		.struct_size = sizeof(spec),
		.id = text_of("id"),
		.image = "none",
		.env = env,
		.labels = (const char *const[]){ "resoluto.node_id=run", NULL },
		.conduit = parts->conduit,
		.store_prefix = text_of("store_prefix"),
	};
	const struct resoluto_drive_options options = {
		.struct_size = sizeof(options),
		.runtime = &parts->runtime.base,
		.conduit = parts->conduit,
		.spec = &spec,
		.dead_after_ms = number_of("dead_after_ms"),
		.poll_interval_ms = POLL_MS,
		.idle_fd = -1,
	};
	struct resoluto_outcome outcome = { 0 };
	int r = resoluto_drive_node(&options, &outcome, err);
	json_t *json = json_pack("{s:s, s:s, s:s?, s:s, s:I, s:I}", "disposition",
	                         resoluto_disposition_name(outcome.disposition), "reason",
	                         outcome.reason, "result", outcome.result_json, "substrate_logs",
	                         outcome.substrate_logs ? outcome.substrate_logs : "", "chunks",
	                         (json_int_t) outcome.chunks, "events",
	                         (json_int_t) outcome.events);

	if (r == 0)
		json_dumpf(json, stdout, JSON_ENSURE_ASCII);
	json_decref(json);
	resoluto_outcome_done(&outcome);
	free(env);
	return r;
}

int main(int argc, char **argv)
{
	struct parts parts = { 0 };
	struct resoluto_err err = { 0 };
	bool is_run = argc == 2 && strcmp(argv[1], "run") == 0;
	int r;

	config = json_loadf(stdin, 0, NULL);
	if (!config || (!is_run && !(argc == 2 && strcmp(argv[1], "drive") == 0))) {
		fprintf(stderr, "usage: process_host run | drive, with a JSON object on stdin\n");
		return 2;
	}
	r = open_parts(&parts, &err);
	if (r == 0)
		r = is_run ? run(&parts, &err) : drive(&parts, &err);
	resoluto_runtime_close(&parts.runtime.base);
	resoluto_conduit_close(parts.conduit);
	if (r < 0)
		fprintf(stderr, "process_host: %s: %s\n", err.text, strerrordesc_np(-r));
	return r < 0;
}
