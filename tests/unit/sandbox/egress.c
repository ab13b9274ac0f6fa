/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "sandbox/egress.h"

#define ROW \
	"{\"name\":\"a.example\",\"sni\":\"a.example\",\"port\":443,\"protocol\":\"tls\"," \
	"\"decision\":\"allowed\",\"reason\":\"none\",\"address\":\"192.0.2.1\",\"bytes_up\":7," \
	"\"bytes_down\":9,\"duration_ms\":3,\"detail\":\"\"}\n"
#define STARTED "{\"gateway\":\"started\"}\n"
#define ENDED "{\"gateway\":\"ended\",\"up\":7,\"down\":9,\"rows_dropped\":0}\n"

static int compile(const struct resoluto_run_options *options, struct strv *patterns,
                   struct strv *notes, struct resoluto_err *err)
{
	static struct stops no_stops = STOPS_NONE;

	return egress_compile(options, &no_stops, patterns, notes, err);
}

static void patterns_become_canonical(void)
{
	const char *const given[] = { "Example.ORG", "*.a.b:8443", "http://x.y", "example.org.",
		                      NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };

	CHECK(compile(&(struct resoluto_run_options){ .egress = given }, &patterns, &notes, NULL) ==
	      0);
	CHECK(patterns.count == 3 && notes.count == 0);
	CHECK_STR(patterns.items[0], "example.org:443");
	CHECK_STR(patterns.items[1], "*.a.b:8443");
	CHECK_STR(patterns.items[2], "http://x.y:80");
}

static void none_is_nothing(void)
{
	const char *const none[] = { NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };

	CHECK(compile(&(struct resoluto_run_options){ .egress = none }, &patterns, &notes, NULL) ==
	      0);
	CHECK(compile(&(struct resoluto_run_options){ 0 }, &patterns, &notes, NULL) == 0);
	CHECK(patterns.count == 0);
}

static void an_ignored_path_is_said(void)
{
	const char *const given[] = { "https://a.example/path?key=SECRET", NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };

	CHECK(compile(&(struct resoluto_run_options){ .egress = given }, &patterns, &notes, NULL) ==
	      0);
	CHECK(patterns.count == 1 && notes.count == 1);
	CHECK(strncmp(notes.items[0], "egress-ignored: ", 16) == 0);
	CHECK(strstr(notes.items[0], "https://a.example") && !strstr(notes.items[0], "SECRET"));
}

/* Where the middle of a long name is left out, what is behind it does not move into view. */
static void a_long_name_brings_nothing_of_its_path(void)
{
	static const char label[] =
		"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
	char url[400];
	const char *const given[] = { url, NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };

	for (int labels = 1; labels <= 4; labels++) {
		snprintf(url, sizeof(url),
		         "https://%.*s.%.*s.%.*s.%s.example/?key=SECRETSECRETSECRET", 62, label,
		         labels > 1 ? 40 : 1, label, labels > 2 ? 40 : 1, label,
		         labels > 3 ? label : "x");
		CHECK(compile(&(struct resoluto_run_options){ .egress = given }, &patterns, &notes,
		              NULL) == 0);
		CHECK(notes.count == (size_t) labels);
		CHECK(!strstr(notes.items[labels - 1], "SECRET") &&
		      !strstr(notes.items[labels - 1], "key"));
	}
}

static void check_refused(const char *pattern, bool is_wide)
{
	const char *const given[] = { pattern, NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };
	struct resoluto_err err = { 0 };

	CHECK(compile(&(struct resoluto_run_options){ .egress = given, .egress_wide = is_wide },
	              &patterns, &notes, &err) == -EINVAL);
	CHECK(err.text[0]);
}

static void what_is_no_name_is_refused(void)
{
	check_refused("", false);
	check_refused("*", false);
	check_refused("*.com", false);
	check_refused("1.2.3.4", true);
	check_refused("10.0.0.0/8", true);
	check_refused("a.example:0", true);
	check_refused("a.example:70000", true);
}

static void learning_allows_nothing(void)
{
	const char *const given[] = { "a.example", NULL };
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };
	struct resoluto_err err = { 0 };

	CHECK(compile(&(struct resoluto_run_options){ .egress = given, .egress_learn = true },
	              &patterns, &notes, &err) == -EINVAL);
	CHECK(strstr(err.text, "not both"));
	CHECK(compile(&(struct resoluto_run_options){ .egress_learn = true }, &patterns, &notes,
	              &err) == 0);
}

static void a_file_has_more_of_them(void)
{
	static const char text[] = "# mine\n\na.example # yes\n*.b.c\n";
	char path[] = "/tmp/egress-XXXXXX";
	CLEANUP(fd_close) int fd = mkstemp(path);
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };
	const struct resoluto_run_options options = { .egress_file = path };
	struct resoluto_err err = { 0 };

	CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
	CHECK(compile(&options, &patterns, &notes, &err) == 0);
	CHECK(patterns.count == 2);
	CHECK(write_all(fd, "1.2.3.4\n", 8) == 0);
	CHECK(compile(&options, &patterns, &notes, &err) == -EINVAL);
	CHECK(strstr(err.text, path) && strstr(err.text, "line 5"));
	(void) unlink(path);
	CHECK(compile(&options, &patterns, &notes, &err) == -EINVAL);
	CHECK(strstr(err.text, "No such file"));
}

static void a_file_may_be_a_pipe(void)
{
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };
	struct resoluto_run_options options = { .egress_file = NULL };
	char path[32];
	int pair[2];

	CHECK(pipe(pair) == 0 && write_all(pair[1], "a.example\n", 10) == 0);
	fd_close(&pair[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", pair[0]);
	options.egress_file = path;
	CHECK(compile(&options, &patterns, &notes, NULL) == 0 && patterns.count == 1);
	fd_close(&pair[0]);
}

static void an_ignored_path_in_a_file_is_said_with_its_line(void)
{
	static const char text[] = "# mine\nhttp://a.example/only/this?key=SECRET # why\n"
				   "b.example\n\thttps://c.example:8443/\n"
				   "https://d.example:8443/x\n";
	char path[] = "/tmp/egress-XXXXXX";
	CLEANUP(fd_close) int fd = mkstemp(path);
	CLEANUP(strv_done) struct strv patterns = { 0 }, notes = { 0 };
	const struct resoluto_run_options options = { .egress_file = path };

	CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
	CHECK(compile(&options, &patterns, &notes, NULL) == 0);
	(void) unlink(path);
	CHECK(patterns.count == 4 && notes.count == 2);
	CHECK(strncmp(notes.items[0], "egress-ignored: ", 16) == 0 && strstr(notes.items[0], path));
	CHECK(strstr(notes.items[0], " line 2: of 'http://a.example' only") &&
	      !strstr(notes.items[0], "SECRET"));
	CHECK(strstr(notes.items[1], " line 5: of 'https://d.example:8443' only"));
}

static struct egress_outcome read_text(const char *text)
{
	struct egress_outcome outcome = { .json = NULL };

	CHECK(egress_outcome_read(text, strlen(text), &outcome) == 0);
	return outcome;
}

static json_t *rows_of(struct egress_outcome *outcome)
{
	json_t *rows = json_loads(outcome->json, 0, NULL);

	free(outcome->json);
	CHECK(json_is_array(rows));
	return rows;
}

static void rows_come_as_they_were_written(void)
{
	struct egress_outcome outcome = read_text(STARTED ROW ROW ENDED);
	json_t *rows, *want = json_loads(ROW, 0, NULL);

	CHECK(!outcome.is_lost && outcome.dropped == 0);
	rows = rows_of(&outcome);
	CHECK(json_array_size(rows) == 2 && json_equal(json_array_get(rows, 0), want));
	json_decref(rows);
	json_decref(want);
}

static void a_gateway_that_died_is_said(void)
{
	static const char *const texts[] = { "", STARTED, STARTED ROW,
		                             STARTED "{\"gateway\":\"ended\"" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct egress_outcome outcome = read_text(texts[i]);
		json_t *rows, *last;

		CHECK(outcome.is_lost);
		rows = rows_of(&outcome);
		last = json_array_get(rows, json_array_size(rows) - 1);
		CHECK_STR(json_string_value(json_object_get(last, "reason")), "gateway-lost");
		json_decref(rows);
	}
}

static void lines_that_are_no_rows_are_passed_over(void)
{
	struct egress_outcome outcome = read_text(
		STARTED "[]\nnull\n{\n{\"gateway\":7,\"x\":{}}\n\n{\"name\":\"a\"}\n" ENDED);

	CHECK(!outcome.is_lost);
	CHECK_STR(outcome.json, "[]");
	free(outcome.json);
}

static void what_was_dropped_is_counted(void)
{
	struct egress_outcome outcome = read_text(STARTED
	                                          "{\"gateway\":\"ended\",\"rows_dropped\":12}\n");

	CHECK(outcome.dropped == 12 && !outcome.is_lost);
	free(outcome.json);
}

static void there_is_an_end_of_rows(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(16 * 1024 * 1024);
	struct egress_outcome outcome;
	json_t *rows;

	for (int i = 0; i < EGRESS_RESULT_ROWS + 3; i++)
		CHECK(buf_add_str(&text, ROW) == 0);
	CHECK(buf_add_str(&text, ENDED) == 0);
	CHECK(egress_outcome_read(text.data, text.len, &outcome) == 0);
	CHECK(outcome.dropped == 3 && !outcome.is_lost);
	rows = rows_of(&outcome);
	CHECK(json_array_size(rows) == EGRESS_RESULT_ROWS);
	json_decref(rows);
}

int main(void)
{
	RUN(patterns_become_canonical);
	RUN(none_is_nothing);
	RUN(an_ignored_path_is_said);
	RUN(a_long_name_brings_nothing_of_its_path);
	RUN(an_ignored_path_in_a_file_is_said_with_its_line);
	RUN(what_is_no_name_is_refused);
	RUN(learning_allows_nothing);
	RUN(a_file_has_more_of_them);
	RUN(a_file_may_be_a_pipe);
	RUN(rows_come_as_they_were_written);
	RUN(a_gateway_that_died_is_said);
	RUN(lines_that_are_no_rows_are_passed_over);
	RUN(what_was_dropped_is_counted);
	RUN(there_is_an_end_of_rows);
	return check_done();
}
