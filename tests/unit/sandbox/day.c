/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day.c - a run of 24 hours in virtual time, from the runner's chunk writer to the host's driver: how many chunks it
 * takes, how late a line is, and that neither side takes the other for dead.
 */
#include "check.h"
#include "scripted.h"
#include "wire/chunk_writer.h"

enum {
	SECOND = 1000,
	DAY = 24 * 60 * 60 * SECOND,
	LINES = DAY / SECOND,
	CHUNKS_MAX_OBJECT = 50000, /* issue 5 */
	CHUNKS_MAX_LOCAL = 90000,
	POLL = RESOLUTO_POLL_INTERVAL_MS,
};

/* A runner, and what the host has seen of it. */
struct day {
	struct scripted scripted;
	struct chunk_writer *writer;
	bool is_told;           /* the host is woken by a new chunk, as from a local directory */
	uint64_t line_every_ms; /* 0: the program is quiet */
	uint64_t started_ms, next_line_ms, freezes_ms;
	uint64_t waited_ms;                    /* of scripted.timeouts_ms, what has passed */
	uint64_t lines, written_ms[LINES + 1]; /* when line N was, N from 1 */
	uint64_t last_put_ms, longest_gap_ms;
	uint64_t seen, latest_ms;
	bool has_ended;
};

static int put(void *ctx, const char *key, const void *bytes, size_t len)
{
	struct day *day = ctx;
	char whole[sizeof(PREFIX) + KEY_SIZE + 1];
	uint64_t gap = day->scripted.now_ms - day->last_put_ms;

	snprintf(whole, sizeof(whole), PREFIX "/%s", key);
	day->last_put_ms = day->scripted.now_ms;
	if (gap > day->longest_gap_ms)
		day->longest_gap_ms = gap;
	return resoluto_conduit_put_bytes(day->scripted.conduit, whole, bytes, len, NULL);
}

static double wall(const struct day *day)
{
	return 1764442313 + (double) day->scripted.now_ms / SECOND;
}

static void write_span(struct day *day, const char *event)
{
	struct event_head head = { .span_id = "00000000000000aa",
		                   .kind = "workload",
		                   .event = event,
		                   .ts = wall(day) };

	CHECK(chunk_writer_event(day->writer, &head, NULL, day->scripted.now_ms) == 0);
}

static void write_line(struct day *day)
{
	struct event_head head = { .span_id = "00000000000000ab",
		                   .parent_span_id = "00000000000000aa",
		                   .kind = "log",
		                   .event = "log",
		                   .ts = wall(day) };
	struct event_piece piece = { "tick", 4, false, true, ++day->lines };

	day->written_ms[day->lines] = day->scripted.now_ms;
	day->next_line_ms += day->line_every_ms;
	CHECK(chunk_writer_piece(day->writer, &head, &piece, day->scripted.now_ms) == 0);
}

static void end(struct day *day)
{
	write_span(day, "close");
	guest_put(day->scripted.conduit, KEY_RESULT, "{\"status\":\"success\",\"exit_code\":0}");
	CHECK(chunk_writer_flush(day->writer) == 0);
	day->scripted.chunks = chunk_writer_count(day->writer);
	guest_ends(&day->scripted, NULL);
	day->has_ended = true;
}

/* When the runner wakes next: for a line, for a flush or heartbeat, or for the end. */
static uint64_t next_step_ms(const struct day *day)
{
	uint64_t next = day->started_ms + DAY;
	uint64_t due = chunk_writer_due_ms(day->writer, day->scripted.now_ms + 1);

	if (day->has_ended || (day->freezes_ms && day->scripted.now_ms >= day->freezes_ms))
		return UINT64_MAX;
	if (day->line_every_ms && day->next_line_ms < next)
		next = day->next_line_ms;
	return due < next ? due : next;
}

static void step(struct day *day)
{
	uint64_t now = day->scripted.now_ms;

	if (now >= day->started_ms + DAY) {
		end(day);
		return;
	}
	if (day->line_every_ms && now >= day->next_line_ms)
		write_line(day);
	CHECK(chunk_writer_tick(day->writer, now, wall(day)) == 0);
}

/* The time that the host sleeps is the time in which the runner works. */
static bool on_wait(struct scripted *scripted, unsigned wait)
{
	struct day *day = scripted->ctx;
	uint64_t until = scripted->now_ms + (scripted->timeouts_ms - day->waited_ms), next;
	uint32_t chunks = chunk_writer_count(day->writer);

	day->waited_ms = scripted->timeouts_ms;
	while ((next = next_step_ms(day)) <= until) {
		scripted->now_ms = next;
		step(day);
		if (day->is_told && chunk_writer_count(day->writer) > chunks)
			return true;
	}
	scripted->now_ms = until;
	return true;
}

static int see(void *ctx, const struct resoluto_event *event)
{
	struct day *day = ctx;
	uint64_t late;

	if (!event->is_output)
		return 0;
	CHECK(event->seq == ++day->seen && event->len == 5);
	late = day->scripted.now_ms - day->written_ms[event->seq];
	if (late > day->latest_ms)
		day->latest_ms = late;
	return 0;
}

static void day_init(struct day *day, bool object_store, uint64_t line_every_ms)
{
	struct chunk_writer_options options = { .run_id = "r1",
		                                .object_store = object_store,
		                                .put = put,
		                                .ctx = day };

	memset(day, 0, sizeof(*day));
	scripted_init(&day->scripted);
	day->scripted.on_wait = on_wait;
	day->scripted.ctx = day;
	day->is_told = !object_store;
	day->line_every_ms = line_every_ms;
	options.now_ms = day->started_ms = day->last_put_ms = day->scripted.now_ms;
	day->next_line_ms = day->started_ms + line_every_ms;
	CHECK(chunk_writer_new(&options, &day->writer) == 0);
	write_span(day, "open");
}

static void day_done(struct day *day)
{
	chunk_writer_free(&day->writer);
	scripted_done(&day->scripted);
}

static struct resoluto_outcome live(struct day *day)
{
	static const struct resoluto_launch_spec spec = { .struct_size = sizeof(spec),
		                                          .id = "r1",
		                                          .image = "image",
		                                          .store_prefix = PREFIX };
	struct resoluto_drive_options options = { .struct_size = sizeof(options),
		                                  .runtime = &day->scripted.base,
		                                  .conduit = day->scripted.conduit,
		                                  .spec = &spec,
		                                  .on_event = see,
		                                  .ctx = day,
		                                  .idle_fd = -1 };
	struct resoluto_outcome outcome = { 0 };

	CHECK(driver_drive(&options, &day->scripted.clock, &outcome, NULL) == 0);
	return outcome;
}

static struct day day;

static void a_line_a_second(bool object_store, uint64_t chunks_max, uint64_t late_max)
{
	struct resoluto_outcome outcome;

	day_init(&day, object_store, SECOND);
	outcome = live(&day);
	printf("# %llu chunks, a line is seen after %llu ms at most\n",
	       (unsigned long long) outcome.chunks, (unsigned long long) day.latest_ms);
	CHECK(outcome.disposition == RESOLUTO_COMPLETED && !outcome.reason[0]);
	CHECK(outcome.chunks == chunk_writer_count(day.writer) && outcome.chunks < chunks_max);
	/* The last second's line would come with the end. */
	CHECK(day.lines == LINES - 1 && day.seen == day.lines);
	CHECK(day.latest_ms <= late_max);
	resoluto_outcome_done(&outcome);
	day_done(&day);
}

static void a_line_a_second_on_an_object_store(void)
{
	a_line_a_second(true, CHUNKS_MAX_OBJECT, CHUNK_OBJECT_MS + POLL);
}

static void a_line_a_second_in_a_local_directory(void)
{
	a_line_a_second(false, CHUNKS_MAX_LOCAL, 0);
}

/* Nothing but heartbeats, and the driver's own window of silence is four times as long. */
static void a_quiet_day(bool object_store)
{
	struct resoluto_outcome outcome;

	day_init(&day, object_store, 0);
	outcome = live(&day);
	CHECK(outcome.disposition == RESOLUTO_COMPLETED && !outcome.reason[0] && day.lines == 0);
	CHECK(day.longest_gap_ms == CHUNK_HEARTBEAT_MS);
	CHECK(outcome.chunks <= DAY / CHUNK_HEARTBEAT_MS + 1);
	resoluto_outcome_done(&outcome);
	day_done(&day);
}

static void a_quiet_day_on_an_object_store(void)
{
	a_quiet_day(true);
}

static void a_quiet_day_in_a_local_directory(void)
{
	a_quiet_day(false);
}

/* And a runner that stands still is found out when its window has passed, not sooner, not much later. */
static void a_runner_that_freezes_after_an_hour(void)
{
	struct resoluto_outcome outcome;

	day_init(&day, true, SECOND);
	day.freezes_ms = day.started_ms + DAY / 24;
	outcome = live(&day);
	CHECK(outcome.disposition == RESOLUTO_SILENT && day.scripted.now_ms >= day.freezes_ms);
	CHECK(day.scripted.now_ms >= day.last_put_ms + RESOLUTO_DEAD_AFTER_MS);
	CHECK(day.scripted.now_ms <= day.last_put_ms + RESOLUTO_DEAD_AFTER_MS + 2 * POLL);
	resoluto_outcome_done(&outcome);
	day_done(&day);
}

int main(void)
{
	RUN(a_line_a_second_on_an_object_store);
	RUN(a_line_a_second_in_a_local_directory);
	RUN(a_quiet_day_on_an_object_store);
	RUN(a_quiet_day_in_a_local_directory);
	RUN(a_runner_that_freezes_after_an_hour);
	return check_done();
}
