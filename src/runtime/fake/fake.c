/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.c - a runtime that starts nothing: it calls the caller's script where a guest would run,
 * plays back the phases it was given, and counts what it was asked.
 *
 * A sandbox is found by its id and a serial number, so that a handle whose sandbox was swept or
 * destroyed names nothing, even when the id is used again.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "runtime/launch_spec.h"

struct sandbox {
	char id[RESOLUTO_ID_MAX + 1];
	uintptr_t serial;    /* what its handle's state holds */
	struct strv labels;  /* owned */
	size_t status_index; /* into the script's statuses */
	bool takes_stdin, is_kept;
	uint64_t deadline_at_ms; /* monotonic; UINT64_MAX: none */
	struct sandbox *next;
};

struct fake_runtime {
	struct resoluto_runtime base; /* first */
	struct resoluto_fake *fake;   /* borrowed */
	struct sandbox *sandboxes;    /* owned */
	uintptr_t last_serial;
};

static struct fake_runtime *fake_of(struct resoluto_runtime *runtime)
{
	return (struct fake_runtime *) runtime;
}

static void sandbox_free(struct sandbox *sandbox)
{
	strv_done(&sandbox->labels);
	free(sandbox);
}

static struct sandbox *find(struct fake_runtime *runtime, const struct resoluto_handle *handle)
{
	for (struct sandbox *at = runtime->sandboxes; at; at = at->next) {
		if (at->serial == (uintptr_t) handle->state && strcmp(at->id, handle->id) == 0)
			return at;
	}
	return NULL;
}

static bool has_id(const struct fake_runtime *runtime, const char *id)
{
	for (const struct sandbox *at = runtime->sandboxes; at; at = at->next) {
		if (strcmp(at->id, id) == 0)
			return true;
	}
	return false;
}

static int no_such(const struct resoluto_handle *handle, struct resoluto_err *err)
{
	return resoluto_fail(err, -ENOENT, "no sandbox '%s'", handle->id);
}

/* Returns NULL when out of memory. */
static struct sandbox *sandbox_new(const struct resoluto_launch_spec *spec, uintptr_t serial)
{
	struct sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (!sandbox)
		return NULL;
	memcpy(sandbox->id, spec->id, strlen(spec->id) + 1);
	sandbox->serial = serial;
	sandbox->takes_stdin = spec->has_stdin;
	sandbox->deadline_at_ms = spec->deadline_ms ? clock_mono_ms() + spec->deadline_ms
	                                            : UINT64_MAX;
	if (strv_add_all(&sandbox->labels, spec->labels) < 0) {
		sandbox_free(sandbox);
		return NULL;
	}
	return sandbox;
}

static int fake_launch(struct resoluto_runtime *base, const struct resoluto_launch_spec *given,
                       struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct resoluto_fake *fake = runtime->fake;
	struct checked_spec checked;
	const struct resoluto_launch_spec *spec = &checked.spec;
	struct sandbox *sandbox;
	int r;

	fake->launches++;
	r = runtime_check_spec(given, &checked, err);
	if (r == 0)
		r = runtime_refuse_egress(spec, base->ops->name, err);
	if (r < 0)
		return r;
	if (has_id(runtime, spec->id))
		return resoluto_fail(err, -EEXIST, "sandbox '%s' is there already", spec->id);
	r = fake->guest ? fake->guest(fake->ctx, spec) : 0;
	if (r < 0)
		return resoluto_fail(err, r, "launch '%s'", spec->id);
	sandbox = sandbox_new(spec, runtime->last_serial + 1);
	if (!sandbox)
		return resoluto_fail(err, -ENOMEM, "launch '%s'", spec->id);
	runtime->last_serial++;
	sandbox->next = runtime->sandboxes;
	runtime->sandboxes = sandbox;
	if (++fake->alive > fake->alive_max)
		fake->alive_max = fake->alive;
	*ret_handle = (struct resoluto_handle){ .state = (void *) sandbox->serial };
	memcpy(ret_handle->id, sandbox->id, sizeof(ret_handle->id));
	return 0;
}

static bool has_ended(const struct resoluto_status *status)
{
	return status->phase == RESOLUTO_PHASE_SUCCEEDED || status->phase == RESOLUTO_PHASE_FAILED;
}

static struct resoluto_status scripted_status(const struct fake_runtime *runtime,
                                              const struct sandbox *sandbox)
{
	const struct resoluto_fake *fake = runtime->fake;
	struct resoluto_status status = { .phase = RESOLUTO_PHASE_RUNNING, .exit_code = -1 };

	if (fake->status_count > 0)
		status = fake->statuses[sandbox->status_index];
	if (!has_ended(&status) && clock_mono_ms() >= sandbox->deadline_at_ms)
		status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_FAILED,
			                           .reason = "deadline",
			                           .exit_code = -1 };
	return status;
}

static int fake_status(struct resoluto_runtime *base, struct resoluto_handle *handle,
                       struct resoluto_status *ret_status, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct resoluto_fake *fake = runtime->fake;
	struct sandbox *sandbox = find(runtime, handle);

	fake->status_calls++;
	if (!sandbox) {
		*ret_status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_UNKNOWN,
			                                .exit_code = -1 };
		return 0;
	}
	*ret_status = scripted_status(runtime, sandbox);
	if (sandbox->status_index + 1 < fake->status_count)
		sandbox->status_index++;
	return 0;
}

/* Unlink and free the sandbox that *link points to. */
static void end_sandbox(struct fake_runtime *runtime, struct sandbox **link)
{
	struct sandbox *sandbox = *link;

	*link = sandbox->next;
	sandbox_free(sandbox);
	runtime->fake->alive--;
}

static int fake_destroy(struct resoluto_runtime *base, struct resoluto_handle *handle,
                        struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct sandbox *sandbox = find(runtime, handle);
	struct sandbox **link = &runtime->sandboxes;

	runtime->fake->destroys++;
	if (!sandbox)
		return 0;
	while (*link != sandbox)
		link = &(*link)->next;
	end_sandbox(runtime, link);
	return 0;
}

static int fake_sweep(struct resoluto_runtime *base, const char *const *labels,
                      struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct sandbox **link = &runtime->sandboxes;
	int count = 0;

	runtime->fake->sweeps++;
	while (*link) {
		if (!runtime_labels_match((const char *const *) (*link)->labels.items, labels)) {
			link = &(*link)->next;
			continue;
		}
		end_sandbox(runtime, link);
		count++;
	}
	return count;
}

static int fake_logs(struct resoluto_runtime *base, struct resoluto_handle *handle,
                     unsigned tail_lines, char **ret_text, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	char *text;

	runtime->fake->logs_calls++;
	if (!find(runtime, handle))
		return no_such(handle, err);
	text = strdup(tail_lines > 0 ? "fake: nothing was started\n" : "");
	if (!text)
		return resoluto_fail(err, -ENOMEM, "logs of '%s'", handle->id);
	*ret_text = text;
	return 0;
}

/* Each status call is a change, so there is never anything to sleep for. */
static int fake_wait(struct resoluto_runtime *base, struct resoluto_handle *handle, int extra_fd,
                     int timeout_ms, struct resoluto_err *err)
{
	struct pollfd extra = { .fd = extra_fd, .events = POLLIN };
	int n;

	fake_of(base)->fake->waits++;
	do {
		n = poll(&extra, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0 || (n > 0 && (extra.revents & POLLNVAL)))
		return resoluto_fail(err, n < 0 ? -errno : -EBADF, "wait for '%s'", handle->id);
	return n > 0 ? 1 : 0;
}

static ssize_t fake_send_stdin(struct resoluto_runtime *base, struct resoluto_handle *handle,
                               const void *bytes, size_t len, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct sandbox *sandbox = find(runtime, handle);

	if (!sandbox)
		return no_such(handle, err);
	if (!sandbox->takes_stdin)
		return resoluto_fail(err, -EPIPE, "'%s' reads no standard input", handle->id);
	runtime->fake->stdin_bytes += len;
	return (ssize_t) len;
}

static int fake_close_stdin(struct resoluto_runtime *base, struct resoluto_handle *handle,
                            struct resoluto_err *err)
{
	struct sandbox *sandbox = find(fake_of(base), handle);

	if (!sandbox)
		return no_such(handle, err);
	sandbox->takes_stdin = false;
	return 0;
}

static int fake_signal(struct resoluto_runtime *base, struct resoluto_handle *handle, int signo,
                       struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);

	runtime->fake->signals++;
	return find(runtime, handle) ? 0 : no_such(handle, err);
}

static int fake_isolation(struct resoluto_runtime *base, struct resoluto_handle *handle,
                          char **ret_json, struct resoluto_err *err)
{
	static const char nothing[] =
		"{\"runtime\":\"fake\",\"accel\":\"none\",\"kernel\":\"\",\"own_kernel\":false,"
		"\"guest_boot_id\":\"\",\"verdict\":\"same-uid\",\"confinement\":[]}";
	char *json;

	if (!find(fake_of(base), handle))
		return no_such(handle, err);
	json = strdup(nothing);
	if (!json)
		return resoluto_fail(err, -ENOMEM, "isolation of '%s'", handle->id);
	*ret_json = json;
	return 0;
}

/* Nothing here depends on who launched it. */
static int fake_detach(struct resoluto_runtime *base, struct resoluto_handle *handle,
                       struct resoluto_err *err)
{
	struct sandbox *sandbox = find(fake_of(base), handle);

	fake_of(base)->fake->detaches++;
	if (!sandbox)
		return no_such(handle, err);
	sandbox->takes_stdin = false;
	sandbox->is_kept = true;
	handle->state = NULL;
	return 0;
}

static int fake_attach(struct resoluto_runtime *base, const char *id,
                       struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);

	runtime->fake->attaches++;
	for (struct sandbox *at = runtime->sandboxes; at; at = at->next) {
		if (strcmp(at->id, id) != 0)
			continue;
		*ret_handle = (struct resoluto_handle){ .state = (void *) at->serial };
		memcpy(ret_handle->id, at->id, sizeof(ret_handle->id));
		return 0;
	}
	return resoluto_fail(err, -ENOENT, "no sandbox '%.60s'", id);
}

/* Its words outlive the sandbox: each() may destroy it. */
static int tell(const struct fake_runtime *runtime, const struct sandbox *sandbox,
                resoluto_sandbox_fn *each, void *ctx)
{
	CLEANUP(strv_done) struct strv labels = { 0 };
	char id[RESOLUTO_ID_MAX + 1];
	struct resoluto_sandbox_info info = {
		.id = memcpy(id, sandbox->id, sizeof(id)),
		.image = "fake",
		.status = scripted_status(runtime, sandbox),
		.is_kept = sandbox->is_kept,
		.created = 1,
	};

	info.is_alive = !has_ended(&info.status);
	if (strv_add_all(&labels, (const char *const *) sandbox->labels.items) < 0)
		return -ENOMEM;
	info.labels = (const char *const *) labels.items;
	return each(ctx, &info);
}

static int fake_list(struct resoluto_runtime *base, const char *const *labels,
                     resoluto_sandbox_fn *each, void *ctx, struct resoluto_err *err)
{
	struct fake_runtime *runtime = fake_of(base);
	struct sandbox *next;

	runtime->fake->lists++;
	for (struct sandbox *at = runtime->sandboxes; at; at = next) {
		int r = 0;

		next = at->next;
		if (runtime_labels_match((const char *const *) at->labels.items, labels))
			r = tell(runtime, at, each, ctx);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return 0;
}

static void fake_close(struct resoluto_runtime *base)
{
	struct fake_runtime *runtime = fake_of(base);

	while (runtime->sandboxes)
		end_sandbox(runtime, &runtime->sandboxes);
	free(runtime);
}

static const struct resoluto_runtime_ops runtime_fake = {
	.name = "fake",
	.launch = fake_launch,
	.status = fake_status,
	.destroy = fake_destroy,
	.sweep = fake_sweep,
	.logs = fake_logs,
	.wait = fake_wait,
	.send_stdin = fake_send_stdin,
	.close_stdin = fake_close_stdin,
	.signal = fake_signal,
	.isolation = fake_isolation,
	.detach = fake_detach,
	.attach = fake_attach,
	.list = fake_list,
	.close = fake_close,
};

int resoluto_runtime_fake_new(struct resoluto_fake *fake, struct resoluto_runtime **ret_runtime,
                              struct resoluto_err *err)
{
	struct fake_runtime *runtime;

	if (!fake || !ret_runtime)
		return resoluto_fail(err, -EINVAL, "a fake runtime needs its script and a place");
	/* Written to, too: one of another size has no place for what is counted. */
	if (fake->struct_size != sizeof(*fake))
		return resoluto_fail(err, -EINVAL, "fake of %zu bytes, this version's has %zu",
		                     fake->struct_size, sizeof(*fake));
	if (fake->status_count > 0 && !fake->statuses)
		return resoluto_fail(err, -EINVAL, "%zu statuses, but no list of them",
		                     fake->status_count);
	runtime = calloc(1, sizeof(*runtime));
	if (!runtime)
		return resoluto_fail(err, -ENOMEM, "make a fake runtime");
	runtime->base.ops = &runtime_fake;
	runtime->fake = fake;
	*ret_runtime = &runtime->base;
	return 0;
}
