/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/cleanup.h"
#include "secrets/dotenv.h"

static struct strv env;
static struct resoluto_err err;

static int parse_bytes(const char *text, size_t len)
{
	strv_done(&env);
	memset(&err, 0, sizeof(err));
	return dotenv_parse(text, len, NULL, &env, &err);
}

/* What the text gives, all in one string with a newline behind each. */
static void expect(const char *text, const char *want)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT(65536);

	CHECK(parse_bytes(text, strlen(text)) == 0);
	CHECK(err.code == 0);
	for (size_t i = 0; i < env.count; i++)
		CHECK(buf_addf(&got, "%s\n", env.items[i]) == 0);
	CHECK_STR(got.data ? got.data : "", want);
}

static void refuse(const char *text, const char *words)
{
	CHECK(parse_bytes(text, strlen(text)) == -EINVAL);
	CHECK(err.code == -EINVAL && env.count == 0);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
}

static void reads_lines(void)
{
	expect("", "");
	expect("\n\n \t \n", "");
	expect("A=1\nB_2=two\n", "A=1\nB_2=two\n");
	expect("A=1", "A=1\n");
	expect("_=x\na=b\n", "_=x\na=b\n");
	expect("  A=1  \n\tB=2\t\n", "A=1\nB=2\n");
	expect("A= \t x y \t \n", "A=x y\n");
	expect("A=\nB=a=b=c\n", "A=\nB=a=b=c\n");
}

static void takes_export_off(void)
{
	expect("export A=1\nexport\tB=2\nexport   C=3\n", "A=1\nB=2\nC=3\n");
	expect("export=1\nexported=2\n", "export=1\nexported=2\n");
	refuse("export \n", "line 1");
	refuse("export export A=1\n", "line 1");
}

static void knows_whole_line_comments_only(void)
{
	expect("# a\n  # b = c\nA=1 # kept\n#B=2\n", "A=1 # kept\n");
}

static void takes_one_pair_of_quotes_off(void)
{
	expect("A=\"x\"\nB='y'\n", "A=x\nB=y\n");
	expect("A=\" x \"\n", "A= x \n");
	expect("A=\"\"\nB=''\n", "A=\nB=\n");
	expect("A=\"'x'\"\n", "A='x'\n");
	expect("A=\"\"x\"\"\n", "A=\"x\"\n");
	expect("A=it's\nB=5\"\n", "A=it's\nB=5\"\n");
	refuse("A=1\nB=\"x\n", "line 2");
	refuse("A='x\"\n", "line 1");
	refuse("A=\"x\" # no comment here\n", "quote");
	refuse("A=\"", "line 1");
}

static void expands_nothing(void)
{
	expect("A=$HOME\nB=\"${A}\\n\"\nC=`id`\n", "A=$HOME\nB=${A}\\n\nC=`id`\n");
}

static void accepts_cr_lf_and_a_byte_order_mark(void)
{
	expect("\xef\xbb\xbf"
	       "A=1\r\nB=\"2\"\r\n\r\nC=3\r",
	       "A=1\nB=2\nC=3\n");
	refuse("A=1\n\xef\xbb\xbf"
	       "B=2\n",
	       "line 2: a byte order mark");
}

static void keeps_bytes_that_are_not_text(void)
{
	expect("A=\xff\xfe\x01\n", "A=\xff\xfe\x01\n");
}

static void lets_later_lines_win(void)
{
	expect("A=1\nB=1\nA=2\nC=1\nA=3\nB=2\n", "C=1\nA=3\nB=2\n");
	expect("AB=1\nA=1\nAB=2\n", "A=1\nAB=2\n");
}

/* What a kernel takes; not every program is a shell. */
static void names_are_of_any_bytes_but_blanks(void)
{
	expect("my.var=1\nA-B=2\n1A=3\nexport \xc3\xa4=4\n", "my.var=1\nA-B=2\n1A=3\n\xc3\xa4=4\n");
}

static int no_b(const char *entry, struct resoluto_err *why)
{
	return entry[0] == 'B' ? resoluto_fail(why, -EPERM, "no B") : 0;
}

static void names_the_line_of_what_is_refused(void)
{
	strv_done(&env);
	CHECK(dotenv_parse("# x\nA=1\nB=1\n\nB=2\nC=3\n", 21, no_b, &env, &err) == -EPERM);
	CHECK_STR(err.text, "line 5: no B");
	CHECK(env.count == 0);
	CHECK(dotenv_parse("A=1\nC=3\n", 8, no_b, &env, NULL) == 0 && env.count == 2);
}

static void refuses_what_is_no_variable(void)
{
	refuse("A=1\n\nB\n", "line 3");
	refuse("=x\n", "line 1");
	refuse("A =x\n", "line 1");
	refuse("A B=x\n", "line 1");
	refuse("A\tB=x\n", "blank or control");
	refuse("A\x1b=x\n", "line 1");
	CHECK(parse_bytes("A=1\nB=\0\n", 8) == -EINVAL);
	CHECK(strstr(err.text, "line 2") && strstr(err.text, "NUL"));
	CHECK(parse_bytes("# \0\n", 4) == -EINVAL);
}

static void never_tells_a_value(void)
{
	refuse("A=\"hunter2\n", "line 1");
	CHECK(!strstr(err.text, "hunter2"));
	refuse("hunter2\n", "line 1");
	CHECK(!strstr(err.text, "hunter2"));
}

static void appends_and_leaves_what_was_there(void)
{
	strv_done(&env);
	CHECK(strv_add(&env, "A=0") == 0);
	CHECK(dotenv_parse("A=1\nB=2\n", 8, NULL, &env, NULL) == 0);
	CHECK(env.count == 3);
	CHECK_STR(env.items[0], "A=0");
	CHECK_STR(env.items[2], "B=2");
	CHECK(dotenv_parse("C=1\nD\n", 6, NULL, &env, NULL) == -EINVAL);
	CHECK(env.count == 3 && !env.items[3]);
}

static void bounds_the_text(void)
{
	char *text = malloc(DOTENV_MAX + 1);

	CHECK(text);
	memset(text, '\n', DOTENV_MAX + 1);
	CHECK(parse_bytes(text, DOTENV_MAX + 1) == -E2BIG && err.code == -E2BIG);
	CHECK(parse_bytes(text, DOTENV_MAX) == 0 && env.count == 0);
	free(text);
}

/* Half a million names: time must not grow with the square of them. */
static void reads_very_many_names(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DOTENV_MAX);
	size_t count = 0;

	while (buf_addf(&text, "A%zx=\n", count % 400000) == 0)
		count++;
	CHECK(count > 400000);
	CHECK(parse_bytes(text.data, text.len) == 0);
	CHECK(env.count == 400000);
}

int main(void)
{
	RUN(reads_lines);
	RUN(takes_export_off);
	RUN(knows_whole_line_comments_only);
	RUN(takes_one_pair_of_quotes_off);
	RUN(expands_nothing);
	RUN(accepts_cr_lf_and_a_byte_order_mark);
	RUN(keeps_bytes_that_are_not_text);
	RUN(lets_later_lines_win);
	RUN(names_are_of_any_bytes_but_blanks);
	RUN(names_the_line_of_what_is_refused);
	RUN(refuses_what_is_no_variable);
	RUN(never_tells_a_value);
	RUN(appends_and_leaves_what_was_there);
	RUN(bounds_the_text);
	RUN(reads_very_many_names);
	strv_done(&env);
	return check_done();
}
