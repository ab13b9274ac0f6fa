/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include "check.h"
#include "cli/exit_code.h"

static const struct {
	struct resoluto_result result;
	int stop_signal, code;
} results[] = {
	/* the program's own */
	{ { .ran = true, .exit_code = 0 }, 0, 0 },
	{ { .ran = true, .exit_code = 3 }, 0, 3 },
	{ { .ran = true, .exit_code = 255 }, 0, 255 },
	{ { .ran = true, .exit_code = 137, .signal = 9 }, 0, 137 },
	{ { .ran = true, .exit_code = 139, .signal = 11 }, 0, 139 },
	{ { .ran = true, .exit_code = 7 },
	  SIGINT,
	  7 }, /* it caught our signal and ended by itself */
	{ { .ran = true, .exit_code = 137, .signal = 9, .reason = "out-of-memory" }, 0, 137 },
	{ { .ran = true, .exit_code = 1, .reason = "outputs-failed" }, 0, 1 },
	{ { .ran = true, .exit_code = 7, .reason = "guest-disk-full" }, 0, 7 },
	{ { .ran = true, .exit_code = 2, .reason = "bad-output" }, 0, 2 },
	/* it could not start */
	{ { .exit_code = 127, .reason = "not-found" }, 0, 127 },
	{ { .exit_code = 126, .reason = "not-executable" }, 0, 126 },
	{ { .exit_code = 126, .reason = "arguments-too-large" }, 0, 126 },
	/* stopped */
	{ { .ran = true, .disposition = RESOLUTO_STOPPED, .reason = "deadline" }, 0, 124 },
	{ { .ran = true, .exit_code = 143, .signal = 15, .reason = "deadline" }, 0, 124 },
	{ { .ran = true, .disposition = RESOLUTO_STOPPED, .reason = "signal" }, SIGINT, 130 },
	{ { .disposition = RESOLUTO_STOPPED, .reason = "signal" }, SIGTERM, 143 },
	{ { .disposition = RESOLUTO_STOPPED, .reason = "signal" }, 0, 125 },
	{ { .ran = true, .disposition = RESOLUTO_STOPPED, .reason = "quota" }, 0, 125 },
	/* the sandbox failed */
	{ { .ran = false, .reason = "canary-failed" }, 0, 125 },
	{ { .ran = false, .exit_code = 1, .reason = "setup-failed" }, 0, 125 },
	{ { .ran = false, .exit_code = 1, .reason = "guest-disk-full" }, 0, 125 },
	{ { .ran = false }, 0, 125 },
	{ { .ran = true, .exit_code = 0, .reason = "outputs-failed" }, 0, 125 },
	{ { .ran = true, .exit_code = 0, .reason = "bad-output" }, 0, 125 },
	{ { .ran = true, .disposition = RESOLUTO_EXTERNAL, .reason = "emulator-killed" }, 0, 125 },
	{ { .ran = true, .disposition = RESOLUTO_EXTERNAL, .reason = "guest-panic" }, 0, 125 },
	{ { .ran = true, .disposition = RESOLUTO_SILENT, .reason = "silent" }, 0, 125 },
	{ { .disposition = RESOLUTO_UNSTARTABLE, .reason = "unstartable" }, 0, 125 },
	{ { .disposition = RESOLUTO_REFUSED, .reason = "refused" }, 0, 125 },
	/* what no program can do */
	{ { .ran = true, .exit_code = -1 }, 0, 125 },
	{ { .ran = true, .exit_code = 256 }, 0, 125 },
};

static void results_have_their_codes(void)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct exit_facts facts = { .result = &results[i].result,
			                    .stop_signal = results[i].stop_signal };
		int code = exit_code_of(&facts);

		if (code != results[i].code)
			printf("# row %zu: %d, not %d\n", i, code, results[i].code);
		CHECK(code == results[i].code);
	}
}

static int code_without_result(int run_code, int output_code, int stop_signal)
{
	struct exit_facts facts = { run_code, NULL, output_code, stop_signal };

	return exit_code_of(&facts);
}

static void no_result_is_misuse_or_failure(void)
{
	CHECK(code_without_result(-EINVAL, 0, 0) == 2);
	CHECK(code_without_result(-ENOENT, 0, 0) == 125);
	CHECK(code_without_result(-EEXIST, 0, 0) == 125);
	CHECK(code_without_result(-ECANCELED, 0, SIGTERM) == 143);
	CHECK(code_without_result(-ECANCELED, 0, 0) == 125);
	CHECK(code_without_result(0, 0, 0) == 125);
}

static void output_that_cannot_be_written_decides(void)
{
	struct resoluto_result result = { .ran = true };
	struct exit_facts facts = { .result = &result, .output_code = -EPIPE };

	CHECK(exit_code_of(&facts) == 141);
	facts.output_code = -ENOSPC;
	CHECK(exit_code_of(&facts) == 125);
	facts.output_code = -ECANCELED;
	facts.stop_signal = SIGINT;
	CHECK(exit_code_of(&facts) == 130);
	CHECK(code_without_result(-EIO, -EPIPE, 0) == 141);
}

int main(void)
{
	RUN(results_have_their_codes);
	RUN(no_result_is_misuse_or_failure);
	RUN(output_that_cannot_be_written_decides);
	return check_done();
}
