/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cmdline.h - the QEMU argument list and the kernel command line of a run.  Pure.
 *
 * What depends on the machine stands in one table of rows in cmdline.c, each argument with its
 * reason; tests/golden/qemu/ holds what comes out.  Only numbers, the run id and words of the
 * table get into the arguments: every file and socket is a descriptor, so that no path with
 * a comma can become an option.  Nothing of the job is in the kernel command line: the guest
 * and /proc on the host could read it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum accel {
	ACCEL_TCG,
	ACCEL_KVM,
	ACCEL_COUNT, /* not a value */
};

enum {
	CMDLINE_MEMORY_MIN_MIB = 128, /* below that kernel, initramfs and runner do not fit */
	CMDLINE_CPUS_MAX = 64,
	CMDLINE_PORTS = 4, /* virtio-serial ports: none, control, conduit, net */
};

const char *accel_name(enum accel accel);
enum accel accel_from_name(const char *name); /* ACCEL_COUNT: neither */

struct machine_row;

/* By its name, as in RESOLUTO_LOCAL_MACHINE: architecture and whose kernel it is, "x86_64-built" (our own),
 * "aarch64-built", "x86_64-debian", "x86_64-ubuntu", "aarch64-debian".  NULL: no such row. */
const struct machine_row *machine_find(const char *name);
/* The row for the architecture this was compiled for; NULL: none. */
const struct machine_row *machine_default(void);
/* In the order of the table; NULL behind the last. */
const struct machine_row *machine_at(unsigned index);
const char *machine_name(const struct machine_row *row);
const char *machine_kernel_kind(const struct machine_row *row); /* "built", "debian", "ubuntu" */
const char *machine_qemu(const struct machine_row *row);        /* program looked up in PATH */
/* It has no switch: who is done resets it. */
bool machine_leaves_by_reset(const struct machine_row *row);
/* Under emulation each of its processors is a thread of QEMU's, not all of them one. */
bool machine_has_cpu_threads(const struct machine_row *row);
/* Whether the row's kernel wants the host's TSC rate under this acceleration. */
bool machine_needs_tsc(const struct machine_row *row, enum accel accel);

/* Numbers of the descriptors QEMU inherits; scratch and net are -1 if there is none. */
struct cmdline_fds {
	int kernel, initrd, rootfs, inbox, scratch;
	int qmp, console, control, conduit;
	int net; /* to the gateway: only with egress */
};

struct cmdline_input {
	const struct machine_row *row;
	enum accel accel;
	const char *run_id; /* key_is_run_id() */
	uint32_t memory_mib;
	uint32_t cpus;
	uint32_t tsc_khz; /* 0 unless machine_needs_tsc() */
	struct cmdline_fds fds;
};

/* The whole argument list, qemu first.  0 or -ENOMEM. */
int cmdline_build(const struct cmdline_input *input, const char *qemu, struct strv *ret_argv);

/* What a spec asks for, checked and in QEMU's units. */
struct machine_size {
	uint32_t memory_mib;
	uint32_t cpus;
};

/* Defaults filled in, CPUs rounded up; -EINVAL with what to do when it is less than a kernel needs or
 * more than host_memory_bytes. */
int machine_size_from(uint64_t memory_bytes, uint32_t cpu_milli, uint64_t host_memory_bytes,
                      struct machine_size *ret_size, struct resoluto_err *err);
