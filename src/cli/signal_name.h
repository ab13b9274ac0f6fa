/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* signal_name.h - "TERM", "SIGTERM", "15": the number of a signal.  Pure. */

#include "resoluto/err.h"

/* -EINVAL: there is no such signal. */
int signal_from_name(const char *name, int *ret_signo, struct resoluto_err *err);
