/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * doctor.h - one check of `doctor`: a look at this machine that says what it found and, where it
 * does not suffice, what to do.
 *
 * To add one: a function of type check_fn in doctor_<area>.c and a row in doctor_checks.c.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"
#include "cli/text.h"
#include "resoluto/err.h"

enum check_status {
	CHECK_OK,
	CHECK_MISSING, /* no run can work without it */
	CHECK_ABSENT,  /* something is not there that not every run needs */
};

struct finding {
	enum check_status status;
	struct text note;   /* what is there, in a few words */
	struct text remedy; /* what to do; empty for CHECK_OK */
};

/* Look at the machine and fill the finding, which starts as CHECK_OK with empty texts. */
typedef void check_fn(const struct config *config, struct finding *finding);
/* Do what is safe to make the check pass. */
typedef int fix_fn(const struct config *config, struct resoluto_err *err);

struct check {
	const char *id;    /* for --json; NULL behind the last one */
	const char *label; /* for people */
	check_fn *look;
	fix_fn *fix; /* NULL: nothing that a program should do by itself */
};

extern const struct check doctor_checks[];

/* Set status and remedy. */
void finding_fail(struct finding *finding, enum check_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void finding_done(struct finding *finding); /* a cleanup function */

/* doctor_programs.c */
check_fn check_qemu, check_shim, check_gateway, check_skopeo, check_tar2sqfs, check_mkfs;
/* doctor_kernel.c: the kernel of this machine and that of the sandboxes */
check_fn check_accel, check_kvm, check_kernel, check_initrd, check_landlock, check_seccomp,
	check_openat2;
/* doctor_places.c */
check_fn check_configuration, check_keys, check_runtime, check_image, check_state_dir,
	check_cache_dir, check_space, check_memory, check_uids, check_leftovers, check_later;
fix_fn fix_state_dir, fix_cache_dir, fix_leftovers;
