/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/options_copy.h"
#include "resoluto/version.h"

int options_copy(void *to, size_t to_size, const void *from, struct resoluto_err *err)
{
	const unsigned char *bytes = from;
	size_t from_size;

	if (!from)
		return resoluto_fail(err, -EINVAL, "no options are given");
	memcpy(&from_size, from, sizeof(from_size));
	if (from_size < sizeof(size_t))
		return resoluto_fail(err, -EINVAL, "struct_size is not set");
	for (size_t i = to_size; i < from_size; i++) {
		if (bytes[i] != 0)
			return resoluto_fail(
				err, -EINVAL,
				"the options use members that version " RESOLUTO_VERSION
				" of the library does not know");
	}
	memset(to, 0, to_size);
	memcpy(to, from, from_size < to_size ? from_size : to_size);
	return 0;
}
