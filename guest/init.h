/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * init.h - what PID 1 of the microVM does before it knows its job, and at the very end.
 *
 * Nothing here reads what differs between two runs (boot id, random bytes, the time): a template of
 * this machine may be saved afterwards and restored many times.
 */

#include "resoluto/err.h"

/* proc, sysfs, devtmpfs and cgroup2 of the initramfs.  1: they were there, since /early was. */
int init_mount_early(struct resoluto_err *err);

/* The files of /modules, in the order of their names, which is that of their needs.  No /modules: all is built
 * into the kernel, which is fine. */
int init_load_modules(struct resoluto_err *err);

/* Nobody may read or trace PID 1; bytes written to a closed pipe are an error, not a death. */
int init_harden_self(struct resoluto_err *err);

/* Switch the machine off, or reset it where it has no switch: QEMU ends either way (-no-reboot).  Comes back
 * only if the kernel refuses. */
void init_power_off(void);
