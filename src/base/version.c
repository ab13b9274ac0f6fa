/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "resoluto/err.h"
#include "resoluto/version.h"

const char *resoluto_version(void)
{
	return RESOLUTO_VERSION;
}

enum { PARTS = 3, PART_DIGITS = 5 };

/* Digits only, no signs or spaces as sscanf would take. */
static int parse_version(const char *text, unsigned ret_parts[PARTS])
{
	for (int i = 0; i < PARTS; i++) {
		int digits = 0;

		ret_parts[i] = 0;
		for (; *text >= '0' && *text <= '9'; text++) {
			ret_parts[i] = ret_parts[i] * 10 + (unsigned) (*text - '0');
			if (++digits > PART_DIGITS)
				return -EINVAL;
		}
		if (digits == 0 || *text != (i + 1 < PARTS ? '.' : '\0'))
			return -EINVAL;
		text++;
	}
	return 0;
}

int resoluto_version_guard(const char *image_version, struct resoluto_err *err)
{
	unsigned image[PARTS], ours[PARTS];

	if (!image_version)
		return resoluto_fail(err, -EINVAL, "no version is given");
	if (parse_version(image_version, image) < 0)
		return resoluto_fail(err, -EINVAL, "'%s' is not a version such as %s",
		                     image_version, RESOLUTO_VERSION);
	if (parse_version(RESOLUTO_VERSION, ours) < 0)
		return resoluto_fail(err, -EINVAL, "'%s' is not a version", RESOLUTO_VERSION);
	if (image[0] != ours[0] || image[1] != ours[1])
		return resoluto_fail(err, -EPROTO, "the image was made for version %s, this is %s",
		                     image_version, RESOLUTO_VERSION);
	return 0;
}
