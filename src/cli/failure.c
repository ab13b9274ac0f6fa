/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/err_word.h"
#include "cli/command.h"
#include "cli/failure.h"

/* C1 controls are dangerous only as single bytes; in UTF-8 they are U+0080 to U+009F. */
static bool is_c1(const unsigned char *at, size_t left)
{
	return left >= 2 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
}

/* How many bytes from at on are one character of UTF-8; 0 if they are none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
	size_t len = at[0] >= 0xf0 && at[0] <= 0xf4 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc2 ? 2 : 0;

	if (at[0] < 0x80)
		return 1;
	if (at[0] > 0xf4 || len == 0 || len > left)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

void failure_add_printable(struct text *out, const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *) bytes, *end = at + len;

	while (at < end) {
		size_t left = (size_t) (end - at), n = utf8_length(at, left);
		bool is_control = (*at < 0x20 && *at != '\t') || *at == 0x7f || is_c1(at, left);

		if (n == 0 || is_control) {
			text_addf(out, "\\x%02x", *at);
			n = 1;
		} else {
			text_add_bytes(out, (const char *) at, n);
		}
		at += n;
	}
}

const char *failure_last_lines(const char *text, size_t lines)
{
	const char *at = text + strlen(text);

	if (at > text && at[-1] == '\n')
		at--;
	while (at > text) {
		if (at[-1] == '\n' && --lines == 0)
			break;
		at--;
	}
	return at;
}

void failure_print(FILE *out, const char *where, const struct resoluto_err *err)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;
	const char *word = err_word(err->code, err->text);

	failure_add_printable(&text, err->text, strlen(err->text));
	fprintf(out, "%s: %s%s%s", PROGRAM_NAME, where, where[0] ? ": " : "", text_string(&text));
	if (word)
		fprintf(out, ": %s", word);
	fputc('\n', out);
}

static void print_console(FILE *out, const char *console)
{
	const char *at = failure_last_lines(console, FAILURE_CONSOLE_LINES);

	fprintf(out, "%s: the last lines of its console:\n", PROGRAM_NAME);
	while (*at) {
		CLEANUP(text_done) struct text line = TEXT_INIT;
		size_t len = strcspn(at, "\n");
		size_t shown = len && at[len - 1] == '\r' ? len - 1 : len;

		failure_add_printable(&line, at, shown);
		fprintf(out, "  | %s\n", text_string(&line));
		at += len + (at[len] == '\n');
	}
}

/* The guest's console helps where the sandbox itself failed, not where it did as it was told. */
static bool console_helps(const struct resoluto_result *result)
{
	switch (result->disposition) {
	case RESOLUTO_UNSTARTABLE:
	case RESOLUTO_EXTERNAL:
	case RESOLUTO_SILENT:
		return result->substrate_logs && result->substrate_logs[0];
	default:
		return false;
	}
}

void failure_print_text(FILE *out, const char *words)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	failure_add_printable(&text, words, strlen(words));
	fprintf(out, "%s: %s\n", PROGRAM_NAME, text_string(&text));
}

/* What to do, where the sandbox tells only what happened (names of src/wire/reason.h): not where its first words
 * show that it knows better. */
static const struct {
	const char *reason, *remedy, *more;
} remedies[] = {
	{ "out-of-memory", "raise --memory", "" },
	{ "guest-disk-full", "raise --memory", ", or give it a --disk" },
	{ "store-full", "free space", ", or set RESOLUTO_STATE_DIR to a place that has some" },
	{ "silent", "raise --dead-after", " if the program may be silent for longer" },
	{ "deadline", "raise --deadline", " if the program may take longer" },
	{ "arguments-too-large", "pass large data", " in the workspace or by --stdin" },
};

static void add_remedy(struct text *text, const char *reason)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		if (strcmp(remedies[i].reason, reason) == 0 &&
		    !strstr(text_string(text), remedies[i].remedy))
			text_addf(text, "; %s%s", remedies[i].remedy, remedies[i].more);
	}
}

static void print_reason(FILE *out, const struct resoluto_result *result)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;
	const char *reason = result->reason ? result->reason : "";
	const char *detail = result->detail ? result->detail : "";

	if (!reason[0])
		reason = resoluto_disposition_name(result->disposition);
	text_addf(&text, "%s%s%s", reason, detail[0] ? ": " : "", detail);
	add_remedy(&text, reason);
	failure_print_text(out, text_string(&text));
}

void failure_print_no_workspace(FILE *out, const struct resoluto_result *result,
                                const char *program)
{
	if (result->reason && strcmp(result->reason, "not-found") == 0 && strchr(program, '/'))
		failure_print_text(out,
		                   "no --workspace was given: without it no file of this machine "
		                   "is in the sandbox");
}

void failure_print_result(FILE *out, const struct resoluto_result *result, int stop_signal)
{
	bool has_reason = result->reason && result->reason[0];
	bool has_detail = result->detail && result->detail[0];

	if (has_reason || result->disposition != RESOLUTO_COMPLETED || !result->ran)
		print_reason(out, result);
	else if (has_detail)
		failure_print_text(out, result->detail);
	else if (result->signal > 0 && stop_signal == 0)
		fprintf(out, "%s: the program was killed by signal %d (%s)\n", PROGRAM_NAME,
		        result->signal, strsignal(result->signal));
	if (console_helps(result))
		print_console(out, result->substrate_logs);
}

void failure_print_warnings(FILE *out, const struct resoluto_result *result, bool all)
{
	static const char output[] = RESOLUTO_WARNING_OUTPUT ":";
	static const char egress[] = RESOLUTO_WARNING_EGRESS;

	for (char **warning = result->warnings; warning && *warning; warning++) {
		if (all || strncmp(*warning, egress, sizeof(egress) - 1) == 0 ||
		    (!result->output_is_complete &&
		     strncmp(*warning, output, sizeof(output) - 1) == 0))
			failure_print_text(out, *warning);
	}
}
