/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* verdict.h - how the run ended, from what the kernel and the steps said.  Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "guest/canary.h"
#include "guest/program.h"
#include "wire/reason.h"
#include "wire/result.h"

struct verdict {
	enum reason reason;
	char detail[PROGRAM_DETAIL]; /* for people; "" for none */
	bool ran;
	bool has_exit_code;
	int exit_code, signal;
	bool is_complete; /* all output was read */
};

#define VERDICT_INIT ((struct verdict){ .is_complete = true })

/* The first reason stays: what comes later is its consequence. */
void verdict_set(struct verdict *verdict, enum reason reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* From a wait status: exit code, or 128 + signal. */
void verdict_exit(struct verdict *verdict, int wait_status);
/* What the kernel says about a program that did not end well. */
void verdict_blame(struct verdict *verdict, bool was_stalled, uint64_t oom_kills, bool is_full);
bool verdict_is_success(const struct verdict *verdict);

/* The `canary` member of result.json; NULL when out of memory.  json_decref() it. */
json_t *verdict_canary_json(const struct canary *canary);
