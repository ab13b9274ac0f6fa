/* SPDX-License-Identifier: Apache-2.0 */
/* shim.c - the shim's small pure pieces: the verdict, the ring, the monitor's words and the console's. */
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

/* A row a kind of end: what the console, QEMU and the runner said of it. */
static const struct {
	enum qemu_end qemu_end;
	enum last_word last_word;
	bool has_hello, leaves_by_reset;
	enum reason store;
	int wait_status;
	enum reason want;
} ends[] = {
	{ QEMU_END_RESET, LAST_WORD_PANIC, false, false, REASON_NONE, 0, REASON_GUEST_PANIC },
	{ QEMU_END_RESET, LAST_WORD_PANIC, true, true, REASON_NONE, 0, REASON_GUEST_PANIC },
	{ QEMU_END_RESET, LAST_WORD_PANIC, true, true, REASON_NONE, KILLED, REASON_GUEST_PANIC },
	{ QEMU_END_RESET, LAST_WORD_NO_MEMORY, true, false, REASON_NONE, 0,
	  REASON_GUEST_OUT_OF_MEMORY },
	{ QEMU_END_RESET, LAST_WORD_NONE, true, true, REASON_NONE, 0, REASON_GUEST_TRIPLE_FAULT },
	{ QEMU_END_RESET, LAST_WORD_NONE, false, false, REASON_NONE, 0, REASON_GUEST_TRIPLE_FAULT },
	{ QEMU_END_RESET, LAST_WORD_RESTART, true, false, REASON_NONE, 0, REASON_GUEST_RESET },
	{ QEMU_END_RESET, LAST_WORD_RESTART, true, true, REASON_NONE, 0, REASON_GUEST_POWER_OFF },
	{ QEMU_END_RESET, LAST_WORD_RESTART, false, true, REASON_NONE, 0, REASON_BOOT_FAILED },
	{ QEMU_END_RESET, LAST_WORD_RESTART, true, true, REASON_STORE_FULL, 0, REASON_STORE_FULL },
	{ QEMU_END_SHUTDOWN, LAST_WORD_NONE, true, false, REASON_NONE, 0, REASON_GUEST_POWER_OFF },
	{ QEMU_END_SHUTDOWN, LAST_WORD_NONE, false, false, REASON_NONE, 0, REASON_BOOT_FAILED },
	{ QEMU_END_SHUTDOWN, LAST_WORD_NONE, true, false, REASON_STORE_FULL, 0, REASON_STORE_FULL },
	/* A panic on the console of a machine that then switched off by itself is text, no more. */
	{ QEMU_END_SHUTDOWN, LAST_WORD_PANIC, true, false, REASON_NONE, 0, REASON_GUEST_POWER_OFF },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, KILLED,
	  REASON_EMULATOR_KILLED },
	{ QEMU_END_UNKNOWN, LAST_WORD_PANIC, true, false, REASON_NONE, KILLED,
	  REASON_EMULATOR_KILLED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, SIGTERM,
	  REASON_EMULATOR_KILLED },
	{ QEMU_END_SIGNAL, LAST_WORD_NONE, true, false, REASON_NONE, 0, REASON_EMULATOR_KILLED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, SIGSEGV,
	  REASON_EMULATOR_CRASHED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, SIGABRT,
	  REASON_EMULATOR_CRASHED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, SIGSYS,
	  REASON_EMULATOR_CRASHED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, false, false, REASON_NONE, EXITED_1,
	  REASON_EMULATOR_FAILED },
	{ QEMU_END_UNKNOWN, LAST_WORD_NONE, true, false, REASON_NONE, 0, REASON_EMULATOR_FAILED },
};

static void own_ends_are_told_apart(void)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		is_verdict((struct ending){ .qemu_end = ends[i].qemu_end,
		                            .last_word = ends[i].last_word,
		                            .has_hello = ends[i].has_hello,
		                            .leaves_by_reset = ends[i].leaves_by_reset,
		                            .store = ends[i].store,
		                            .wait_status = ends[i].wait_status },
		           RESOLUTO_PHASE_FAILED, ends[i].want);
}

/* What a guest can say, it can also forge: nothing of it is a success. */
static void no_words_of_a_guest_make_a_success(void)
{
	for (int word = LAST_WORD_NONE; word <= LAST_WORD_NO_MEMORY; word++) {
		for (int end = QEMU_END_UNKNOWN; end <= QEMU_END_SIGNAL; end++) {
			const struct ending ending = { .has_hello = true,
				                       .leaves_by_reset = word % 2,
				                       .last_word = (enum last_word) word,
				                       .qemu_end = (enum qemu_end) end };

			CHECK(verdict_of(&ending).phase == RESOLUTO_PHASE_FAILED);
			CHECK(verdict_of(&ending).reason != REASON_NONE);
		}
	}
}

static enum last_word said(const char *text)
{
	struct last_words words = { 0 };

	last_words_feed(&words, text, strlen(text));
	last_words_end(&words);
	return words.word;
}

static void last_words_are_known_by_the_kernels_phrases(void)
{
	CHECK(said("[    1.234567] Kernel panic - not syncing: VFS: no root\r\n") ==
	      LAST_WORD_PANIC);
	CHECK(said("half a line[    1.2] Kernel panic - not syncing: x") == LAST_WORD_PANIC);
	CHECK(said("[  1.0] Kernel panic - not syncing: System is deadlocked on memory\r\n") ==
	      LAST_WORD_NO_MEMORY);
	CHECK(said("[  1.0] Kernel panic - not syncing: Out of memory: panic_on_oom is "
	           "enabled\n") == LAST_WORD_NO_MEMORY);
	CHECK(said("[    0.5] reboot: Restarting system\r\n") == LAST_WORD_RESTART);
	CHECK(said("[    0.5] reboot: Power down\r\n") == LAST_WORD_NONE);
	CHECK(said("") == LAST_WORD_NONE && said("\r\n\r\n\0") == LAST_WORD_NONE);
}

/* The kernel quotes up to 15 bytes of a program's name, and what it says of such a one is no panic. */
static void a_programs_name_is_no_last_word(void)
{
	CHECK(said("[ 2.0] Out of memory: Killed process 77 (Kernel panic - ) total-vm:1kB\n") ==
	      LAST_WORD_NONE);
	CHECK(said("[ 2.0] traps: reboot: Restart[77] trap int3\n") == LAST_WORD_NONE);
}

static void the_worst_word_counts(void)
{
	CHECK(said("[ 1.0] Kernel panic - not syncing: a\n[ 1.1] reboot: Restarting system\n") ==
	      LAST_WORD_PANIC);
	CHECK(said("[ 1.0] reboot: Restarting system\n[ 1.1] Kernel panic - not syncing: a\n") ==
	      LAST_WORD_PANIC);
}

static void a_halt_is_heard_whatever_else_was_said(void)
{
	static const char text[] = "[ 1.0] Kernel panic - not syncing: forged\n"
				   "[ 1.1] reboot: System halted\n";
	struct last_words words = { 0 };

	last_words_feed(&words, text, sizeof(text) - 1);
	CHECK(words.has_halted && words.word == LAST_WORD_PANIC);
	words = (struct last_words){ 0 };
	last_words_feed(&words, text, sizeof(text) - 10);
	CHECK(!words.has_halted);
}

static void last_words_are_found_however_they_come(void)
{
	static const char text[] = "[ 1.0] Kernel panic - not syncing: x\n";
	struct last_words words = { 0 };
	char noise[3000];

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		last_words_feed(&words, text + i, 1);
	CHECK(words.word == LAST_WORD_PANIC);
	/* Behind a line longer than any bound, at each place. */
	memset(noise, 'x', sizeof(noise));
	for (size_t n = 400; n < 600; n++) {
		words = (struct last_words){ 0 };
		last_words_feed(&words, noise, n);
		last_words_feed(&words, text, sizeof(text) - 1);
		CHECK(words.word == LAST_WORD_PANIC);
	}
	/* A NUL hides nothing. */
	words = (struct last_words){ 0 };
	last_words_feed(&words, "a\0[ 1.0] Kernel panic - not syncing: x\n", 39);
	CHECK(words.word == LAST_WORD_PANIC);
}

static void what_was_said_is_kept_as_text(void)
{
	static const char text[] = "[ 1.0] Kernel panic - not syncing: first \x1b[2J\xc3\n"
				   "[ 1.1] Kernel panic - not syncing: second\n"
				   "resoluto-runner: open the port: No such device\r\n";
	struct last_words words = { 0 };
	char noise[2000];

	last_words_feed(&words, text, sizeof(text) - 1);
	CHECK_STR(words.panic, "first ?[2J?");
	CHECK_STR(words.complaint, "open the port: No such device");
	words = (struct last_words){ 0 };
	last_words_feed(&words, text, 35);
	memset(noise, 'y', sizeof(noise));
	last_words_feed(&words, noise, sizeof(noise));
	last_words_end(&words);
	CHECK(strlen(words.panic) == LAST_WORDS_TEXT - 1 && words.word == LAST_WORD_PANIC);
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

static void the_monitor_tells_that_the_machine_stands_still(void)
{
	struct qmp qmp = QMP_INIT;

	feed(&qmp, "{\"event\": \"RESUME\"}\n");
	CHECK(!qmp.has_stopped);
	feed(&qmp, "{\"timestamp\": {}, \"event\": \"STOP\"}\r\n");
	CHECK(qmp.has_stopped && qmp.end == QEMU_END_UNKNOWN);
	qmp_done(&qmp);
	/* On its way out it may stand still. */
	qmp = QMP_INIT;
	feed(&qmp, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-shutdown\"}}\n");
	feed(&qmp, "{\"event\": \"STOP\"}\n");
	CHECK(!qmp.has_stopped);
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
	RUN(no_words_of_a_guest_make_a_success);
	RUN(last_words_are_known_by_the_kernels_phrases);
	RUN(a_programs_name_is_no_last_word);
	RUN(the_worst_word_counts);
	RUN(a_halt_is_heard_whatever_else_was_said);
	RUN(last_words_are_found_however_they_come);
	RUN(what_was_said_is_kept_as_text);
	RUN(a_ring_keeps_the_last_bytes);
	RUN(the_monitor_tells_how_the_guest_ended);
	RUN(the_monitor_tells_that_the_machine_stands_still);
	RUN(a_monitor_that_raves_costs_nothing);
	return check_done();
}
