/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "guest/program.h"

static struct strv list(const char *const *items)
{
	struct strv strv = { 0 };

	CHECK(strv_add_all(&strv, items) == 0);
	return strv;
}

static void sizes_are_the_kernels(void)
{
	CLEANUP(strv_done) struct strv argv = list((const char *const[]){ "echo", "hello", NULL });
	CLEANUP(strv_done) struct strv env = list((const char *const[]){ "PATH=/bin", NULL });
	struct program_size size = program_measure(&argv, &env);

	CHECK(size.total == 5 + 6 + 10 + 3 * sizeof(char *) && size.largest == 10);
}

struct expectation {
	const char *name;
	enum program_step step;
	int error;
	enum reason reason;
	int exit_code;
	const char *words;
};

static void failures_are_told_as_shells_do(void)
{
	static const struct expectation table[] = {
		{ "ls", STEP_FIND, ENOENT, REASON_NOT_FOUND, 127, "ls: no such program in PATH" },
		{ "/ls", STEP_FIND, ENOENT, REASON_NOT_FOUND, 127, "/ls: no such program" },
		{ "ls", STEP_EXEC, EACCES, REASON_NOT_EXECUTABLE, 126, "Permission denied" },
		{ "ls", STEP_EXEC, EISDIR, REASON_NOT_EXECUTABLE, 126, "is a directory" },
		{ "ls", STEP_EXEC, ENOEXEC, REASON_NOT_EXECUTABLE, 126, "not in a format" },
		{ "ls", STEP_EXEC, ENOENT, REASON_NOT_EXECUTABLE, 126, "interpreter" },
		{ "ls", STEP_EXEC, E2BIG, REASON_ARGUMENTS_TOO_LARGE, 126, "the longest string 3" },
		{ "ls", STEP_CWD, ENOENT, REASON_NOT_EXECUTABLE, 126, "/where" },
		{ "ls", STEP_CONFINE, EPERM, REASON_NOT_EXECUTABLE, 126, "rights" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		CLEANUP(strv_done)
		struct strv argv = list((const char *const[]){ table[i].name, NULL });
		CLEANUP(strv_done) struct strv env = { 0 };
		struct program program = { .argv = &argv, .env = &env, .cwd = "/where" };
		struct program_failure failure = { table[i].step, table[i].error };
		char detail[PROGRAM_DETAIL];
		int exit_code;

		CHECK(program_explain(&program, &failure, &exit_code, detail) == table[i].reason);
		CHECK(exit_code == table[i].exit_code && strstr(detail, table[i].words));
	}
}

int main(void)
{
	RUN(sizes_are_the_kernels);
	RUN(failures_are_told_as_shells_do);
	return check_done();
}
