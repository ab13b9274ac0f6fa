/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * scripted.h - a runtime and a guest that follow a script in virtual time: wait() moves the clock
 * instead of sleeping, and at each wait the script may put objects as a guest would.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "resoluto/runtime.h"
#include "sandbox/driver_internal.h"
#include "wire/event.h"
#include "wire/keys.h"
#include "wire/result.h"

#define PREFIX "run/r1"

struct scripted {
	struct resoluto_runtime base; /* first */
	struct driver_clock clock;
	uint64_t now_ms;
	struct resoluto_conduit *conduit;
	struct resoluto_status status; /* what the next status call tells */
	/* Called by wait() with how often it was called; may put objects, change the status.  Returns true when
	 * something changed, so that wait comes back before its time. */
	bool (*on_wait)(struct scripted *scripted, unsigned wait);
	void *ctx;
	const char *logs; /* NULL: none */
	int launch_code;  /* of the next launches */
	unsigned busy;    /* launches that are answered with -EBUSY first */
	unsigned launches, statuses, destroys, waits, naps, signals, closes, detaches;
	int last_signal, last_extra_fd;
	size_t room;      /* bytes of stdin that are taken until the next wait; SIZE_MAX: all */
	bool is_deaf;     /* the program does not read its stdin any more */
	bool only_counts; /* stdin_sum is not wanted */
	size_t stdin_bytes;
	uint32_t stdin_sum;
	uint32_t chunks;      /* put so far */
	uint64_t timeouts_ms; /* all waits together asked for */
};

static inline struct scripted *scripted_of(struct resoluto_runtime *runtime)
{
	return (struct scripted *) runtime;
}

static inline int scripted_launch(struct resoluto_runtime *runtime,
                                  const struct resoluto_launch_spec *spec,
                                  struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct scripted *scripted = scripted_of(runtime);

	scripted->launches++;
	if (scripted->launches <= scripted->busy)
		return resoluto_fail(err, -EBUSY, "no slot");
	if (scripted->launch_code < 0)
		return resoluto_fail(err, scripted->launch_code, "cannot launch");
	memset(ret_handle, 0, sizeof(*ret_handle));
	snprintf(ret_handle->id, sizeof(ret_handle->id), "%s", spec->id);
	return 0;
}

static inline int scripted_status(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                  struct resoluto_status *ret_status, struct resoluto_err *err)
{
	scripted_of(runtime)->statuses++;
	*ret_status = scripted_of(runtime)->status;
	return 0;
}

static inline int scripted_destroy(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                   struct resoluto_err *err)
{
	scripted_of(runtime)->destroys++;
	return 0;
}

static inline int scripted_sweep(struct resoluto_runtime *runtime, const char *const *labels,
                                 struct resoluto_err *err)
{
	return -EOPNOTSUPP;
}

static inline int scripted_logs(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                unsigned tail_lines, char **ret_text, struct resoluto_err *err)
{
	if (!scripted_of(runtime)->logs)
		return -EOPNOTSUPP;
	*ret_text = strdup(scripted_of(runtime)->logs);
	return *ret_text ? 0 : -ENOMEM;
}

static inline int scripted_wait(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                int extra_fd, int timeout_ms, struct resoluto_err *err)
{
	struct scripted *scripted = scripted_of(runtime);
	bool changed;

	scripted->waits++;
	scripted->last_extra_fd = extra_fd;
	scripted->timeouts_ms += (uint64_t) timeout_ms;
	changed = scripted->on_wait && scripted->on_wait(scripted, scripted->waits);
	if (!changed)
		scripted->now_ms += (uint64_t) timeout_ms;
	return 0;
}

static inline ssize_t scripted_send_stdin(struct resoluto_runtime *runtime,
                                          struct resoluto_handle *handle, const void *bytes,
                                          size_t len, struct resoluto_err *err)
{
	struct scripted *scripted = scripted_of(runtime);
	size_t n = len < scripted->room ? len : scripted->room;

	if (scripted->is_deaf)
		return -EPIPE;
	for (size_t i = 0; i < n && !scripted->only_counts; i++)
		scripted->stdin_sum = scripted->stdin_sum * 31 + ((const unsigned char *) bytes)[i];
	if (scripted->room != SIZE_MAX)
		scripted->room -= n;
	scripted->stdin_bytes += n;
	return (ssize_t) n;
}

static inline int scripted_close_stdin(struct resoluto_runtime *runtime,
                                       struct resoluto_handle *handle, struct resoluto_err *err)
{
	scripted_of(runtime)->closes++;
	return 0;
}

static inline int scripted_signal(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                  int signo, struct resoluto_err *err)
{
	scripted_of(runtime)->signals++;
	scripted_of(runtime)->last_signal = signo;
	return 0;
}

static inline int scripted_isolation(struct resoluto_runtime *runtime,
                                     struct resoluto_handle *handle, char **ret_json,
                                     struct resoluto_err *err)
{
	*ret_json = strdup("{\"runtime\":\"scripted\"}");
	return *ret_json ? 0 : -ENOMEM;
}

static inline int scripted_detach(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                                  struct resoluto_err *err)
{
	scripted_of(runtime)->detaches++;
	return 0;
}

static inline int scripted_attach(struct resoluto_runtime *runtime, const char *id,
                                  struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	return resoluto_fail(err, -ENOENT, "no sandbox %s", id);
}

static inline int scripted_list(struct resoluto_runtime *runtime, const char *const *labels,
                                resoluto_sandbox_fn *each, void *ctx, struct resoluto_err *err)
{
	return -EOPNOTSUPP;
}

static inline void scripted_close(struct resoluto_runtime *runtime)
{
}

static const struct resoluto_runtime_ops scripted_ops __attribute__((unused)) = {
	.name = "scripted",
	.launch = scripted_launch,
	.status = scripted_status,
	.destroy = scripted_destroy,
	.sweep = scripted_sweep,
	.logs = scripted_logs,
	.wait = scripted_wait,
	.send_stdin = scripted_send_stdin,
	.close_stdin = scripted_close_stdin,
	.signal = scripted_signal,
	.isolation = scripted_isolation,
	.detach = scripted_detach,
	.attach = scripted_attach,
	.list = scripted_list,
	.close = scripted_close,
};

static inline uint64_t scripted_now_ms(void *ctx)
{
	return ((struct scripted *) ctx)->now_ms;
}

static inline void scripted_nap(void *ctx, unsigned nap_ms)
{
	((struct scripted *) ctx)->naps++;
	((struct scripted *) ctx)->now_ms += nap_ms;
}

static inline void scripted_init(struct scripted *scripted)
{
	memset(scripted, 0, sizeof(*scripted));
	scripted->base.ops = &scripted_ops;
	scripted->clock = (struct driver_clock){ scripted_now_ms, scripted_nap, scripted };
	scripted->now_ms = 5000;
	scripted->status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_RUNNING,
		                                     .exit_code = -1 };
	scripted->room = SIZE_MAX;
	CHECK(resoluto_conduit_open_url("memory://", &scripted->conduit, NULL) == 0);
}

static inline void scripted_done(struct scripted *scripted)
{
	resoluto_conduit_close(scripted->conduit);
}

static inline void scripted_is(struct scripted *scripted, enum resoluto_phase phase,
                               const char *reason)
{
	scripted->status.phase = phase;
	snprintf(scripted->status.reason, sizeof(scripted->status.reason), "%s", reason);
}

/* What a guest writes. */

static inline void guest_put(struct resoluto_conduit *conduit, const char *key, const char *text)
{
	char whole[sizeof(PREFIX) + KEY_SIZE + 1];

	snprintf(whole, sizeof(whole), PREFIX "/%s", key);
	CHECK(resoluto_conduit_put_bytes(conduit, whole, text, strlen(text), NULL) == 0);
}

/* One chunk with one line of the program. */
static inline void guest_says(struct scripted *scripted, const char *line)
{
	struct buf out = BUF_INIT(1024 * 1024);
	struct event_head open = { .run_id = "r1",
		                   .span_id = "00000000000000aa",
		                   .kind = "workload",
		                   .event = "open",
		                   .ts = 1 };
	struct event_head head = { .run_id = "r1",
		                   .span_id = "00000000000000ab",
		                   .parent_span_id = "00000000000000aa",
		                   .kind = "log",
		                   .event = "log",
		                   .ts = 2 };
	struct event_piece piece = { .bytes = line,
		                     .len = strlen(line),
		                     .has_newline = true,
		                     .seq = scripted->chunks + 1 };
	char key[KEY_SIZE];

	if (scripted->chunks == 0)
		CHECK(event_write(&out, &open, NULL) == 0);
	CHECK(event_write_piece(&out, &head, &piece) == 0);
	key_chunk(++scripted->chunks, key);
	guest_put(scripted->conduit, key, out.data);
	buf_done(&out);
}

static inline void guest_ends(struct scripted *scripted, const char *result_json)
{
	char manifest[64];

	if (result_json)
		guest_put(scripted->conduit, KEY_RESULT, result_json);
	snprintf(manifest, sizeof(manifest), "{\"total_chunks\": %u}", scripted->chunks);
	guest_put(scripted->conduit, KEY_MANIFEST, manifest);
}
