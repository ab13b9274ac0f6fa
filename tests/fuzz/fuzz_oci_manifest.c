/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_oci_manifest.c - what a registry sends as an image's manifest, or as an index of several. */
#include <stdint.h>
#include <stdlib.h>

#include "image/bounds.h"
#include "image/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pick(const uint8_t *data, size_t size)
{
	static const struct platform platform = { .arch = "amd64" };
	char digest[DIGEST_SIZE];
	struct resoluto_err err = { 0 };
	int r = oci_index_pick((const char *) data, size, &platform, digest, &err);

	if (r < 0 ? err.code != r || !err.text[0] : !digest_is_valid(digest))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_manifest manifest = { 0 };
	struct resoluto_err err = { 0 };
	int r = oci_manifest_parse((const char *) data, size, &manifest, &err);

	pick(data, size);
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
