/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/mux.h"
#include "guest/egress.h"
#include "guest/egress_net.h"
#include "guest/egress_service.h"
#include "guest/ports.h"
#include "wire/json_text.h"

/* What the job says is not the child's to know, but for the names. */
static void forget_job(const struct job *job)
{
	const struct strv *const lists[] = { &job->argv, &job->setup_argv, &job->cleanup_argv,
		                             &job->env, &job->redact };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		strv_wipe((struct strv *) lists[i]);
}

static int start_child(int port_fd, int rows_fd, const struct job *job, struct resoluto_err *err)
{
	const pid_t pid = fork();

	if (pid < 0)
		return resoluto_fail(err, -errno, "start the process that answers names");
	if (pid == 0) {
		forget_job(job);
		egress_child(port_fd, rows_fd, &job->egress);
	}
	return 0;
}

static int await_child(int rows_fd, struct resoluto_err *err)
{
	const uint64_t until = clock_mono_ms() + EGRESS_START_MS;
	char byte;

	for (;;) {
		struct pollfd rows = { .fd = rows_fd, .events = POLLIN };
		const uint64_t now = clock_mono_ms();

		if (now >= until || (rows.revents & POLLHUP))
			break;
		if (poll(&rows, 1, (int) (until - now)) <= 0)
			continue;
		/* A row without a byte and the end look alike to recv(), but the end hangs up. */
		if (!(rows.revents & POLLHUP) && recv(rows_fd, &byte, 1, MSG_DONTWAIT) == 0)
			return 0;
		break;
	}
	return resoluto_fail(err, -EIO, "the process that answers names did not start");
}

int egress_start(struct egress *egress, const struct job *job, struct resoluto_err *err)
{
	CLEANUP(fd_close) int port = -1, ours = -1, theirs = -1;
	int pair[2], r = egress_net_set_up(err);

	if (r < 0)
		return r;
	port = port_open("net", err);
	if (port < 0)
		return port;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket for rows");
	ours = pair[0];
	theirs = pair[1];
	r = start_child(port, theirs, job, err);
	fd_close(&theirs);
	if (r == 0)
		r = await_child(ours, err);
	if (r < 0)
		return r;
	egress->rows_fd = fd_take(&ours);
	return 0;
}

static bool says_lost(const char *row, size_t len)
{
	return len == strlen(egress_lost_row) && memcmp(row, egress_lost_row, len) == 0;
}

static void json_release(json_t **value)
{
	json_decref(*value);
}

/* What is in a row came from the program at first: names may hold what must not be told. */
static int add_row(struct report *report, const struct report_span *span, const char *bytes,
                   size_t len)
{
	CLEANUP(json_release) json_t *row = NULL;
	char *text;
	int r;

	if (!json_is_tame(bytes, len))
		return 0;
	row = json_loadb(bytes, len, 0, NULL);
	if (!json_is_object(row))
		return 0;
	if (report->redactor && redact_json(report->redactor, row) < 0)
		return 0;
	text = json_dumps(row, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return -ENOMEM;
	r = report_row(report, span, "egress", text);
	free(text);
	return r;
}

int egress_take_rows(struct egress *egress)
{
	char row[MUX_ROW_MAX + 1];
	int r = 0;

	while (r == 0 && egress->rows_fd >= 0) {
		ssize_t n = recv(egress->rows_fd, row, sizeof(row), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		egress->is_lost |= n <= 0 || says_lost(row, (size_t) n);
		if (n <= 0)
			fd_close(&egress->rows_fd);
		else if (egress->rows++ < EGRESS_EVENTS_MAX)
			r = add_row(egress->report, egress->span, row, (size_t) n);
	}
	return r;
}

void egress_done(struct egress *egress)
{
	fd_close(&egress->rows_fd);
}
