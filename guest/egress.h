/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress.h - names and connections for the program, as the runner sees it: a child that serves them
 * (egress_service.h), and the rows of decisions that come from it and become events.
 *
 * That it died, or the gateway did, is no failure of the run: names are SERVFAIL from then on.
 */

#include "egress/policy.h"
#include "guest/job.h"
#include "guest/report.h"

enum {
	EGRESS_UID = 2000000053, /* of the child; no user of an image is likely to have it */
	EGRESS_STAND_IN_UID,     /* of who answers SERVFAIL when it is gone */
	EGRESS_START_MS = 60 * 1000,
	EGRESS_EVENTS_MAX = 10000, /* that become events */
};

struct egress {
	int rows_fd; /* owned; -1: no egress, or it has ended */
	uint64_t rows;
	bool is_lost;                   /* the process that serves has ended */
	struct report *report;          /* borrowed: where events go */
	const struct report_span *span; /* beneath this span */
};

#define EGRESS_OFF ((struct egress){ .rows_fd = -1 })

/* Before the root is entered, since the port is a file outside of it.  Returns when names are answered. */
int egress_start(struct egress *egress, const struct job *job, struct resoluto_err *err);
/* Take in the rows that are there, without waiting, as events of kind `egress`.  A failure is one of the
 * report. */
int egress_take_rows(struct egress *egress);
void egress_done(struct egress *egress);
