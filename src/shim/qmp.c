/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/microvm/json.h"
#include "shim/qmp.h"

/* The first word counts. */
static void handle_shutdown(struct qmp *qmp, const json_t *data)
{
	const char *reason = json_string_value(json_object_get(data, "reason"));

	if (!reason || qmp->end != QEMU_END_UNKNOWN)
		return;
	if (strcmp(reason, "guest-reset") == 0)
		qmp->end = QEMU_END_RESET;
	else if (strcmp(reason, "guest-shutdown") == 0)
		qmp->end = QEMU_END_SHUTDOWN;
	else if (strcmp(reason, "host-signal") == 0)
		qmp->end = QEMU_END_SIGNAL;
}

static void handle_line(struct qmp *qmp)
{
	CLEANUP(json_done) json_t *root = json_loadb(qmp->line.data, qmp->line.len, 0, NULL);
	const char *event = json_string_value(json_object_get(root, "event"));

	if (event && strcmp(event, "SHUTDOWN") == 0)
		handle_shutdown(qmp, json_object_get(root, "data"));
	else if (event && strcmp(event, "STOP") == 0 && qmp->end == QEMU_END_UNKNOWN)
		qmp->has_stopped = true;
}

void qmp_feed(struct qmp *qmp, const char *bytes, size_t len)
{
	while (len > 0) {
		const char *newline = memchr(bytes, '\n', len);
		size_t n = newline ? (size_t) (newline - bytes) : len;

		if (!qmp->is_skipping && buf_add(&qmp->line, bytes, n) < 0)
			qmp->is_skipping = true;
		if (!newline)
			return;
		if (!qmp->is_skipping && qmp->line.len > 0)
			handle_line(qmp);
		buf_clear(&qmp->line);
		qmp->is_skipping = false;
		bytes = newline + 1;
		len -= n + 1;
	}
}

void qmp_done(struct qmp *qmp)
{
	buf_done(&qmp->line);
}
