/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "egress/policy.h"
#include "egress/reason.h"
#include "egress/row.h"
#include "sandbox/egress.h"
#include "wire/printable.h"

enum { PATTERN_TEXT_MAX = 512 }; /* bytes of a canonical pattern */

/* --- what is asked for --- */

/* A query may hold a key: only where it begins is told. */
static int note_ignored(struct strv *notes, const char *where, const char *text, size_t kept)
{
	char counts[sizeof("https://:65535") + EGRESS_NAME_MAX], shown[PRINTABLE_SIZE];

	/* Cut first: in the middle of a long one room would be made for its end. */
	snprintf(counts, sizeof(counts), "%.*s", (int) kept, text);
	return strv_addf(notes,
	                 "egress-ignored: %sof '%s' only the name and the port count: what is "
	                 "behind them ('%.1s...') is ignored",
	                 where, printable(counts, shown), text + kept);
}

static int add_pattern(const char *text, struct egress_policy *policy, struct strv *notes,
                       struct resoluto_err *err)
{
	struct egress_pattern pattern;
	const char *ignored = NULL;
	int r = egress_pattern_parse(text, policy->is_wide, &pattern, &ignored, err);

	if (r == 0)
		r = egress_policy_add(policy, &pattern, err);
	if (r < 0 || !ignored)
		return r;
	r = note_ignored(notes, "", text, (size_t) (ignored - text));
	return r < 0 ? resoluto_fail(err, r, "read the egress patterns") : 0;
}

/* The file that is read, and where its notes go. */
struct file_notes {
	const char *path;
	struct strv *notes;
};

static int on_ignored(void *ctx, size_t line, const char *text, size_t kept)
{
	const struct file_notes *to = ctx;
	char shown[PRINTABLE_SIZE], where[PRINTABLE_SIZE + sizeof("line : ") + 20];

	snprintf(where, sizeof(where), "%s line %zu: ", printable(to->path, shown), line);
	return note_ignored(to->notes, where, text, kept);
}

static int add_file(const char *path, struct stops *stops, struct egress_policy *policy,
                    struct strv *notes, struct resoluto_err *err)
{
	struct file_notes to = { path, notes };
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	int r = read_given_file(path, EGRESS_FILE_MAX, stops_await, stops, &text, err);

	if (r == -E2BIG)
		return resoluto_fail(err, -EINVAL, "egress file %s: over %d bytes", path,
		                     EGRESS_FILE_MAX);
	if (r < 0)
		return resoluto_fail(err, r == -ECANCELED ? r : -EINVAL, "egress file %s: %s", path,
		                     strerrordesc_np(-r));
	return egress_policy_add_file(policy, path,
	                              (struct span){ text.data ? text.data : "", text.len },
	                              on_ignored, &to, err);
}

static int write_patterns(const struct egress_policy *policy, struct strv *ret_patterns)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->count; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(PATTERN_TEXT_MAX);

		r = egress_pattern_write(&policy->patterns[i], &text);
		if (r == 0)
			r = strv_add(ret_patterns, text.data);
	}
	return r;
}

static int check_together(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	const bool has_list = (options->egress && options->egress[0]) || options->egress_file;

	if (options->egress_learn && has_list)
		return resoluto_fail(err, -EINVAL,
		                     "egress: a run that learns is allowed nothing; give the names "
		                     "or egress_learn, not both");
	if (options->egress_proxy && !options->egress_proxy[0])
		return resoluto_fail(err, -EINVAL, "egress_proxy: the address is empty");
	return 0;
}

int egress_compile(const struct resoluto_run_options *options, struct stops *stops,
                   struct strv *ret_patterns, struct strv *ret_notes, struct resoluto_err *err)
{
	CLEANUP(egress_policy_done)
	struct egress_policy policy = { .is_wide = options->egress_wide };
	int r = check_together(options, err);

	for (size_t i = 0; r == 0 && options->egress && options->egress[i]; i++)
		r = add_pattern(options->egress[i], &policy, ret_notes, err);
	if (r == 0 && options->egress_file)
		r = add_file(options->egress_file, stops, &policy, ret_notes, err);
	if (r < 0)
		return r == -E2BIG ? -EINVAL : r;
	r = write_patterns(&policy, ret_patterns);
	return r < 0 ? resoluto_fail(err, r, "read the egress patterns") : 0;
}

/* --- what came of it --- */

/* Rows as they come, and how many. */
struct rows {
	struct buf json;
	size_t count;
};

static int add_row(struct rows *rows, const struct egress_row *row, struct egress_outcome *outcome)
{
	int r;

	if (rows->count >= EGRESS_RESULT_ROWS) {
		outcome->dropped++;
		return 0;
	}
	r = rows->count++ > 0 ? buf_add_str(&rows->json, ",") : 0;
	return r < 0 ? r : egress_row_write(row, &rows->json);
}

/* What is no line of a gateway's is passed over. */
static int take_line(const char *bytes, size_t len, struct rows *rows,
                     struct egress_outcome *outcome)
{
	struct egress_line line;

	if (egress_line_parse(bytes, len, &line, NULL) < 0)
		return 0;
	/* Behind its last line a gateway says nothing more. */
	outcome->is_lost = line.kind != EGRESS_LINE_ENDED;
	if (line.kind == EGRESS_LINE_ROW)
		return add_row(rows, &line.row, outcome);
	if (line.kind == EGRESS_LINE_ENDED &&
	    __builtin_add_overflow(outcome->dropped, line.rows_dropped, &outcome->dropped))
		outcome->dropped = UINT64_MAX;
	return 0;
}

static int add_lost(struct rows *rows, struct egress_outcome *outcome)
{
	struct egress_row row = { .decision = EGRESS_FAILED, .reason = EGRESS_GATEWAY_LOST };

	snprintf(row.detail, sizeof(row.detail), "%s", egress_reason_text(EGRESS_GATEWAY_LOST));
	return add_row(rows, &row, outcome);
}

int egress_outcome_read(const char *text, size_t len, struct egress_outcome *ret_outcome)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(0);
	struct rows rows = { .json = BUF_INIT((EGRESS_RESULT_ROWS + 1) * (EGRESS_ROW_MAX + 1)) };
	struct egress_outcome outcome = { .is_lost = true };
	int r = buf_add_str(&rows.json, "[");

	while (r == 0 && len > 0) {
		const char *end = memchr(text, '\n', len);
		const size_t line = end ? (size_t) (end - text) : len;

		/* A line without its end was being written when its writer died. */
		if (end)
			r = take_line(text, line, &rows, &outcome);
		text += line + (end ? 1 : 0);
		len -= line + (end ? 1 : 0);
	}
	if (r == 0 && outcome.is_lost)
		r = add_lost(&rows, &outcome);
	if (r == 0)
		r = buf_add_str(&rows.json, "]");
	json = rows.json;
	if (r < 0)
		return r;
	outcome.json = buf_take(&json);
	*ret_outcome = outcome;
	return outcome.json ? 0 : -ENOMEM;
}
