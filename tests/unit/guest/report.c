/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - when the first spans are written; the ship keeps the chunks. */
#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "check.h"
#include "guest/report.h"

struct fake {
	struct ship ship;
	struct buf bytes;
};

static struct buf *bytes_of(struct ship *ship)
{
	return &((struct fake *) ship)->bytes;
}

static int fake_begin(struct ship *ship, const char *key, uint64_t size, uint32_t *ret_put,
                      struct resoluto_err *err)
{
	*ret_put = 1;
	return 0;
}

static int fake_data(struct ship *ship, uint32_t put, const void *bytes, size_t len,
                     struct resoluto_err *err)
{
	return buf_add(bytes_of(ship), bytes, len);
}

static int fake_done(struct ship *ship, uint32_t put, struct resoluto_err *err)
{
	return 0;
}

static const struct ship_ops fake_ops = {
	.begin = fake_begin, .data = fake_data, .end = fake_done, .wait = fake_done
};

static void release(struct fake *fake)
{
	buf_done(&fake->bytes);
}

#define FAKE \
	{ \
		.ship = { &fake_ops }, .bytes = BUF_INIT(1 << 16) \
	}

/* Line n of what was shipped; NULL: there is none. */
static json_t *event(const struct fake *fake, int n)
{
	const char *at = fake->bytes.data;
	json_t *root;

	while (at && n-- > 0)
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	if (!at || !*at)
		return NULL;
	root = json_loadb(at, strcspn(at, "\n"), 0, NULL);
	CHECK(root);
	return root;
}

static void check_event(const struct fake *fake, int n, const char *event_name, const char *kind,
                        const char *span_id)
{
	json_t *root = event(fake, n);

	CHECK_STR(json_string_value(json_object_get(root, "event")), event_name);
	CHECK_STR(json_string_value(json_object_get(root, "kind")), kind);
	if (span_id)
		CHECK_STR(json_string_value(json_object_get(root, "span_id")), span_id);
	json_decref(root);
}

static double time_of(const struct fake *fake, int n)
{
	json_t *root = event(fake, n);
	double ts = json_number_value(json_object_get(root, "ts"));

	json_decref(root);
	return ts;
}

static void first_spans_come_with_the_first_line(void)
{
	CLEANUP(release) struct fake fake = FAKE;
	CLEANUP(report_done) struct report report;
	struct report_span outer, inner, late;
	double before;

	CHECK(report_init(&report, &fake.ship, &(struct job){ .run_id = "r" }, 7, NULL) == 0);
	CHECK(report_open(&report, "node", NULL, &outer) == 0);
	CHECK(report_open(&report, "egress_canary", &outer, &inner) == 0);
	CHECK_STR(inner.parent, outer.id);
	before = clock_wall();
	report.told_late = before - 100;
	CHECK(report_line(&report, &inner, "a line") == 0);
	report.told_late = 0;
	/* Once there was a line nothing is kept back. */
	CHECK(report_open(&report, "workload", &outer, &late) == 0);
	CHECK(report_flush(&report) == 0);
	check_event(&fake, 0, "open", "node", outer.id);
	check_event(&fake, 1, "open", "egress_canary", inner.id);
	check_event(&fake, 2, "log", "log", NULL);
	check_event(&fake, 3, "open", "workload", late.id);
	CHECK(!event(&fake, 4));
	/* Each at the time of its own; what is written is rounded, up too. */
	CHECK(time_of(&fake, 0) <= time_of(&fake, 1) && time_of(&fake, 1) <= before + 1e-6);
	CHECK(time_of(&fake, 0) > before - 50 && time_of(&fake, 2) < before - 50);
}

static void nothing_else_to_tell(void)
{
	CLEANUP(release) struct fake fake = FAKE;
	CLEANUP(report_done) struct report report;
	struct report_span span;

	CHECK(report_init(&report, &fake.ship, &(struct job){ .run_id = "r" }, 7, NULL) == 0);
	CHECK(report_open(&report, "node", NULL, &span) == 0);
	CHECK(fake.bytes.len == 0 && report_flush(&report) == 0);
	check_event(&fake, 0, "open", "node", span.id);
	CHECK(report_close(&report, &span, true) == 0 && report_flush(&report) == 0);
	check_event(&fake, 1, "close", "node", span.id);
	CHECK(!event(&fake, 2));
}

static void a_third_span_is_not_kept_back(void)
{
	CLEANUP(release) struct fake fake = FAKE;
	CLEANUP(report_done) struct report report;
	struct report_span spans[3];

	CHECK(report_init(&report, &fake.ship, &(struct job){ .run_id = "r" }, 7, NULL) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(report_open(&report, "node", NULL, &spans[i]) == 0);
	CHECK(report_flush(&report) == 0);
	for (int i = 0; i < 3; i++)
		check_event(&fake, i, "open", "node", spans[i].id);
}

int main(void)
{
	RUN(first_spans_come_with_the_first_line);
	RUN(nothing_else_to_tell);
	RUN(a_third_span_is_not_kept_back);
	return check_done();
}
