/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "image/platform.h"

static const struct {
	const char *machine, *arch, *variant;
} machines[] = {
	{ "x86_64", "amd64", "" },    { "aarch64", "arm64", "" },       { "armv7l", "arm", "v7" },
	{ "i686", "386", "" },        { "ppc64le", "ppc64le", "" },     { "s390x", "s390x", "" },
	{ "riscv64", "riscv64", "" }, { "loongarch64", "loong64", "" },
};

static bool is_word(const char *text, size_t len, size_t cap)
{
	return len > 0 && len < cap && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") >= len;
}

static int of_machine(const char *machine, struct platform *ret_platform, struct resoluto_err *err)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (strcmp(machines[i].machine, machine) != 0)
			continue;
		snprintf(ret_platform->arch, sizeof(ret_platform->arch), "%s", machines[i].arch);
		snprintf(ret_platform->variant, sizeof(ret_platform->variant), "%s",
		         machines[i].variant);
		return 0;
	}
	return resoluto_fail(err, -EINVAL,
	                     "no OCI platform is known for %.60s; say one: linux/ARCH", machine);
}

int platform_parse(const char *text, const char *machine, struct platform *ret_platform,
                   struct resoluto_err *err)
{
	const char *arch, *slash;
	size_t n;

	if (!text)
		return of_machine(machine, ret_platform, err);
	if (strncmp(text, "linux/", 6) != 0)
		goto bad;
	arch = text + 6;
	slash = strchr(arch, '/');
	n = slash ? (size_t) (slash - arch) : strlen(arch);
	if (!is_word(arch, n, sizeof(ret_platform->arch)))
		goto bad;
	if (slash && !is_word(slash + 1, strlen(slash + 1), sizeof(ret_platform->variant)))
		goto bad;
	snprintf(ret_platform->arch, sizeof(ret_platform->arch), "%.*s", (int) n, arch);
	snprintf(ret_platform->variant, sizeof(ret_platform->variant), "%s",
	         slash ? slash + 1 : "");
	return 0;
bad:
	return resoluto_fail(err, -EINVAL,
	                     "platform '%.100s' is not linux/ARCH or linux/ARCH/VARIANT", text);
}
