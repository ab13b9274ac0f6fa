/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * shim_config.h - what the caller tells the shim: descriptors at fixed numbers, and a JSON
 * object in a sealed memory file.  Nothing is on its command line or in its environment.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"
#include "resoluto/runtime.h"
#include "runtime/microvm/cmdline.h"
#include "runtime/microvm/state.h"

enum shim_fd {
	SHIM_FD_CALLER = 3, /* frames, both ways */
	SHIM_FD_CONFIG,     /* the JSON */
	SHIM_FD_JOB,        /* the JOB message */
	SHIM_FD_RUN,        /* the run directory */
	SHIM_FD_PREFIX,     /* the conduit's directory of this run */
	SHIM_FD_LOCK,       /* of the run: held only */
	SHIM_FD_SLOT,       /* held only */
	SHIM_FD_UID,        /* the lock of the user, held only; without one the slot once more */
	SHIM_FD_DOOR,       /* door.h */
	SHIM_FD_KERNEL,
	SHIM_FD_INITRD,
	SHIM_FD_ROOTFS,
	SHIM_FD_INBOX,
	SHIM_FD_SCRATCH, /* only with has_scratch */
	SHIM_FD_NET,     /* only with has_net: to the gateway, for QEMU */
	SHIM_FD_END,
};

enum {
	SHIM_CONFIG_MAX = 64 * 1024,   /* bytes of the JSON */
	SHIM_START_MIN_MS = 30 * 1000, /* to start QEMU, where less is allowed for the boot */
};

struct shim_config {
	char run_id[RESOLUTO_ID_MAX + 1];
	char machine[32]; /* name of a machine_row */
	enum accel accel;
	char qemu[1024]; /* absolute path */
	uint32_t memory_mib, cpus, tsc_khz;
	bool has_scratch, has_net;
	bool drops_objects; /* of the launch spec */
	uint64_t scratch_bytes;
	uint64_t deadline_ms;   /* from now; 0: none */
	uint64_t dead_after_ms; /* once it is detached; 0: none */
	uint64_t boot_limit_ms; /* from QEMU's start to the runner's HELLO */
	char host_boot_id[BOOT_ID_SIZE];
	uint32_t uid;                  /* to become, user and group; 0: stay who you are */
	uint32_t kvm_gid;              /* group that may open /dev/kvm; 0: none needed */
	struct resoluto_quotas quotas; /* members and ratio are not the shim's */
};

/* How long the caller waits for the shim's first word, by when QEMU was started and nothing booted: a short
 * limit of the boot must not cut that off, and a machine that is given long may be slow here, too. */
uint64_t shim_start_limit_ms(uint64_t boot_limit_ms);

int shim_config_write(struct buf *out, const struct shim_config *config);
int shim_config_parse(const char *json, size_t len, struct shim_config *ret_config,
                      struct resoluto_err *err);
