/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - what the tests themselves stand on (tests/check.h). */
#include "check.h"

static void check_note_of(const char *text, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	CHECK(out);
	check_note(out, text);
	fclose(out);
	CHECK_STR(got, want);
	free(got);
}

/* A line that is no remark and no result is noise in TAP. */
static void every_line_of_a_note_is_a_remark(void)
{
	check_note_of("one", "# one\n");
	check_note_of("one\nok 7\n", "# one\n# ok 7\n");
	check_note_of("\n\ntwo", "# \n# \n# two\n");
	check_note_of("", "# \n");
}

int main(void)
{
	RUN(every_line_of_a_note_is_a_remark);
	return check_done();
}
