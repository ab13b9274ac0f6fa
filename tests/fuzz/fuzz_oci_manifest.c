/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_oci_manifest.c - what a registry sends as an image's manifest. */
#include <stdint.h>
#include <stdlib.h>

#include "image/bounds.h"
#include "image/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_manifest manifest = { 0 };
	struct resoluto_err err = { 0 };
	int r = oci_manifest_parse((const char *) data, size, &manifest, &err);

	if (r < 0) {
		if (err.code != r || !err.text[0] || manifest.layers)
			abort();
		return 0;
	}
	if (manifest.layer_count > IMAGE_LAYERS_MAX || !digest_is_valid(manifest.config.digest))
		abort();
	for (size_t i = 0; i < manifest.layer_count; i++) {
		if (!digest_is_valid(manifest.layers[i].digest))
			abort();
	}
	oci_manifest_done(&manifest);
	return 0;
}
