/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/quantity.h"
#include "cli/doctor.h"
#include "cli/facts.h"
#include "runtime/microvm/host.h"
#include "runtime/microvm/images.h"

#define PROVISION "run scripts/local-backend-up.sh of the source tree"

enum {
	HEAD_SIZE = 4096, /* bytes of a file that tell its format */
	AMOUNT_MAX = 32,  /* bytes of "12.0 MiB" */
};

#define KERNEL_BYTES_MIN (2ull << 20)
#define INITRD_BYTES_MIN (64ull << 10)

void check_accel(const struct config *config, struct finding *finding)
{
	const char *accel = config_get(config, "RESOLUTO_LOCAL_ACCEL");

	if (accel && strcmp(accel, "kvm") == 0) {
		text_add(&finding->note, "kvm");
	} else if (accel && strcmp(accel, "tcg") == 0) {
		text_add(&finding->note,
		         "tcg: emulation; sandboxes have a kernel of their own, but the "
		         "emulator is not a hardened boundary");
	} else {
		text_addf(&finding->note, accel ? "'%s' is neither kvm nor tcg" : "not recorded",
		          accel);
		finding_fail(finding, CHECK_MISSING,
		             PROVISION ": it boots a probe and records which works");
	}
}

#define SWITCH_ON "turn on virtualization on this machine, or "

/* Where kvm was recorded nothing runs without it; where tcg was, nothing needs it. */
void check_kvm(const struct config *config, struct finding *finding)
{
	const char *accel = config_get(config, "RESOLUTO_LOCAL_ACCEL");
	const bool is_needed = accel && strcmp(accel, "kvm") == 0;
	const enum check_status status = is_needed ? CHECK_MISSING : CHECK_ABSENT;
	const struct host_kvm kvm = host_kvm();

	if (kvm.state == KVM_USABLE) {
		text_add(&finding->note,
		         "/dev/kvm opens; whether guests boot on it only the probe boot of "
		         "provisioning tells");
		return;
	}
	if (kvm.state == KVM_ROOTS_ALONE) {
		text_add(&finding->note, "/dev/kvm is root's alone, but QEMU does not run as root");
		finding_fail(finding, status, "chgrp kvm /dev/kvm && chmod 660 /dev/kvm");
		return;
	}
	text_addf(&finding->note, "/dev/kvm: %s",
	          kvm.state == KVM_CLOSED ? strerror(-kvm.code) : "another interface");
	if (kvm.state == KVM_CLOSED && kvm.code == -EACCES)
		finding_fail(finding, status, "join the group kvm, then " PROVISION);
	else if (is_needed)
		finding_fail(finding, status, SWITCH_ON PROVISION ": it records what works");
	else
		finding_fail(finding, status, SWITCH_ON "stay with emulation (tcg)");
}

static void fail_file(struct finding *finding, const char *name, const char *what)
{
	text_addf(&finding->note, "%s", what);
	finding_fail(finding, CHECK_MISSING, PROVISION ", or set %s", name);
}

/* A file named by a variable: there, readable, of a plausible size and with the bytes it must
 * begin with. */
static const char *check_file(const struct config *config, const char *name, uint64_t bytes_min,
                              const char *(*format_of)(const void *bytes, size_t len),
                              struct finding *finding)
{
	const char *path = config_get(config, name), *format;
	CLEANUP(fd_close) int fd = -1;
	char head[HEAD_SIZE], amount[AMOUNT_MAX];
	struct stat st;
	ssize_t n;

	if (!path || !path[0]) {
		fail_file(finding, name, "not configured");
		return NULL;
	}
	text_addf(&finding->note, "%s, ", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd < 0 || fstat(fd, &st) < 0 ? -1 : read_up_to(fd, head, sizeof(head));
	format = n < 0 ? NULL : format_of(head, (size_t) n);
	if (n < 0) {
		fail_file(finding, name, strerror(errno));
		return NULL;
	}
	quantity_format_bytes((uint64_t) st.st_size, amount, sizeof(amount));
	text_addf(&finding->note, "%s", amount);
	if (!format || (uint64_t) st.st_size < bytes_min) {
		fail_file(finding, name,
		          format ? ": too small, cut off?" : ": not of a known format");
		return NULL;
	}
	text_addf(&finding->note, ", %s", format);
	return path;
}

/* A kernel of one machine does not boot on another. */
static void check_machine(const struct config *config, const char *path, struct finding *finding)
{
	const char *name = config_get(config, "RESOLUTO_LOCAL_MACHINE");
	const struct machine_row *row, *beside;
	struct resoluto_err err = { 0 };

	if (kernel_row(path, name, &row, &err) < 0) {
		text_addf(&finding->note, ": %s", err.text);
		finding_fail(finding, CHECK_MISSING, PROVISION ", or set RESOLUTO_LOCAL_MACHINE");
	} else if (kernel_row(path, NULL, &beside, NULL) == 0 &&
	           machine_leaves_by_reset(row) != machine_leaves_by_reset(beside)) {
		text_addf(&finding->note,
		          ": it is for the machine %s, and "
		          "RESOLUTO_LOCAL_MACHINE=%s",
		          machine_name(beside), machine_name(row));
		finding_fail(finding, CHECK_MISSING, PROVISION ", or set RESOLUTO_LOCAL_MACHINE=%s",
		             machine_name(beside));
	}
}

void check_kernel(const struct config *config, struct finding *finding)
{
	const char *path = check_file(config, "RESOLUTO_LOCAL_KERNEL", KERNEL_BYTES_MIN,
	                              fact_kernel_format, finding);
	char version[FACT_MAX], name[KERNEL_NAME_MAX];

	if (!path)
		return;
	if (fact_kernel_version(path, version) == 0)
		text_addf(&finding->note, ", Linux %s", version);
	fact_kernel_name(config, name);
	if (name[0])
		text_addf(&finding->note, ", %s", name);
	if (fact_kernel_sum(path) == -EBADMSG)
		fail_file(finding, "RESOLUTO_LOCAL_KERNEL",
		          ": not what was put there, as SHA256SUMS beside it says");
	else
		check_machine(config, path, finding);
}

void check_initrd(const struct config *config, struct finding *finding)
{
	static const char name[] = "RESOLUTO_LOCAL_INITRD";
	const char *path = check_file(config, name, INITRD_BYTES_MIN, fact_initrd_format, finding);
	CLEANUP(fd_close) int fd = -1;

	if (path && image_open(path, IMAGE_INITRD, false, &fd, NULL) < 0)
		fail_file(finding, name, ": it does not end as an archive does, cut off?");
}

void check_landlock(const struct config *config, struct finding *finding)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
	                       LANDLOCK_CREATE_RULESET_VERSION);

	if (version > 0) {
		text_addf(&finding->note, "version %ld", version);
		return;
	}
	text_add(&finding->note, strerror(errno));
	finding_fail(finding, CHECK_MISSING,
	             "boot a kernel with landlock (5.13 or later) and lsm=landlock,... on its "
	             "command line");
}

void check_seccomp(const struct config *config, struct finding *finding)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) {
		text_add(&finding->note, "filters that kill");
		return;
	}
	text_add(&finding->note, strerror(errno));
	finding_fail(finding, CHECK_MISSING, "boot a kernel with CONFIG_SECCOMP_FILTER");
}

void check_openat2(const struct config *config, struct finding *finding)
{
	CLEANUP(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_close) int fd = open_beneath(root, "proc", O_PATH | O_DIRECTORY, 0);

	if (fd >= 0) {
		text_add(&finding->note, "opens beneath a directory");
		return;
	}
	text_add(&finding->note, strerror(-fd));
	finding_fail(finding, CHECK_MISSING, "boot Linux 5.6 or later");
}
