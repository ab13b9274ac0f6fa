/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * request.h - what was asked for when a run was launched, for those who come back to it: an object
 * "launch/<id>/request.json", out of the reach of the guest and of whoever reads its bytes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/conduit.h"
#include "resoluto/runtime.h"
#include "sandbox/evidence.h"

enum { REQUEST_MAX = 1024 * 1024 }; /* bytes */

struct request {
	char *program;                            /* argv[0] */
	char *image_ref, *image_digest;           /* "" unknown */
	struct strv outputs;                      /* patterns */
	char host_boot_id[EVIDENCE_BOOT_ID_SIZE]; /* of the host at the launch; "" unknown */
	uint64_t launched_ms;                     /* since the epoch; 0 unknown */
	uint64_t dead_after_ms;                   /* 0 unknown */
	uint64_t queue_ms, stage_ms;
	struct resoluto_quotas quotas; /* all limits; 0 unknown */
};

void request_done(struct request *request); /* a cleanup function */

/* Pure.  -ENOMEM, -E2BIG. */
int request_write(struct buf *out, const struct request *request);
/* Pure.  -EBADMSG unless it is one of this version. */
int request_parse(const char *json, size_t len, struct request *ret_request,
                  struct resoluto_err *err);

/* is_lasting: a power cut will not lose it; that takes flushes, for which the disk may be busy. */
int request_put(struct resoluto_conduit *records, const char *id, const struct request *request,
                bool is_lasting, struct resoluto_err *err);
/* -ENOENT: nothing was noted of this run. */
int request_get(struct resoluto_conduit *records, const char *id, struct request *ret_request,
                struct resoluto_err *err);
