/* SPDX-License-Identifier: Apache-2.0 */
/*
 * microvm_peer.c - one sandbox of our microVM runtime, for a driver in another language: the public library only.
 *
 *	stdin   one JSON object a line: the first is what to launch {id, image, env{}, labels{}, memory_bytes, cpu_milli,
 *	        conduit, store_prefix}, the others are {"op": "status" | "logs" | "isolation" | "destroy", "tail": N}
 *	stdout  an answer to each, also one line: an object, with "error" and its "code" when it failed
 *
 * The end of stdin destroys the sandbox.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resoluto/conduit.h"
#include "resoluto/runtime.h"

struct peer {
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	struct resoluto_handle handle;
};

static json_t *failure(int code, const struct resoluto_err *err)
{
	return json_pack("{s:s, s:s}", "error", err->text, "code", strerrorname_np(-code));
}

/* NAME=VALUE of each member, NULL at the end; lives until the program ends. */
static char **pairs_of(const json_t *object)
{
	char **pairs = calloc(json_object_size(object) + 1, sizeof(*pairs)), **at = pairs;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *) object, name, value)
	{
		if (pairs && asprintf(at, "%s=%s", name, json_string_value(value)) >= 0)
			at++;
	}
	return pairs;
}

static int open_conduit(struct peer *peer, const json_t *job, struct resoluto_err *err)
{
	const char *dir = json_string_value(json_object_get(job, "conduit"));
	char *url = NULL;
	int r;

	if (asprintf(&url, "localfs://%s", dir ? dir : "") < 0)
		return -ENOMEM;
	r = resoluto_conduit_open_url(url, &peer->conduit, err);
	free(url);
	return r;
}

static int launch_spec(struct peer *peer, const json_t *job, struct resoluto_err *err)
{
	char **env = pairs_of(json_object_get(job, "env"));
	char **labels = pairs_of(json_object_get(job, "labels"));
	const struct resoluto_launch_spec spec = {
		.struct_size = sizeof(spec),
		.id = json_string_value(json_object_get(job, "id")),
		.image = json_string_value(json_object_get(job, "image")),
		.env = (const char *const *) env,
		.labels = (const char *const *) labels,
		.resources = { .memory_bytes = (uint64_t) json_integer_value(
				       json_object_get(job, "memory_bytes")),
		               .cpu_milli = (uint32_t) json_integer_value(
				       json_object_get(job, "cpu_milli")) },
		.conduit = peer->conduit,
		.store_prefix = json_string_value(json_object_get(job, "store_prefix")),
	};

	return peer->runtime->ops->launch(peer->runtime, &spec, &peer->handle, err);
}

static json_t *launch(struct peer *peer, const json_t *job)
{
	struct resoluto_err err = { 0 };
	int r = resoluto_runtime_microvm_new(NULL, &peer->runtime, &err);

	if (r == 0)
		r = open_conduit(peer, job, &err);
	if (r == 0)
		r = launch_spec(peer, job, &err);
	return r < 0 ? failure(r, &err) : json_object();
}

static json_t *tell_status(struct peer *peer, struct resoluto_err *err, int *ret)
{
	static const char *const phases[] = {
		[RESOLUTO_PHASE_PENDING] = "pending",     [RESOLUTO_PHASE_RUNNING] = "running",
		[RESOLUTO_PHASE_SUCCEEDED] = "succeeded", [RESOLUTO_PHASE_FAILED] = "failed",
		[RESOLUTO_PHASE_UNKNOWN] = "unknown",
	};
	struct resoluto_status status;

	/* What the shim has sent meanwhile is taken in by a wait. */
	*ret = peer->runtime->ops->wait(peer->runtime, &peer->handle, -1, 0, err);
	if (*ret >= 0)
		*ret = peer->runtime->ops->status(peer->runtime, &peer->handle, &status, err);
	return *ret < 0 ? NULL
	                : json_pack("{s:s, s:s, s:i}", "phase", phases[status.phase], "reason",
	                            status.reason, "exit_code", status.exit_code);
}

static json_t *answer(struct peer *peer, const json_t *request)
{
	const struct resoluto_runtime_ops *ops = peer->runtime->ops;
	const char *op = json_string_value(json_object_get(request, "op"));
	struct resoluto_err err = { 0 };
	char *text = NULL;
	json_t *reply = NULL;
	int r = -EINVAL;

	if (op && strcmp(op, "status") == 0) {
		reply = tell_status(peer, &err, &r);
	} else if (op && strcmp(op, "logs") == 0) {
		r = ops->logs(peer->runtime, &peer->handle,
		              (unsigned) json_integer_value(json_object_get(request, "tail")),
		              &text, &err);
	} else if (op && strcmp(op, "isolation") == 0) {
		r = ops->isolation(peer->runtime, &peer->handle, &text, &err);
	} else if (op && strcmp(op, "destroy") == 0) {
		r = ops->destroy(peer->runtime, &peer->handle, &err);
		reply = json_object();
	}
	if (r == 0 && text)
		reply = json_pack("{s:s%}", "text", text, strlen(text));
	free(text);
	return r < 0 ? failure(r, &err) : reply;
}

static int say(json_t *reply)
{
	int r = reply ? json_dumpf(reply, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;

	json_decref(reply);
	return r < 0 || printf("\n") < 0 || fflush(stdout) == EOF ? -1 : 0;
}

int main(void)
{
	struct peer peer = { 0 };
	json_t *request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL);
	int r = say(launch(&peer, request));

	json_decref(request);
	while (r == 0 && peer.handle.state &&
	       (request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL))) {
		r = say(answer(&peer, request));
		json_decref(request);
	}
	resoluto_runtime_close(peer.runtime);
	resoluto_conduit_close(peer.conduit);
	return r < 0;
}
