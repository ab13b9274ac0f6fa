/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_manifest.c - _manifest.json: a number in its range, or a refusal that leaves the result alone. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "wire/keys.h"
#include "wire/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(MANIFEST_JSON_MAX);
	uint32_t total = UINT32_MAX, again = 0;
	int r = manifest_parse((const char *) data, size, &total);

	require(r == 0 || (r == -EBADMSG && total == UINT32_MAX));
	if (r == 0) {
		require(total <= KEY_CHUNK_MAX);
		require(manifest_write(&out, total) == 0);
		require(manifest_parse(out.data, out.len, &again) == 0 && again == total);
	}
	buf_done(&out);
	return 0;
}
