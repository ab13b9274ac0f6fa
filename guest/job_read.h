/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * job_read.h - the JSON of a job, without a tree: the guest starts with this, and under emulation code that runs for the
 * first time is what a start costs.  Pure.
 *
 * A value is a place to read from; .at is NULL where there is none.  What job_find_members() has passed over is valid JSON; of
 * members that nobody asked for that is all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"
#include "wire/json_scan.h"

/* Where the values of these names are in an object, which is over then.  -EBADMSG also if one is there twice. */
int job_find_members(struct json_scan *object, const char *const names[], size_t count,
                     struct json_scan ret_members[]);
bool job_is_true(struct json_scan at);
int64_t job_integer(struct json_scan at); /* 0: it is none */
/* An array of strings; `what` names it. */
int job_read_strings(struct json_scan at, const char *what, struct strv *ret,
                     struct resoluto_err *err);
/*
 * An object of variables, as "NAME=value".  -EBADMSG: it is none, or one stands there twice.  What is wrong with one of them goes to
 * ret_complaint, since the others may tell whose job it is.
 */
int job_read_variables(struct json_scan at, struct strv *pairs, struct resoluto_err *ret_complaint);
/* Of "NAME=value"; NULL: there is none. */
const char *job_value(const struct strv *pairs, const char *name);
