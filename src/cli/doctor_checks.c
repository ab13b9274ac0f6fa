/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor.h"

/* The first is what the others ask. */
const struct check doctor_checks[] = {
	{ "configuration", "configuration", check_configuration, NULL },
	{ "keys", "keys of the configuration", check_keys, NULL },
	{ "runtime", "runtime", check_runtime, NULL },
	{ "qemu", "QEMU", check_qemu, NULL },
	{ "accel", "acceleration", check_accel, NULL },
	{ "kvm", "KVM", check_kvm, NULL },
	{ "kernel", "kernel of the sandboxes", check_kernel, NULL },
	{ "initrd", "initramfs of the sandboxes", check_initrd, NULL },
	{ "shim", "resoluto-shim", check_shim, NULL },
	{ "gateway", "resoluto-gateway", check_gateway, NULL },
	{ "image", "default image", check_image, NULL },
	{ "skopeo", "skopeo, to fetch images", check_skopeo, NULL },
	{ "tar2sqfs", "tar2sqfs, to flatten images", check_tar2sqfs, NULL },
	{ "mkfs", "mkfs.ext4, for run --disk", check_mkfs, NULL },
	{ "state", "state directory", check_state_dir, fix_state_dir },
	{ "cache", "cache directory", check_cache_dir, fix_cache_dir },
	{ "leftovers", "runs", check_leftovers, fix_leftovers },
	{ "space", "disk space", check_space, NULL },
	{ "memory", "memory", check_memory, NULL },
	{ "uids", "user ids for sandboxes", check_uids, NULL },
	{ "landlock", "landlock", check_landlock, NULL },
	{ "seccomp", "seccomp", check_seccomp, NULL },
	{ "openat2", "openat2", check_openat2, NULL },
	{ "kata", "Kata", check_later, NULL },
	{ "k8s", "Kubernetes", check_later, NULL },
	{ NULL, NULL, NULL, NULL },
};

void finding_fail(struct finding *finding, enum check_status status, const char *fmt, ...)
{
	char remedy[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(remedy, sizeof(remedy), fmt, ap);
	va_end(ap);
	finding->status = status;
	text_add(&finding->remedy, remedy);
}

void finding_done(struct finding *finding)
{
	text_done(&finding->note);
	text_done(&finding->remedy);
}
