/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_report.h - what a run was refused, and what one that learns asked for, in words.  Names come out of
 * the sandbox: hostile, written with nothing but printable ASCII.
 */

#include <stdio.h>

#include "cli/text.h"

enum { EGRESS_REPORT_MAX = 50 }; /* names that are told */

/*
 * rows: the result's `egress`, NULL for none.  Each name once: what was refused with the option that would allow it, and what
 * was allowed but could not be reached with what stood in the way.
 */
void egress_report_refused(struct text *out, const char *rows);
/* The names as --egress-file takes them; nothing if no row is of a run that learns. */
void egress_report_learned(struct text *out, const char *rows);
/* Both, to a stream. */
void egress_report_print(FILE *out, const char *rows);
