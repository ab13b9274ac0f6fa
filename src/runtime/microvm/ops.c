/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - the operation table of the microVM runtime, but for launch. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/options_copy.h"
#include "base/path.h"
#include "runtime/microvm/door.h"
#include "runtime/microvm/gateway.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/microvm.h"
#include "runtime/microvm/run.h"
#include "wire/frame.h"
#include "wire/keys.h"

enum {
	LOGS_MAX = 128 * 1024, /* bytes of a log file that are read */
	LOGS_MS = 1000,        /* for a live shim to write them */
	ISOLATION_MAX = 16 * 1024,
};

static struct microvm *microvm_of(struct resoluto_runtime *runtime)
{
	return (struct microvm *) runtime;
}

static int vm_status(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                     struct resoluto_status *ret_status, struct resoluto_err *err)
{
	struct run *run = handle->state;
	struct run_state state;
	int r;

	*ret_status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_UNKNOWN, .exit_code = -1 };
	if (!run || rundir_is_removed(run->claim->dir.fd))
		return 0;
	r = run_read_state(run, &state, err);
	if (r == 0)
		run_state_tell(&state, ret_status);
	return r;
}

static void unlink_run(struct microvm *microvm, struct run *run)
{
	struct run **at = &microvm->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
}

static int end_run(struct microvm *microvm, struct run *run, struct resoluto_err *err)
{
	struct claim *claim = run->claim;
	int r = 0;

	if (run->is_attached)
		r = attached_end(run, err);
	else
		run_end(run);
	if (r < 0)
		return r;
	unlink_run(microvm, run);
	free(run);
	claim->is_in_use = false;
	return claim->is_callers ? 0 : microvm_drop_claim(microvm, claim, err);
}

static int vm_destroy(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                      struct resoluto_err *err)
{
	int r = handle->state ? end_run(microvm_of(runtime), handle->state, err) : 0;

	if (r != -EBUSY)
		handle->state = NULL;
	return r;
}

static int vm_sweep(struct resoluto_runtime *runtime, const char *const *labels,
                    struct resoluto_err *err)
{
	return rundir_sweep(microvm_of(runtime)->state_dir, labels, err);
}

/* --- logs --- */

static int add_log(int dirfd, const char *name, struct buf *text)
{
	CLEANUP(fd_close) int fd = open_beneath(dirfd, name, O_RDONLY | O_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = read_rest(fd, text);
	return r == -E2BIG ? 0 : r;
}

/* Where the last tail_lines lines begin. */
static const char *tail_of(const char *text, size_t len, unsigned tail_lines)
{
	const char *at = text + len;

	if (tail_lines == 0)
		return at;
	if (at > text && at[-1] == '\n')
		at--;
	while (at > text) {
		if (at[-1] == '\n' && --tail_lines == 0)
			return at;
		at--;
	}
	return text;
}

static int vm_logs(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                   unsigned tail_lines, char **ret_text, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LOGS_MAX);
	struct run *run = handle->state;
	uint64_t news;
	int r;

	if (!run)
		return resoluto_fail(err, -ENOENT, "run %s is not there any more", handle->id);
	news = run->news;
	if (run_send(run, FRAME_LOGS, NULL, 0) == 0)
		(void) run_wait_news(run, news, LOGS_MS); /* late: then what was written before */
	r = add_log(run->claim->dir.fd, "console.log", &text);
	if (r == 0)
		r = add_log(run->claim->dir.fd, "qemu.log", &text);
	if (r < 0)
		return resoluto_fail(err, r, "read the logs of run %s", handle->id);
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\0')
			text.data[i] = '?';
	}
	*ret_text = strdup(text.data ? tail_of(text.data, text.len, tail_lines) : "");
	return *ret_text ? 0 : resoluto_fail(err, -ENOMEM, "read the logs of run %s", handle->id);
}

/* --- waiting and talking --- */

static int vm_wait(struct resoluto_runtime *runtime, struct resoluto_handle *handle, int extra_fd,
                   int timeout_ms, struct resoluto_err *err)
{
	struct run *run = handle->state;
	struct pollfd extra = { .fd = extra_fd, .events = POLLIN };
	bool is_readable = false;
	int r;

	if (run && run->has_ended && !run->end_was_told) {
		run->end_was_told = true;
		timeout_ms = 0;
	}
	/* Taken in by another operation since: the caller may have looked before it came. */
	if (run && run->news != run->told)
		timeout_ms = 0;
	if (run) {
		r = run_poll(run, extra_fd, timeout_ms, &is_readable);
		run->told = run->news;
	} else {
		r = poll(&extra, 1, timeout_ms) < 0 && errno != EINTR ? -errno : 0;
		is_readable = extra.revents != 0;
	}
	return r < 0 ? resoluto_fail(err, r, "wait for run %s", handle->id) : is_readable;
}

static ssize_t vm_send_stdin(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                             const void *bytes, size_t len, struct resoluto_err *err)
{
	struct run *run = handle->state;
	int r;

	if (!run || run->has_ended || run->stdin_is_closed || run->is_attached)
		return -EPIPE;
	r = run_receive(run);
	if (r == 0)
		r = run_flush(run);
	if (r < 0)
		return resoluto_fail(err, r, "send stdin");
	if (run->has_ended)
		return -EPIPE;
	if (len > run->credit)
		len = (size_t) run->credit;
	if (len > FRAME_PAYLOAD_MAX)
		len = FRAME_PAYLOAD_MAX;
	if (len == 0 || run->out.len > 0)
		return 0;
	r = run_send(run, FRAME_STDIN, bytes, len);
	if (r < 0)
		return r == -EPIPE ? r : resoluto_fail(err, r, "send stdin");
	run->credit -= len;
	return (ssize_t) len;
}

static int vm_close_stdin(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                          struct resoluto_err *err)
{
	struct run *run = handle->state;
	int r;

	if (!run || run->stdin_is_closed || run->is_attached)
		return 0;
	run->stdin_is_closed = true;
	r = run_send(run, FRAME_STDIN_EOF, NULL, 0);
	return r < 0 && r != -EPIPE ? resoluto_fail(err, r, "close stdin") : 0;
}

static int vm_signal(struct resoluto_runtime *runtime, struct resoluto_handle *handle, int signo,
                     struct resoluto_err *err)
{
	struct run *run = handle->state;
	unsigned char payload[4] = { (unsigned char) signo, 0, 0, 0 };
	int r;

	if (signo <= 0 || signo >= 64)
		return resoluto_fail(err, -EINVAL, "%d is not a signal", signo);
	if (!run)
		return resoluto_fail(err, -ENOENT, "run %s is not there any more", handle->id);
	if (run->is_attached)
		return door_send(run->claim->dir.fd, FRAME_SIGNAL, payload, sizeof(payload), err);
	r = run_send(run, FRAME_SIGNAL, payload, sizeof(payload));
	return r < 0 ? resoluto_fail(err, r, "signal the program of run %s", handle->id) : 0;
}

static json_t *confinement_of(const struct run_state *state)
{
	json_t *list = json_array();

	for (int i = 0; list && i < STATE_CONFINEMENT_MAX && state->confinement[i][0]; i++)
		(void) json_array_append_new(list, json_string(state->confinement[i]));
	return list;
}

static int vm_isolation(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                        char **ret_json, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *root = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(ISOLATION_MAX);
	struct run *run = handle->state;
	struct run_state state;
	int r;

	if (!run)
		return resoluto_fail(err, -ENOENT, "run %s is not there any more", handle->id);
	r = run_read_state(run, &state, err);
	if (r < 0)
		return r;
	root = json_pack("{ss ss so sb ss ss so}", "runtime", "microvm", "accel", run->accel,
	                 "kernel", json_text(run->kernel), "own_kernel", state.own_kernel,
	                 "guest_boot_id", state.guest_boot_id, "verdict", "protected",
	                 "confinement", confinement_of(&state));
	r = root ? json_write(&text, root) : -ENOMEM;
	if (r < 0)
		return resoluto_fail(err, r, "write what is known of the isolation");
	*ret_json = buf_take(&text);
	return *ret_json ? 0 : resoluto_fail(err, -ENOMEM, "write what is known of the isolation");
}

/* --- claims of the facade --- */

int microvm_claim(struct resoluto_runtime *runtime, const char *id, char **ret_path,
                  struct resoluto_err *err)
{
	struct claim *claim;
	char *path;
	int r;

	if (!key_is_run_id(id))
		return resoluto_fail(err, -EINVAL, "'%s' is not a run id ([a-z0-9][a-z0-9-]{0,%d})",
		                     id, RESOLUTO_ID_MAX - 1);
	r = microvm_add_claim(microvm_of(runtime), id, &claim, err);
	if (r < 0)
		return r;
	claim->is_callers = true;
	if (!ret_path)
		return 0;
	path = strdup(claim->dir.path);
	if (!path) {
		(void) microvm_drop_claim(microvm_of(runtime), claim, NULL);
		return resoluto_fail(err, -ENOMEM, "claim the run");
	}
	*ret_path = path;
	return 0;
}

int microvm_open(struct resoluto_runtime *runtime, const char *id, char **ret_path,
                 struct resoluto_err *err)
{
	struct microvm *microvm = microvm_of(runtime);
	struct claim *claim;
	int r = microvm_add_foreign_claim(microvm, id, &claim, err);

	if (r < 0)
		return r;
	claim->is_callers = true;
	*ret_path = strdup(claim->dir.path);
	if (*ret_path)
		return 0;
	microvm_forget_claim(microvm, claim);
	return resoluto_fail(err, -ENOMEM, "open run %s", id);
}

int microvm_egress(struct resoluto_runtime *runtime, const char *id, struct buf *ret_text,
                   struct resoluto_err *err)
{
	const struct claim *claim = microvm_find_claim(microvm_of(runtime), id);

	return claim ? gateway_read_rows(claim->dir.fd, GATEWAY_END_MS, ret_text, err) : -ENOENT;
}

int microvm_tidy(struct resoluto_runtime *runtime, struct resoluto_err *err)
{
	return rundir_sweep_dead(microvm_of(runtime)->state_dir, err);
}

bool microvm_is_removed(const struct resoluto_handle *handle)
{
	const struct run *run = handle->state;

	return !run || rundir_is_removed(run->claim->dir.fd);
}

void microvm_forget_claim(struct microvm *microvm, struct claim *claim)
{
	struct claim **at = &microvm->claims;

	rundir_done(&claim->dir);
	while (*at != claim)
		at = &(*at)->next;
	*at = claim->next;
	free(claim);
}

static struct run *find_run(struct microvm *microvm, const struct claim *claim)
{
	for (struct run *run = microvm->runs; run; run = run->next) {
		if (run->claim == claim)
			return run;
	}
	return NULL;
}

int microvm_keep(struct resoluto_runtime *runtime, const char *id, struct resoluto_err *err)
{
	const struct claim *claim = microvm_find_claim(microvm_of(runtime), id);

	if (!claim)
		return resoluto_fail(err, -ENOENT, "run %s is not ours", id);
	return run_record_keep(claim->dir.fd, id, err);
}

int microvm_release(struct resoluto_runtime *runtime, const char *id, bool keep,
                    struct resoluto_err *err)
{
	struct microvm *microvm = microvm_of(runtime);
	struct claim *claim = microvm_find_claim(microvm, id);
	struct run *run = claim ? find_run(microvm, claim) : NULL;
	int r;

	if (!claim || !claim->is_callers)
		return 0;
	if (run) {
		r = end_run(microvm, run, err);
		if (r < 0)
			return r;
	}
	if (!keep)
		return microvm_drop_claim(microvm, claim, err);
	r = claim->is_foreign ? 0 : run_record_keep(claim->dir.fd, id, err);
	microvm_forget_claim(microvm, claim);
	return r;
}

/* --- the runtime itself --- */

static void vm_close(struct resoluto_runtime *runtime)
{
	struct microvm *microvm = microvm_of(runtime);

	while (microvm->runs) {
		struct resoluto_handle handle = { .state = microvm->runs };

		if (microvm->runs->is_attached)
			(void) microvm_detach(runtime, &handle, NULL);
		else
			(void) end_run(microvm, microvm->runs, NULL);
	}
	while (microvm->claims) {
		if (microvm->claims->is_foreign)
			microvm_forget_claim(microvm, microvm->claims);
		else
			(void) microvm_drop_claim(microvm, microvm->claims, NULL);
	}
	config_free(&microvm->config);
	free(microvm->state_dir);
	free(microvm->qemu);
	free(microvm->kernel);
	free(microvm->initrd);
	free(microvm->accel);
	free(microvm->shim);
	free(microvm);
}

static const struct resoluto_runtime_ops microvm_ops = {
	.name = "microvm",
	.launch = microvm_launch,
	.status = vm_status,
	.destroy = vm_destroy,
	.sweep = vm_sweep,
	.logs = vm_logs,
	.wait = vm_wait,
	.send_stdin = vm_send_stdin,
	.close_stdin = vm_close_stdin,
	.signal = vm_signal,
	.isolation = vm_isolation,
	.detach = microvm_detach,
	.attach = microvm_attach,
	.list = microvm_list,
	.close = vm_close,
};

/* The option, else the configuration; *ret stays NULL where both are silent. */
static int setting(const struct microvm *microvm, const char *option, const char *name, char **ret)
{
	const char *value = option ? option : config_get(microvm->config, name);

	if (!value || !*value)
		return 0;
	*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

/* The absolute path of a program in PATH; NULL: it is not there. */
static char *find_program(const char *name)
{
	CLEANUP(mem_free) char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	char *rest = path, *dir;

	while (path && (dir = strsep(&rest, ":"))) {
		char *full = NULL;

		if (dir[0] != '/' || asprintf(&full, "%s/%s", dir, name) < 0)
			continue;
		if (access(full, X_OK) == 0)
			return full;
		free(full);
	}
	return NULL;
}

static int find_qemu(struct microvm *microvm, struct resoluto_err *err)
{
	if (microvm->qemu && microvm->qemu[0] != '/')
		return resoluto_fail(err, -EINVAL, "RESOLUTO_LOCAL_QEMU=%s is not an absolute path",
		                     microvm->qemu);
	if (!microvm->qemu)
		microvm->qemu = find_program(machine_qemu(microvm->row));
	if (!microvm->qemu)
		return resoluto_fail(err, -ENOENT,
		                     "%s is not in PATH; install QEMU or set RESOLUTO_LOCAL_QEMU",
		                     machine_qemu(microvm->row));
	return 0;
}

static int find_row(struct microvm *microvm, struct resoluto_err *err)
{
	return kernel_row(microvm->kernel, config_get(microvm->config, "RESOLUTO_LOCAL_MACHINE"),
	                  &microvm->row, err);
}

static int configure(struct microvm *microvm, const struct resoluto_microvm_options *options,
                     struct resoluto_err *err)
{
	int r = config_load(&microvm->config, err);

	if (r < 0)
		return r;
	microvm->state_dir = strdup(options->state_dir ? options->state_dir
	                                               : config_state_dir(microvm->config));
	r = microvm->state_dir ? 0 : -ENOMEM;
	if (r == 0)
		r = setting(microvm, options->qemu, "RESOLUTO_LOCAL_QEMU", &microvm->qemu);
	if (r == 0)
		r = setting(microvm, options->kernel, "RESOLUTO_LOCAL_KERNEL", &microvm->kernel);
	if (r == 0)
		r = setting(microvm, options->initrd, "RESOLUTO_LOCAL_INITRD", &microvm->initrd);
	if (r == 0)
		r = setting(microvm, options->accel, "RESOLUTO_LOCAL_ACCEL", &microvm->accel);
	if (r == 0 && options->shim) {
		microvm->shim = strdup(options->shim);
		r = microvm->shim ? 0 : -ENOMEM;
	}
	return r < 0 ? resoluto_fail(err, r, "configure the microVM runtime") : 0;
}

static int find_parts(struct microvm *microvm, struct resoluto_err *err)
{
	int r = find_row(microvm, err);

	if (r == 0)
		r = find_qemu(microvm, err);
	if (r == 0 && !microvm->shim)
		r = config_find_helper(microvm->config, "resoluto-shim", &microvm->shim, err);
	return r;
}

static int make(const struct resoluto_microvm_options *given, bool launches,
                struct resoluto_runtime **ret_runtime, struct resoluto_err *err)
{
	struct resoluto_microvm_options options = { 0 };
	struct microvm *microvm = calloc(1, sizeof(*microvm));
	int r = 0;

	if (!microvm)
		return resoluto_fail(err, -ENOMEM, "make the microVM runtime");
	microvm->base.ops = &microvm_ops;
	if (given) {
		r = options_copy(&options, sizeof(options), given, err);
		r = r < 0 ? resoluto_fail_in(err, r, "microVM options") : 0;
	}
	if (r == 0)
		r = configure(microvm, &options, err);
	if (r == 0 && launches)
		r = find_parts(microvm, err);
	if (r < 0) {
		vm_close(&microvm->base);
		return r;
	}
	*ret_runtime = &microvm->base;
	return 0;
}

int resoluto_runtime_microvm_new(const struct resoluto_microvm_options *options,
                                 struct resoluto_runtime **ret_runtime, struct resoluto_err *err)
{
	if (!ret_runtime)
		return resoluto_fail(err, -EINVAL, "no place for the runtime is given");
	return make(options, true, ret_runtime, err);
}

int microvm_reader_new(const char *state_dir, struct resoluto_runtime **ret_runtime,
                       struct resoluto_err *err)
{
	const struct resoluto_microvm_options options = { .struct_size = sizeof(options),
		                                          .state_dir = state_dir };

	return make(&options, false, ret_runtime, err);
}
