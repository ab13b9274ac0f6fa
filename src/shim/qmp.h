/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * qmp.h - what QEMU says on its monitor.  Pure: bytes in, the end told.
 *
 * QEMU may have been taken over by its guest: lines are bounded, what is not understood is
 * skipped, and nothing here can do more than choose among failures of the verdict.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "shim/verdict.h"

enum { QMP_LINE_MAX = 64 * 1024 };

/* Only with the first does QEMU tell of events, and only with the second does the machine go: one that ends in its first
 * millisecond is heard, too. */
#define QMP_HELLO \
	"{\"execute\":\"qmp_capabilities\"}\n" \
	"{\"execute\":\"cont\"}\n"

struct qmp {
	struct buf line;  /* BUF_INIT(QMP_LINE_MAX) */
	bool is_skipping; /* a line over the bound, up to its end */
	enum qemu_end end;
	bool has_stopped; /* the machine stands still, which nobody asked for */
};

#define QMP_INIT ((struct qmp){ .line = BUF_INIT(QMP_LINE_MAX) })

void qmp_feed(struct qmp *qmp, const char *bytes, size_t len);
void qmp_done(struct qmp *qmp);
