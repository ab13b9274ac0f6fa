/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - the facade: stage -> run -> collect (run.h has the steps). */
#include "base/cleanup.h"
#include "base/clock.h"
#include "sandbox/run.h"

int sandbox_run(const struct resoluto_run_options *options, const struct sandbox_tuning *tuning,
                struct resoluto_result **ret_result, struct resoluto_err *err)
{
	CLEANUP(run_done)
	struct run run = {
		.tuning = tuning,
		.workspace_fd = -1,
		.output_fd = -1,
		.idle = IDLE_NONE,
		.start_ms = clock_mono_ms(),
	};
	CLEANUP(result_free) struct resoluto_result *unwanted = NULL;
	struct resoluto_err why = { 0 };
	int r = run_prepare(&run, options, err);

	if (!ret_result)
		ret_result = &unwanted;
	if (r < 0)
		return r;
	r = run_claim(&run, &why);
	if (r < 0) {
		(void) resoluto_fail(err, r, "%s", why.text);
		return run_refuse_claim(&run, r, ret_result, &why);
	}
	r = run_work(&run);
	if (r == 0 && run.outcome.has_left) {
		r = run_let_go(&run, err);
		if (r < 0)
			return r;
	} else if (r == 0 && run.options.keep_run) {
		(void) run_note_request(&run, NULL); /* without it attach knows less */
	}
	if (r == 0)
		r = run_finish(&run, ret_result);
	if (r < 0)
		return resoluto_fail(err, r, "make the result of run %s", run.id);
	return run.outcome.has_left ? 1 : 0;
}

int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err)
{
	const struct sandbox_tuning tuning = { .grace_ms = RESOLUTO_STOP_GRACE_MS };

	return sandbox_run(options, &tuning, ret_result, err);
}
