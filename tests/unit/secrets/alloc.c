/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - every allocation of the env file reader fails in turn. */
#include "alloc_fail.h"
#include "check.h"

#include "base/cleanup.h"
#include "secrets/dotenv.h"

static int parse(void)
{
	static const char text[] = "A=1\nB=2\nexport C='3'\nA=4\n# end\n";
	CLEANUP(strv_done) struct strv env = { 0 };
	int r = strv_add(&env, "KEPT=1");

	if (r < 0)
		return r;
	r = dotenv_parse(text, sizeof(text) - 1, NULL, &env, NULL);
	CHECK(env.count == (r < 0 ? 1 : 4));
	return r;
}

/* 1 + 3 strings, their list, the lines, the order of the names. */
static void env_files_survive(void)
{
	CHECK(alloc_fail_each(parse, -ENOMEM) >= 7);
}

int main(void)
{
	RUN(env_files_survive);
	return check_done();
}
