/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "cli/environment.h"
#include "wire/contract.h"

const struct variable environment_table[] = {
	{ "RESOLUTO_LOCAL_ENV",
	  "configuration file to read instead of the ones under FILES; if it is "
	  "missing that is an error" },
	{ "RESOLUTO_STATE_DIR",
	  "directory of the runs (default for root /var/lib/resoluto-sandbox, "
	  "else $XDG_STATE_HOME/resoluto-sandbox)" },
	{ "RESOLUTO_CACHE_DIR",
	  "directory of kernels and images (default for root "
	  "/var/cache/resoluto-sandbox, else $XDG_CACHE_HOME/resoluto-sandbox)" },
	{ "RESOLUTO_LIBEXEC_DIR",
	  "where the helper programs are, if not beside this one or where it was "
	  "installed to" },
	{ "RESOLUTO_LOCAL_RUNTIME",
	  "how sandboxes are isolated: microvm, the only way in this version" },
	{ "RESOLUTO_LOCAL_ACCEL",
	  "what provisioning found to work and recorded, kvm or tcg; a run never "
	  "chooses by itself" },
	{ "RESOLUTO_LOCAL_QEMU", "the emulator (default: qemu-system-<machine> in PATH)" },
	{ "RESOLUTO_LOCAL_KERNEL", "kernel of the sandboxes" },
	{ "RESOLUTO_LOCAL_INITRD", "initramfs of the sandboxes, with the runner" },
	{ "RESOLUTO_LOCAL_MACHINE",
	  "row of the table of machines: QEMU's machine type and command line (default: what the "
	  "file MACHINE beside the kernel says, else the one for this CPU)" },
	{ "RESOLUTO_LOCAL_BOOT_LIMIT",
	  "how long a sandbox may take to boot (default: 120s); one that takes longer is started "
	  "once more" },
	{ "RESOLUTO_LOCAL_MAX_RUNS", "how many sandboxes run at once (default: one per 512 MiB of "
	                             "available memory); further ones wait" },
	{ "RESOLUTO_LOCAL_UIDS",
	  "user ids, FIRST-LAST, that the processes of a sandbox get when root "
	  "starts it" },
	{ "RESOLUTO_SANDBOX_IMAGE", "image of a run without --image (default: the base image)" },
	{ "RESOLUTO_SANDBOX_REGISTRY",
	  "where a bare image name is looked up after the cache (default: "
	  "localhost:5000; empty: nowhere)" },
	{ "RESOLUTO_EGRESS_PROXY",
	  "proxy, http://[USER:PASSWORD@]HOST:PORT, through which runs with --egress reach what "
	  "they may (default: none)" },
	{ "REGISTRY_AUTH_FILE", "credentials of registries (default: ~/.docker/config.json)" },
	{ "HTTPS_PROXY", "proxy to registries" },
	{ "NO_PROXY", "hosts that are reached without it" },
	{ "SSL_CERT_FILE", "certificates of authorities that registries are checked against" },
	{ NULL, NULL },
};

bool environment_is_unknown(const char *entry)
{
	size_t len = strcspn(entry, "=");

	if (strncmp(entry, ENV_PREFIX, strlen(ENV_PREFIX)) != 0)
		return false; /* somebody else's: the file is also for `source` */
	for (const struct variable *at = environment_table; at->name; at++) {
		if (strlen(at->name) == len && strncmp(at->name, entry, len) == 0)
			return false;
	}
	return true;
}
