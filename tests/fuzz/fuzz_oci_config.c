/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_oci_config.c - what a registry sends as an image's configuration. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/bounds.h"
#include "image/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_config config = { 0 };
	struct resoluto_err err = { 0 };
	int r = oci_config_parse((const char *) data, size, &config, &err);

	if (r < 0) {
		if (err.code != r || !err.text[0] || config.diff_ids)
			abort();
		return 0;
	}
	if (config.diff_id_count > IMAGE_LAYERS_MAX ||
	    (config.workdir && config.workdir[0] != '/') || (config.user && !config.user[0]))
		abort();
	for (size_t i = 0; i < config.env.count; i++) {
		const char *env = config.env.items[i];

		if (!strchr(env, '=') || env[0] == '=' || strncmp(env, "RESOLUTO_", 9) == 0)
			abort();
	}
	oci_config_done(&config);
	return 0;
}
