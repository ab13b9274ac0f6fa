/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/doctor.h"
#include "cli/facts.h"

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
