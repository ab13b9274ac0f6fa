/* SPDX-License-Identifier: Apache-2.0 */
/* shim.c - the shim's small pure pieces: the verdict, the ring, the monitor's words. */
#include <signal.h>

#include "base/cleanup.h"
#include "check.h"
#include "shim/qmp.h"
#include "shim/ring.h"
#include "shim/verdict.h"

enum { KILLED = SIGKILL, EXITED_1 = 1 << 8 }; /* wait statuses */

static void is_verdict(struct ending ending, enum resoluto_phase phase, enum reason reason)
{
	struct verdict verdict = verdict_of(&ending);

	CHECK(verdict.phase == phase);
	CHECK_STR(reason_name(verdict.reason), reason_name(reason));
}

static void a_manifest_is_success(void)
{
	is_verdict((struct ending){ .has_manifest = true, .has_hello = true },
	           RESOLUTO_PHASE_SUCCEEDED, REASON_NONE);
	is_verdict((struct ending){ .has_manifest = true,
	                            .stop = REASON_CALLER_DIED,
	                            .wait_status = KILLED },
	           RESOLUTO_PHASE_SUCCEEDED, REASON_NONE);
	is_verdict((struct ending){ .has_manifest = true, .stop = REASON_DEADLINE },
	           RESOLUTO_PHASE_FAILED, REASON_DEADLINE);
}

static void who_stopped_it_is_the_reason(void)
{
	is_verdict((struct ending){ .stop = REASON_CALLER_DIED, .wait_status = KILLED },
	           RESOLUTO_PHASE_FAILED, REASON_CALLER_DIED);
	is_verdict((struct ending){ .stop = REASON_PROTOCOL,
	                            .has_hello = true,
	                            .wait_status = KILLED },
	           RESOLUTO_PHASE_FAILED, REASON_PROTOCOL);
}

static void own_ends_are_told_apart(void)
{
	is_verdict((struct ending){ .qemu_end = QEMU_END_RESET, .console_panics = true },
	           RESOLUTO_PHASE_FAILED, REASON_GUEST_PANIC);
	is_verdict((struct ending){ .qemu_end = QEMU_END_RESET }, RESOLUTO_PHASE_FAILED,
	           REASON_BOOT_FAILED);
	is_verdict((struct ending){ .qemu_end = QEMU_END_RESET, .has_hello = true },
	           RESOLUTO_PHASE_FAILED, REASON_GUEST_RESET);
	is_verdict((struct ending){ .qemu_end = QEMU_END_SHUTDOWN, .has_hello = true },
	           RESOLUTO_PHASE_FAILED, REASON_GUEST_POWER_OFF);
	is_verdict((struct ending){ .qemu_end = QEMU_END_SHUTDOWN,
	                            .has_hello = true,
	                            .store = REASON_STORE_FULL },
	           RESOLUTO_PHASE_FAILED, REASON_STORE_FULL);
	is_verdict((struct ending){ .wait_status = KILLED, .has_hello = true },
	           RESOLUTO_PHASE_FAILED, REASON_EMULATOR_KILLED);
	is_verdict((struct ending){ .wait_status = EXITED_1 }, RESOLUTO_PHASE_FAILED,
	           REASON_EMULATOR_FAILED);
}

static void ring_holds(struct ring *ring, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(64);

	CHECK(ring_copy(ring, &out) == 0);
	CHECK_STR(out.data ? out.data : "", want);
}

static void a_ring_keeps_the_last_bytes(void)
{
	char bytes[8];
	struct ring ring = { .bytes = bytes, .size = sizeof(bytes) };

	ring_holds(&ring, "");
	ring_add(&ring, "abcde", 5);
	ring_holds(&ring, "abcde");
	ring_add(&ring, "fgh", 3);
	ring_holds(&ring, "abcdefgh");
	ring_add(&ring, "ijk", 3);
	ring_holds(&ring, "defghijk");
	ring_add(&ring, "0123456789ABCDEF", 16);
	ring_holds(&ring, "89ABCDEF");
}

static void feed(struct qmp *qmp, const char *text)
{
	qmp_feed(qmp, text, strlen(text));
}

static void the_monitor_tells_how_the_guest_ended(void)
{
	struct qmp qmp = QMP_INIT;

	feed(&qmp, "{\"QMP\": {\"version\": {}}}\r\n{\"return\": {}}\r\n");
	CHECK(qmp.end == QEMU_END_UNKNOWN);
	feed(&qmp, "{\"timestamp\": {}, \"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, ");
	feed(&qmp, "\"reason\": \"guest-reset\"}}\r\n");
	CHECK(qmp.end == QEMU_END_RESET);
	/* The first word counts. */
	feed(&qmp, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-shutdown\"}}\n");
	CHECK(qmp.end == QEMU_END_RESET);
	qmp_done(&qmp);
}

static void a_monitor_that_raves_costs_nothing(void)
{
	struct qmp qmp = QMP_INIT;
	char junk[4096];

	memset(junk, '[', sizeof(junk));
	for (int i = 0; i < 100; i++)
		qmp_feed(&qmp, junk, sizeof(junk));
	CHECK(qmp.line.len <= QMP_LINE_MAX);
	feed(&qmp,
	     "\n\n[[[[\n{\"event\": \"SHUTDOWN\"}\n{\"event\": 7, \"data\": {\"reason\": []}}\n");
	CHECK(qmp.end == QEMU_END_UNKNOWN);
	feed(&qmp, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-shutdown\"}}\n");
	CHECK(qmp.end == QEMU_END_SHUTDOWN);
	qmp_done(&qmp);
}

int main(void)
{
	RUN(a_manifest_is_success);
	RUN(who_stopped_it_is_the_reason);
	RUN(own_ends_are_told_apart);
	RUN(a_ring_keeps_the_last_bytes);
	RUN(the_monitor_tells_how_the_guest_ended);
	RUN(a_monitor_that_raves_costs_nothing);
	return check_done();
}
