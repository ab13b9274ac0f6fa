/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "check.h"
#include "gateway/audit.h"

static int told;

static void on_row(void *ctx, const char *json, size_t len)
{
	CHECK(len > 0 && json[0] == '{' && json[len - 1] == '}');
	told++;
}

static struct audit begin(void)
{
	struct audit audit = { .fd = memfd_create("rows", MFD_CLOEXEC) };

	CHECK(audit.fd >= 0);
	CHECK(audit_start(&audit, audit.fd, NULL) == 0 && audit_begin(&audit, NULL) == 0);
	audit.on_row = on_row;
	told = 0;
	return audit;
}

/* What was written. */
static void end(struct audit *audit, struct buf *ret_text)
{
	*ret_text = BUF_INIT(64 * 1024 * 1024);
	CHECK(lseek(audit->fd, 0, SEEK_SET) == 0 && read_rest(audit->fd, ret_text) == 0);
	audit_done(audit);
	(void) close(audit->fd);
}

static size_t lines_of(const struct buf *text)
{
	size_t count = 0;

	for (size_t i = 0; i < text->len; i++)
		count += text->data[i] == '\n';
	return count;
}

static void ask(struct audit *audit, const struct egress_policy *policy, const char *name)
{
	audit_asked(audit, policy, name, strlen(name));
}

static void a_name_is_said_once(void)
{
	struct audit audit = begin();
	const struct egress_policy none = EGRESS_POLICY_NONE;
	struct buf text;
	char name[32];

	for (int i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "n%d.example.org", i / 2);
		ask(&audit, &none, name);
		ask(&audit, &none, "again.example.org");
	}
	audit_end(&audit);
	CHECK(told == 3001 && audit.rows == 3001 && audit.dropped == 0);
	end(&audit, &text);
	CHECK(lines_of(&text) == 3003);
	CHECK(strncmp(text.data, "{\"gateway\"", 10) == 0);
	CHECK(strstr(text.data, "\"not-allowed\""));
	buf_done(&text);
}

static void what_was_connected_keeps_its_room(void)
{
	struct audit audit = begin();
	const struct egress_policy none = EGRESS_POLICY_NONE;
	const struct egress_row connected = { .port = 443, .decision = EGRESS_ALLOWED };
	const struct egress_row broken = { .port = 443,
		                           .decision = EGRESS_REFUSED,
		                           .reason = EGRESS_HELLO_MALFORMED,
		                           .bytes_up = 300 };
	struct buf text;
	char name[32];

	for (int i = 0; i < 9000; i++) {
		snprintf(name, sizeof(name), "n%d.example.org", i);
		ask(&audit, &none, name);
	}
	CHECK(audit.rows == EGRESS_ROWS_MAX - AUDIT_KEPT_FOR_ALLOWED && audit.dropped == 1000);
	audit_protocol(&audit, "an unknown type of message");
	for (int i = 0; i < 9; i++)
		audit_add(&audit, &broken);
	CHECK(audit.rows == EGRESS_ROWS_MAX - AUDIT_KEPT_FOR_ALLOWED + 10 && audit.dropped == 1000);
	for (int i = 0; i < 2000; i++)
		audit_add(&audit, &connected);
	CHECK(audit.rows == EGRESS_ROWS_MAX && audit.dropped == 1010 && told == EGRESS_ROWS_MAX);
	end(&audit, &text);
	CHECK(lines_of(&text) == EGRESS_ROWS_MAX + 1);
	buf_done(&text);
}

/* A full disk, in the middle of a line: it is lost, and those behind it are not. */
static void a_line_that_is_cut_spoils_no_other(void)
{
	struct audit audit = begin();
	const struct egress_policy none = EGRESS_POLICY_NONE;
	struct rlimit before, small;
	struct egress_line line;
	struct buf text;
	const char *last;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	small = before;
	small.rlim_cur = 100;
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	ask(&audit, &none, "cut.example.org");
	CHECK(audit.dropped == 1);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	ask(&audit, &none, "whole.example.org");
	end(&audit, &text);
	CHECK(lines_of(&text) == 3 && text.data[text.len - 1] == '\n');
	text.data[text.len - 1] = '\0';
	last = strrchr(text.data, '\n') + 1;
	CHECK(egress_line_parse(last, strlen(last), &line, NULL) == 0);
	CHECK_STR(line.row.name, "whole.example.org");
	buf_done(&text);
}

static void one_gateway_at_a_time(void)
{
	char path[] = "/tmp/unit-gateway-audit-XXXXXX";
	int first = mkstemp(path), second = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	struct audit audit = { 0 }, other = { 0 };
	struct resoluto_err err = { 0 };

	CHECK(first >= 0 && second >= 0 && unlink(path) == 0);
	CHECK(audit_start(&audit, first, &err) == 0);
	CHECK(audit_start(&other, second, &err) == -EWOULDBLOCK);
	(void) close(first);
	CHECK(audit_start(&other, second, &err) == 0);
	(void) close(second);
}

int main(void)
{
	RUN(a_name_is_said_once);
	RUN(what_was_connected_keeps_its_room);
	RUN(a_line_that_is_cut_spoils_no_other);
	RUN(one_gateway_at_a_time);
	return check_done();
}
