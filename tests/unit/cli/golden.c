/* SPDX-License-Identifier: Apache-2.0 */

/*
 * golden.c - the help of every command against tests/golden/cli/<command>.txt.
 *
 * RENEW_GOLDEN=1 (ninja golden) writes the files instead; look at the difference before committing
 * it.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/help.h"

#ifndef GOLDEN_DIR
#error "GOLDEN_DIR is the folder of the golden files"
#endif

enum { GOLDEN_MAX = 256 * 1024, COLUMNS = 80 };

static unsigned compared;

static bool renews(void)
{
	const char *renew = getenv("RENEW_GOLDEN");

	return renew && renew[0];
}

static void check_golden(const char *name, const struct text *text)
{
	CLEANUP(buf_done) struct buf want = BUF_INIT(0);
	CLEANUP(fd_close) int dir = open(GOLDEN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *got = text_string(text);
	char file[64];

	snprintf(file, sizeof(file), "%s.txt", name);
	for (char *blank = strchr(file, ' '); blank; blank = strchr(blank, ' '))
		*blank = '-';
	CHECK(text_ok(text) && dir >= 0);
	if (renews())
		CHECK(replace_file_at(dir, file, got, strlen(got), 0644, NULL) == 0);
	if (read_file_at(dir, file, GOLDEN_MAX, &want, NULL) < 0)
		printf("# %s is missing: ninja golden\n", file);
	CHECK_STR(got, want.data ? want.data : "");
	compared++;
}

/* No line is wider than a terminal, none ends in a blank. */
static void check_shape(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		CHECK(len <= COLUMNS);
		CHECK(len == 0 || text[len - 1] != ' ');
		CHECK(text[len] == '\n');
		text += len + 1;
	}
}

static void check_command(struct text *out, const struct command *command, const char *path)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	help_command(&text, command, path);
	check_golden(path, &text);
	check_shape(text_string(&text));
}

static void the_program_explains_itself(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	help_program(&text, cli_commands);
	check_golden("resoluto-sandbox", &text);
	check_shape(text_string(&text));
}

static void every_command_explains_itself(void)
{
	compared = 0;
	generate_each(cli_commands, check_command, NULL);
	check_command(NULL, &command_image, "image");
	CHECK(compared == 18);
}

int main(void)
{
	RUN(the_program_explains_itself);
	RUN(every_command_explains_itself);
	return check_done();
}
