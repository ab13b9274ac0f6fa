/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/err_word.h"
#include "resoluto/err.h"

static void records_a_failure(void)
{
	struct resoluto_err err = { 0 };

	CHECK(resoluto_fail(&err, -ENOENT, "open %s", "file") == -ENOENT);
	CHECK(err.code == -ENOENT);
	CHECK_STR(err.text, "open file");
}

static void puts_context_in_front(void)
{
	struct resoluto_err err = { 0 };

	CHECK(resoluto_fail(&err, -EIO, "read") == -EIO);
	CHECK(resoluto_fail_in(&err, -EPROTO, "get %s", "key") == -EPROTO);
	CHECK(resoluto_fail_in(&err, -EPROTO, "run") == -EPROTO);
	CHECK(err.code == -EPROTO);
	CHECK_STR(err.text, "run: get key: read");
}

static void works_without_a_place_to_record(void)
{
	CHECK(resoluto_fail(NULL, -EIO, "read") == -EIO);
	CHECK(resoluto_fail_in(NULL, -EIO, "read") == -EIO);
}

static void cuts_long_text(void)
{
	struct resoluto_err err = { 0 };
	char text[2 * RESOLUTO_ERR_TEXT];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	resoluto_fail(&err, -EIO, "%s", text);
	CHECK(strlen(err.text) == RESOLUTO_ERR_TEXT - 1);
	resoluto_fail_in(&err, -EIO, "short");
	CHECK(strlen(err.text) == RESOLUTO_ERR_TEXT - 1 && strncmp(err.text, "short: xx", 9) == 0);
	resoluto_fail_in(&err, -EIO, "%s", text);
	CHECK(strlen(err.text) == RESOLUTO_ERR_TEXT - 1 &&
	      strspn(err.text, "x") == strlen(err.text));
}

/* A name that a stranger chose must not end the line, nor speak to a terminal. */
static void stays_one_printable_line(void)
{
	struct resoluto_err err = { 0 };

	resoluto_fail(&err, -EIO, "open %s", "a\nb\x1b[2J\r\t\x7f\x01");
	CHECK_STR(err.text, "open a?b?[2J????");
	resoluto_fail_in(&err, -EIO, "x\ny");
	CHECK_STR(err.text, "x?y: open a?b?[2J????");
	resoluto_fail(&err, -EIO, "%s", "\xc3\xa4\xff");
	CHECK_STR(err.text, "\xc3\xa4\xff");
}

static void a_word_is_only_where_the_text_says_less(void)
{
	CHECK_STR(err_word(-ENOENT, "open /x"), "No such file or directory");
	CHECK(!err_word(-ENOENT, "it is not in the cache; image ls lists them"));
	CHECK_STR(err_word(-EACCES, "open /x; try another"), "Permission denied");
	CHECK(!err_word(-EHOSTUNREACH, "connection refused") && !err_word(-EEXIST, "taken"));
}

int main(void)
{
	RUN(records_a_failure);
	RUN(puts_context_in_front);
	RUN(works_without_a_place_to_record);
	RUN(cuts_long_text);
	RUN(stays_one_printable_line);
	RUN(a_word_is_only_where_the_text_says_less);
	return check_done();
}
