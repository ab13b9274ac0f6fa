/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* event.h - one event of a run, as a reader sees it (seed 000, SpanEvent; spec/event.schema.json). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One event of the run (spec/event.schema.json).  Strings are UTF-8, "" when absent. */
struct resoluto_event {
	const char *run_id, *span_id, *parent_span_id, *kind, *name, *event, *status;
	double ts;        /* seconds since the epoch, by the guest's clock */
	const char *data; /* a JSON object as text; "{}" when absent */
	/* Set for a line of a log: its exact bytes, with '\n' at the end where the program wrote one. */
	const char *bytes;
	size_t len;
	bool is_stderr;
	bool is_output; /* a line of the program itself, not of canary, staging or hooks */
	uint64_t seq;   /* order of output over both streams, from 1; 0 = none */
};

#ifdef __cplusplus
}
#endif
