/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sandbox/verdict.h"

enum { EXIT_NEVER_RAN = 1 };

/* The sandbox ended, or was ended, before its runner gave a verdict. */
static int code_without_verdict(enum reason reason, bool ran, int stop_signo)
{
	if (reason == REASON_DEADLINE)
		return RESOLUTO_EXIT_DEADLINE;
	if (reason == REASON_SIGNAL && stop_signo > 0)
		return RESOLUTO_EXIT_SIGNAL + stop_signo;
	return ran ? RESOLUTO_EXIT_SANDBOX : EXIT_NEVER_RAN;
}

static int code_of_node(const struct node_result *node, bool ran)
{
	if (!ran)
		return node->success ? 0 : EXIT_NEVER_RAN;
	if (node->has_exit_code)
		return node->exit_code;
	return node->success ? 0 : RESOLUTO_EXIT_SANDBOX;
}

/* Mostly these come before the start; where they do not, nothing of what ran is believed. */
static const char *sentence_of(enum reason reason, bool ran)
{
	if (ran && reason == REASON_OWN_KERNEL_UNPROVEN)
		return "the sandbox could not prove that it has a kernel of its own: its result "
		       "counts for nothing";
	if (ran && reason == REASON_SHARED_KERNEL)
		return "the sandbox runs on the kernel of the host: its result counts for nothing";
	return reason_sentence(reason);
}

static const char *sentence_if_empty(const char *detail, enum reason reason, bool ran)
{
	return detail && detail[0] ? detail : sentence_of(reason, ran);
}

/* The original's runner, over a line that is too long for it: the program's end is not known. */
static bool broke_off(const struct node_result *node, bool ran)
{
	return ran && !node->success && !node->has_exit_code;
}

/* A runner of others says why in free words; then the exit code has to speak for itself. */
static enum reason reason_of_node(const struct node_result *node, bool ran)
{
	enum reason reason = reason_from_name(node->reason ? node->reason : "");

	if (broke_off(node, ran) && (reason == REASON_NONE || reason == REASON_COUNT))
		return REASON_NO_RESULT;
	/* The original's runner: the code of the setup hook, and no program. */
	if (!ran && !node->success && node->has_exit_code && reason == REASON_NONE)
		return REASON_SETUP_FAILED;
	if (reason != REASON_COUNT && (reason != REASON_NONE || ran || node->success))
		return reason;
	return ran ? REASON_NONE : REASON_NO_RESULT;
}

static const char *detail_of_node(const struct node_result *node, enum reason reason, bool ran)
{
	if (node->detail && node->detail[0])
		return node->detail;
	if (node->reason && reason_from_name(node->reason) == REASON_COUNT)
		return node->reason;
	if (reason == REASON_NO_RESULT && ran)
		return "the runner of the sandbox broke off: how the program ended is not known";
	return sentence_of(reason, ran);
}

static struct verdict judge_node(const struct verdict_inputs *inputs)
{
	const struct node_result *node = inputs->node;
	bool ran = (node->ran && !inputs->has_only_setup) || inputs->has_started;
	enum reason reason = reason_of_node(node, ran);
	struct verdict verdict = {
		.ran = ran,
		.exit_code = code_of_node(node, ran),
		.signal = ran ? node->signal : 0,
		.output_is_complete = node->output_is_complete,
		.reason = reason,
		.disposition = inputs->outcome->disposition,
		.detail = detail_of_node(node, reason, ran),
	};

	/* The program was content, its run was not (outputs-failed ...): that is no success. */
	if (verdict.exit_code == 0 && (!node->success || reason != REASON_NONE))
		verdict.exit_code = ran ? RESOLUTO_EXIT_SANDBOX : EXIT_NEVER_RAN;
	return verdict;
}

/* The runtime's word for an end without a verdict; what is not on our list is told as a detail. */
static struct verdict judge_end(const struct verdict_inputs *inputs)
{
	const struct resoluto_outcome *outcome = inputs->outcome;
	enum reason reason = reason_from_name(outcome->reason);
	bool ran = inputs->has_started;
	const char *detail = outcome->detail;

	if (reason == REASON_COUNT) {
		reason = REASON_EXTERNAL;
		detail = outcome->reason;
	}
	return (struct verdict){
		.ran = ran,
		.exit_code = code_without_verdict(reason, ran, inputs->stop_signo),
		.reason = reason,
		.disposition = outcome->disposition,
		.detail = sentence_if_empty(detail, reason, ran),
	};
}

struct verdict verdict_judge(const struct verdict_inputs *inputs)
{
	const struct resoluto_outcome *outcome = inputs->outcome;
	struct verdict verdict;

	if (!inputs->node)
		return judge_end(inputs);
	verdict = judge_node(inputs);
	if (outcome->disposition == RESOLUTO_COMPLETED)
		return verdict;
	/* Stopped, yet the runner could still report (a deadline): the stop is what counts. */
	verdict.reason = reason_from_name(outcome->reason);
	if (verdict.reason == REASON_COUNT)
		verdict.reason = REASON_EXTERNAL;
	verdict.exit_code = code_without_verdict(verdict.reason, verdict.ran, inputs->stop_signo);
	verdict.detail = sentence_of(verdict.reason, verdict.ran);
	return verdict;
}

void verdict_spoil(struct verdict *verdict, enum reason reason, const char *detail)
{
	if (verdict->exit_code == 0)
		verdict->exit_code = verdict->ran ? RESOLUTO_EXIT_SANDBOX : EXIT_NEVER_RAN;
	verdict->reason = reason;
	verdict->detail = sentence_if_empty(detail, reason, verdict->ran);
}

struct verdict verdict_refused(enum resoluto_disposition disposition, enum reason reason,
                               int stop_signo, const char *detail)
{
	return (struct verdict){
		.exit_code = code_without_verdict(reason, false, stop_signo),
		.reason = reason,
		.disposition = disposition,
		.detail = sentence_if_empty(detail, reason, false),
	};
}
