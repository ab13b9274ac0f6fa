/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* host.h - what this host is: its memory, its boot, its KVM. */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"
#include "runtime/microvm/state.h"

struct host_memory {
	uint64_t total, available; /* bytes */
};

int host_memory(struct host_memory *ret_memory, struct resoluto_err *err);
/* Pure: the text of /proc/meminfo. */
int host_memory_parse(const char *text, struct host_memory *ret_memory);
int host_boot_id(char ret_id[BOOT_ID_SIZE], struct resoluto_err *err);

/* What became of an attempt to use /dev/kvm. */
enum kvm_state {
	KVM_USABLE,
	KVM_CLOSED,      /* it cannot be opened */
	KVM_OTHER,       /* it is something else, or a KVM of another interface */
	KVM_ROOTS_ALONE, /* root may open it, but QEMU does not run as root */
};

struct host_kvm {
	enum kvm_state state;
	int code;     /* of KVM_CLOSED: negative errno */
	uint32_t gid; /* of KVM_USABLE: the group that QEMU needs; 0: none */
};

/* Whether a guest boots on it only a boot tells. */
struct host_kvm host_kvm(void);
