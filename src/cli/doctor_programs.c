/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/doctor.h"
#include "cli/facts.h"

/* With a thread for each processor, under emulation. */
static bool has_cpu_threads(const struct config *config)
{
	const char *accel = config_get(config, "RESOLUTO_LOCAL_ACCEL");
	const char *kernel = config_get(config, "RESOLUTO_LOCAL_KERNEL");
	const struct machine_row *row;

	return accel && strcmp(accel, "tcg") == 0 && kernel && kernel[0] &&
	       kernel_row(kernel, config_get(config, "RESOLUTO_LOCAL_MACHINE"), &row, NULL) == 0 &&
	       machine_has_cpu_threads(row);
}

void check_qemu(const struct config *config, struct finding *finding)
{
	CLEANUP(mem_free) char *path = NULL;
	char version[FACT_MAX];
	int r = fact_qemu(config, &path);

	if (r < 0) {
		text_addf(&finding->note, "not found: %s", strerror(-r));
		finding_fail(finding, CHECK_MISSING,
		             "apt-get install qemu-system-x86 (qemu-system-arm on arm64), or set "
		             "RESOLUTO_LOCAL_QEMU");
		return;
	}
	r = fact_program_version(path, version);
	if (r < 0) {
		text_addf(&finding->note, "%s does not run", path);
		finding_fail(finding, CHECK_MISSING, "try %s --version", path);
		return;
	}
	text_addf(&finding->note, "%s, version %s", path, version);
	if (fact_qemu_keeps_old_code(version) && has_cpu_threads(config))
		text_add(&finding->note,
		         ": a program that compiles while it runs (Java, .NET) may crash under "
		         "emulation before QEMU 8.1, unless it has one processor: --cpus 1");
}

void check_shim(const struct config *config, struct finding *finding)
{
	CLEANUP(mem_free) char *path = NULL;
	struct resoluto_err err = { 0 };

	if (config_find_helper(config, "resoluto-shim", &path, &err) == 0) {
		text_add(&finding->note, path);
		return;
	}
	text_add(&finding->note, "not found");
	finding_fail(finding, CHECK_MISSING, "%s", err.text);
}

/* Only runs with egress need it. */
void check_gateway(const struct config *config, struct finding *finding)
{
	CLEANUP(mem_free) char *path = NULL;
	struct resoluto_err err = { 0 };

	if (config_find_helper(config, "resoluto-gateway", &path, &err) == 0) {
		text_add(&finding->note, path);
		return;
	}
	text_add(&finding->note, "not found: runs with --egress are refused");
	finding_fail(finding, CHECK_ABSENT, "%s", err.text);
}

static void check_program(const char *name, const char *package, struct finding *finding)
{
	CLEANUP(mem_free) char *path = NULL;

	if (fact_find_program(name, &path) == 0) {
		text_add(&finding->note, path);
		return;
	}
	text_add(&finding->note, "not in PATH");
	finding_fail(finding, CHECK_ABSENT, "apt-get install %s", package);
}

void check_skopeo(const struct config *config, struct finding *finding)
{
	check_program("skopeo", "skopeo", finding);
}

void check_tar2sqfs(const struct config *config, struct finding *finding)
{
	check_program("tar2sqfs", "squashfs-tools-ng", finding);
}

void check_mkfs(const struct config *config, struct finding *finding)
{
	check_program("mkfs.ext4", "e2fsprogs", finding);
}
