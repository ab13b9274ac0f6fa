/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/exit_code.h"

enum { CODE_MAX = 255 };

/* Reasons that alone decide, whatever else the result says (names of src/wire/reason.h). */
static const struct {
	const char *reason;
	int code;
} by_reason[] = {
	{ "deadline", RESOLUTO_EXIT_DEADLINE },
	{ "not-found", RESOLUTO_EXIT_NOT_FOUND },
	{ "not-executable", RESOLUTO_EXIT_NOT_EXECUTABLE },
	{ "arguments-too-large", RESOLUTO_EXIT_NOT_EXECUTABLE },
};

static int code_by_reason(const char *reason)
{
	for (size_t i = 0; i < sizeof(by_reason) / sizeof(by_reason[0]); i++) {
		if (strcmp(by_reason[i].reason, reason) == 0)
			return by_reason[i].code;
	}
	return -1;
}

/* We were asked to stop: end as the signal would have ended us. */
static int code_of_stop(int stop_signal)
{
	return stop_signal > 0 ? RESOLUTO_EXIT_SIGNAL + stop_signal : RESOLUTO_EXIT_SANDBOX;
}

static int code_of_program(const struct resoluto_result *result)
{
	if (result->signal > 0 && result->signal < 128)
		return RESOLUTO_EXIT_SIGNAL + result->signal;
	if (result->exit_code < 0 || result->exit_code > CODE_MAX)
		return RESOLUTO_EXIT_SANDBOX;
	return result->exit_code;
}

static int code_of_result(const struct resoluto_result *result, int stop_signal)
{
	const char *reason = result->reason ? result->reason : "";
	int code = code_by_reason(reason);

	if (code >= 0)
		return code;
	if (result->disposition == RESOLUTO_STOPPED && strcmp(reason, "signal") == 0)
		return code_of_stop(stop_signal);
	if (result->disposition != RESOLUTO_COMPLETED || !result->ran)
		return RESOLUTO_EXIT_SANDBOX;
	code = code_of_program(result);
	/* The program is content but its run is not (outputs-failed ...): that is no success. */
	return code == 0 && reason[0] ? RESOLUTO_EXIT_SANDBOX : code;
}

int exit_code_of(const struct exit_facts *facts)
{
	if (facts->output_code == -EPIPE)
		return RESOLUTO_EXIT_SIGNAL + SIGPIPE;
	if (facts->output_code == -ECANCELED)
		return code_of_stop(facts->stop_signal);
	if (facts->output_code < 0)
		return RESOLUTO_EXIT_SANDBOX;
	if (facts->run_code == -ECANCELED)
		return code_of_stop(facts->stop_signal);
	if (facts->run_code == -EINVAL)
		return RESOLUTO_EXIT_MISUSE;
	if (facts->run_code < 0 || !facts->result)
		return RESOLUTO_EXIT_SANDBOX;
	return code_of_result(facts->result, facts->stop_signal);
}
