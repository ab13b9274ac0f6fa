/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's frames are written before the guest asks for them: one thread, no waiting.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "check.h"
#include "guest/channel.h"

/* Both ends. */
struct wire {
	struct channel channel;
	int control, conduit;              /* the host's */
	struct buf control_in, conduit_in; /* what the guest sent */
};

static void wire_open(struct wire *wire)
{
	int control[2], conduit[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, conduit) == 0);
	channel_init(&wire->channel, control[0], conduit[0]);
	wire->control = control[1];
	wire->conduit = conduit[1];
	wire->control_in = BUF_INIT(4 << 20);
	wire->conduit_in = BUF_INIT(4 << 20);
}

static void wire_done(struct wire *wire)
{
	channel_done(&wire->channel);
	fd_close(&wire->control);
	fd_close(&wire->conduit);
	buf_done(&wire->control_in);
	buf_done(&wire->conduit_in);
}

static void host_sends(int fd, uint8_t type, uint32_t stream, const void *payload, size_t len)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(9 << 20);

	CHECK(frame_add_message(&out, type, stream, payload, len) == 0);
	CHECK(write_all(fd, out.data, out.len) == 0);
}

static void host_sends_u32(int fd, uint8_t type, uint32_t stream, uint32_t value)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FRAME_MAX);

	CHECK(frame_add_u32(&out, type, stream, value) == 0);
	CHECK(write_all(fd, out.data, out.len) == 0);
}

static void host_tells_time(struct wire *wire, uint64_t wall_ns, uint64_t raw_ns)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FRAME_MAX);
	const struct frame_clock clock = { .wall_ns = wall_ns, .raw_ns = raw_ns };

	CHECK(frame_add_clock(&out, &clock) == 0);
	CHECK(write_all(wire->control, out.data, out.len) == 0);
}

static void greet(struct wire *wire)
{
	host_sends_u32(wire->control, FRAME_HELLO, 0, FRAME_VERSION);
	host_sends_u32(wire->conduit, FRAME_HELLO, 0, FRAME_VERSION);
	CHECK(channel_receive(&wire->channel, NULL) == 0);
}

/* The next frame the guest sent. */
static struct frame host_reads(int fd, struct buf *in)
{
	struct frame frame = { 0 };
	size_t used = 0;
	ssize_t n;

	buf_clear(in);
	CHECK(buf_reserve(in, FRAME_MAX) == 0);
	n = recv(fd, in->data, FRAME_MAX, MSG_PEEK);
	CHECK(n > 0 && frame_parse(in->data, (size_t) n, &frame, &used) == 0);
	CHECK(recv(fd, in->data, used, 0) == (ssize_t) used);
	return frame;
}

static void both_say_hello_and_the_job_comes(void)
{
	CLEANUP(wire_done) struct wire wire;
	uint32_t version;
	struct frame frame;

	wire_open(&wire);
	CHECK(channel_say_hello(&wire.channel, NULL) == 0);
	frame = host_reads(wire.control, &wire.control_in);
	CHECK(frame.type == FRAME_HELLO && frame_get_u32(&frame, &version) == 0 &&
	      version == FRAME_VERSION);
	frame = host_reads(wire.conduit, &wire.conduit_in);
	CHECK(frame.type == FRAME_HELLO);
	host_sends_u32(wire.control, FRAME_HELLO, 0, FRAME_VERSION);
	host_tells_time(&wire, 77, 78);
	host_sends(wire.control, FRAME_JOB, 0, "{}", 2);
	CHECK(channel_await_job(&wire.channel, NULL) == 0);
	CHECK(wire.channel.has_clock && wire.channel.clock_asked == 0);
	CHECK(wire.channel.clock.host_wall == 77 && wire.channel.clock.host_raw == 78);
	CHECK_STR(wire.channel.job.data, "{}");
}

static void the_time_is_told_between_question_and_answer(void)
{
	CLEANUP(wire_done) struct wire wire;
	const struct clock_sample *clock = &wire.channel.clock;
	const int64_t before = (int64_t) clock_raw_ns();
	struct frame frame;

	wire_open(&wire);
	greet(&wire);
	CHECK(channel_ask_clock(&wire.channel, NULL) == 0);
	frame = host_reads(wire.control, &wire.control_in);
	CHECK(frame.type == FRAME_CLOCK && frame.len == 0 && frame.flags == 0);
	host_tells_time(&wire, 1, INT64_MAX / 2);
	CHECK(!wire.channel.has_clock && wire.channel.clock_asked >= before);
	CHECK(channel_receive(&wire.channel, NULL) == 0);
	CHECK(wire.channel.has_clock && clock->host_wall == 1 && clock->host_raw == INT64_MAX / 2);
	CHECK(clock->asked >= before && clock->got > clock->asked);
	CHECK(clock->got <= (int64_t) clock_raw_ns() && clock->wall <= (int64_t) clock_wall_ns());
}

/* Nobody knows how long it was under way; and it ends nothing. */
static void a_time_that_nobody_asked_for_is_not_taken(void)
{
	CLEANUP(wire_done) struct wire wire;

	wire_open(&wire);
	greet(&wire);
	host_tells_time(&wire, 1, 2);
	CHECK(channel_receive(&wire.channel, NULL) == 0 && !wire.channel.has_clock);
	CHECK(channel_ask_clock(&wire.channel, NULL) == 0);
	host_tells_time(&wire, 3, 4);
	host_tells_time(&wire, 5, 6);
	CHECK(channel_receive(&wire.channel, NULL) == 0);
	CHECK(wire.channel.has_clock && wire.channel.clock.host_wall == 3);
}

static void a_job_before_the_time_is_refused(void)
{
	CLEANUP(wire_done) struct wire wire;
	struct resoluto_err err = { 0 };

	wire_open(&wire);
	CHECK(channel_say_hello(&wire.channel, NULL) == 0);
	host_sends_u32(wire.control, FRAME_HELLO, 0, FRAME_VERSION);
	host_sends(wire.control, FRAME_JOB, 0, "{}", 2);
	CHECK(channel_await_job(&wire.channel, &err) == -EPROTO && strstr(err.text, "time"));
}

static void a_job_may_be_split(void)
{
	CLEANUP(wire_done) struct wire wire;
	CLEANUP(mem_free) char *job = calloc(1, 100000);

	wire_open(&wire);
	greet(&wire);
	memset(job, 'j', 100000);
	host_sends(wire.control, FRAME_JOB, 0, job, 100000);
	CHECK(channel_receive(&wire.channel, NULL) == 0);
	CHECK(wire.channel.has_job && wire.channel.job.len == 100000);
	channel_forget_job(&wire.channel);
	CHECK(!wire.channel.job.data);
	for (size_t i = 0; i < wire.channel.control.in.cap; i++)
		CHECK(wire.channel.control.in.data[i] != 'j');
	host_sends(wire.control, FRAME_JOB, 0, "{}", 2);
	CHECK(channel_receive(&wire.channel, NULL) == -EPROTO);
}

struct fault {
	const char *name;
	bool on_conduit;
	uint8_t type;
	uint32_t stream;
	const char *payload;
	size_t len;
};

static void what_does_not_fit_ends_it(void)
{
	static const struct fault faults[] = {
		{ "a frame of the guest's", false, FRAME_STARTED, 0, "", 0 },
		{ "an unknown frame", false, 99, 0, "", 0 },
		{ "signal 0", false, FRAME_SIGNAL, 0, "\0\0\0\0", 4 },
		{ "signal 64", false, FRAME_SIGNAL, 0, "\x40\0\0\0", 4 },
		{ "half a signal", false, FRAME_SIGNAL, 0, "\x01\0", 2 },
		{ "half a clock", false, FRAME_CLOCK, 0, "12345678", 8 },
		{ "a time after all times", false, FRAME_CLOCK, 0,
		  "\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\0", 16 },
		{ "a counter beyond its end", false, FRAME_CLOCK, 0,
		  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40", 16 },
		{ "an answer to nothing", true, FRAME_ACK, 1, "", 0 },
		{ "a refusal of nothing", true, FRAME_NAK, 1, "\1\0\0\0", 4 },
		{ "stdin on conduit", true, FRAME_STDIN, 0, "x", 1 },
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		CLEANUP(wire_done) struct wire wire;

		wire_open(&wire);
		greet(&wire);
		host_sends(faults[i].on_conduit ? wire.conduit : wire.control, faults[i].type,
		           faults[i].stream, faults[i].payload, faults[i].len);
		printf("# %s\n", faults[i].name);
		CHECK(channel_receive(&wire.channel, NULL) == -EPROTO);
	}
}

static void no_hello_or_another_version(void)
{
	CLEANUP(wire_done) struct wire first, second;
	struct resoluto_err err = { 0 };

	wire_open(&first);
	wire_open(&second);
	host_sends(first.control, FRAME_JOB, 0, "{}", 2);
	CHECK(channel_receive(&first.channel, NULL) == -EPROTO);
	host_sends_u32(second.control, FRAME_HELLO, 0, FRAME_VERSION + 1);
	CHECK(channel_receive(&second.channel, &err) == -EPROTO && strstr(err.text, "version"));
}

static void garbage_is_no_frame(void)
{
	CLEANUP(wire_done) struct wire wire;

	wire_open(&wire);
	greet(&wire);
	CHECK(write_all(wire.control, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12) == 0);
	CHECK(channel_receive(&wire.channel, NULL) == -EPROTO);
}

static void a_host_that_goes_is_noticed(void)
{
	CLEANUP(wire_done) struct wire wire;

	wire_open(&wire);
	greet(&wire);
	fd_close(&wire.conduit);
	CHECK(channel_wait(&wire.channel, -1, NULL) == -EPIPE);
}

static void signals_wait_in_order_of_their_numbers(void)
{
	CLEANUP(wire_done) struct wire wire;

	wire_open(&wire);
	greet(&wire);
	host_sends_u32(wire.control, FRAME_SIGNAL, 0, SIGTERM);
	host_sends_u32(wire.control, FRAME_SIGNAL, 0, SIGKILL);
	host_sends_u32(wire.control, FRAME_SIGNAL, 0, SIGTERM);
	CHECK(channel_receive(&wire.channel, NULL) == 0);
	CHECK(channel_take_signal(&wire.channel) == SIGKILL);
	CHECK(channel_take_signal(&wire.channel) == SIGTERM);
	CHECK(channel_take_signal(&wire.channel) == 0);
}

static void fill_stdin(struct wire *wire, size_t len)
{
	CLEANUP(mem_free) char *bytes = calloc(1, len);

	while (len > 0) {
		size_t now = len < 4096 ? len : 4096;

		host_sends(wire->control, FRAME_STDIN, 0, bytes, now);
		CHECK(channel_receive(&wire->channel, NULL) == 0);
		len -= now;
	}
}

static void stdin_has_its_credit(void)
{
	CLEANUP(wire_done) struct wire wire;
	struct frame frame;
	uint32_t credit;

	wire_open(&wire);
	greet(&wire);
	fill_stdin(&wire, FRAME_STDIN_CREDIT);
	CHECK(wire.channel.stdin_bytes.len == FRAME_STDIN_CREDIT);
	CHECK(channel_take_stdin(&wire.channel, 1000, NULL) == 0);
	CHECK(recv(wire.control, wire.control_in.data, 1, MSG_PEEK) < 0);
	CHECK(channel_take_stdin(&wire.channel, 100000, NULL) == 0);
	frame = host_reads(wire.control, &wire.control_in);
	CHECK(frame.type == FRAME_CREDIT && frame_get_u32(&frame, &credit) == 0 &&
	      credit == 101000);
	fill_stdin(&wire, 101000);
	host_sends(wire.control, FRAME_STDIN, 0, "x", 1);
	CHECK(channel_receive(&wire.channel, NULL) == -EPROTO);
}

static void nothing_comes_after_the_end_of_stdin(void)
{
	CLEANUP(wire_done) struct wire wire;

	wire_open(&wire);
	greet(&wire);
	host_sends(wire.control, FRAME_STDIN_EOF, 0, "", 0);
	CHECK(channel_receive(&wire.channel, NULL) == 0 && wire.channel.stdin_has_ended);
	host_sends(wire.control, FRAME_STDIN, 0, "x", 1);
	CHECK(channel_receive(&wire.channel, NULL) == -EPROTO);
}

static void an_object_is_stored(void)
{
	CLEANUP(wire_done) struct wire wire;
	uint32_t put, crc;
	struct frame frame;

	wire_open(&wire);
	greet(&wire);
	CHECK(ship_send(&wire.channel.ship, "result.json", "bytes", 5, &put, NULL) == 0);
	frame = host_reads(wire.conduit, &wire.conduit_in);
	CHECK(frame.type == FRAME_PUT_BEGIN && frame.stream == put && frame.len == 8 + 11);
	CHECK(frame_le64(frame.payload) == 5 && memcmp(frame.payload + 8, "result.json", 11) == 0);
	frame = host_reads(wire.conduit, &wire.conduit_in);
	CHECK(frame.type == FRAME_PUT_DATA && frame.len == 5 &&
	      memcmp(frame.payload, "bytes", 5) == 0);
	frame = host_reads(wire.conduit, &wire.conduit_in);
	CHECK(frame.type == FRAME_PUT_END && frame_get_u32(&frame, &crc) == 0 &&
	      crc == crc32c(0, "bytes", 5));
	host_sends(wire.conduit, FRAME_ACK, put, "", 0);
	CHECK(ship_settle(&wire.channel.ship, "result.json", "bytes", 5, put, NULL) == 0);
}

static void a_refused_object_is_sent_again(void)
{
	CLEANUP(wire_done) struct wire wire;
	uint32_t put;

	wire_open(&wire);
	greet(&wire);
	CHECK(ship_send(&wire.channel.ship, "result.json", "x", 1, &put, NULL) == 0);
	host_sends(wire.conduit, FRAME_NAK, put, "\1\0\0\0busy", 8);
	CHECK(channel_receive(&wire.channel, NULL) == 0);
	CHECK(wire.channel.ship.ops->wait(&wire.channel.ship, put, NULL) == -EAGAIN);
	CHECK(ship_send(&wire.channel.ship, "result.json", "x", 1, &put, NULL) == 0);
	CHECK(put == 2);
	host_sends(wire.conduit, FRAME_ACK, 2, "", 0);
	CHECK(wire.channel.ship.ops->wait(&wire.channel.ship, put, NULL) == 0);
}

static void a_full_store_says_so(void)
{
	CLEANUP(wire_done) struct wire wire;
	struct resoluto_err err = { 0 };
	uint32_t put;

	wire_open(&wire);
	greet(&wire);
	CHECK(ship_send(&wire.channel.ship, "_canary_ok", "ok", 2, &put, NULL) == 0);
	host_sends(wire.conduit, FRAME_NAK, put, "\2\0\0\0quota", 9);
	CHECK(ship_settle(&wire.channel.ship, "_canary_ok", "ok", 2, put, &err) == -ENOSPC);
	CHECK(strstr(err.text, "quota"));
}

static void only_so_many_at_once(void)
{
	CLEANUP(wire_done) struct wire wire;
	uint32_t put;

	wire_open(&wire);
	greet(&wire);
	for (int i = 0; i < SHIP_PUTS; i++)
		CHECK(wire.channel.ship.ops->begin(&wire.channel.ship, "k", 0, &put, NULL) == 0);
	CHECK(wire.channel.ship.ops->begin(&wire.channel.ship, "k", 0, &put, NULL) == -EINVAL);
}

static void what_is_abandoned_has_a_checksum_that_cannot_fit(void)
{
	CLEANUP(wire_done) struct wire wire;
	struct frame frame;
	uint32_t put, crc;

	wire_open(&wire);
	greet(&wire);
	CHECK(wire.channel.ship.ops->begin(&wire.channel.ship, "outbox/output.tar.gz",
	                                   SHIP_SIZE_UNKNOWN, &put, NULL) == 0);
	CHECK(wire.channel.ship.ops->data(&wire.channel.ship, put, "half", 4, NULL) == 0);
	host_sends(wire.conduit, FRAME_NAK, put, "\3\0\0\0", 4);
	CHECK(wire.channel.ship.ops->abandon(&wire.channel.ship, put, NULL) == 0);
	for (int i = 0; i < 3; i++)
		frame = host_reads(wire.conduit, &wire.conduit_in);
	CHECK(frame.type == FRAME_PUT_END && frame_get_u32(&frame, &crc) == 0 &&
	      crc != crc32c(0, "half", 4));
}

int main(void)
{
	(void) signal(SIGPIPE, SIG_IGN);
	RUN(both_say_hello_and_the_job_comes);
	RUN(the_time_is_told_between_question_and_answer);
	RUN(a_time_that_nobody_asked_for_is_not_taken);
	RUN(a_job_before_the_time_is_refused);
	RUN(a_job_may_be_split);
	RUN(what_does_not_fit_ends_it);
	RUN(no_hello_or_another_version);
	RUN(garbage_is_no_frame);
	RUN(a_host_that_goes_is_noticed);
	RUN(signals_wait_in_order_of_their_numbers);
	RUN(stdin_has_its_credit);
	RUN(nothing_comes_after_the_end_of_stdin);
	RUN(an_object_is_stored);
	RUN(a_refused_object_is_sent_again);
	RUN(a_full_store_says_so);
	RUN(only_so_many_at_once);
	RUN(what_is_abandoned_has_a_checksum_that_cannot_fit);
	return check_done();
}
