/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "resoluto/err.h"
#include "resoluto/version.h"

const char *resoluto_version(void)
{
	return RESOLUTO_VERSION;
}

enum { PARTS = 2, PART_DIGITS = 5 };

/* What may follow MAJOR.MINOR: nothing, or ".0", ".0.dev1", "-rc1", "+build" and the like. */
static bool is_rest(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";

	if (!text[0])
		return true;
	return strchr(".-+", text[0]) && text[1] && !text[strspn(text, allowed)];
}

/* Digits only, no signs or spaces as sscanf would take. */
static int parse_version(const char *text, unsigned ret_parts[PARTS])
{
	for (int i = 0; i < PARTS; i++) {
		int digits = 0;

		if (i > 0 && *text++ != '.')
			return -EINVAL;
		ret_parts[i] = 0;
		for (; *text >= '0' && *text <= '9'; text++) {
			ret_parts[i] = ret_parts[i] * 10 + (unsigned) (*text - '0');
			if (++digits > PART_DIGITS)
				return -EINVAL;
		}
		if (digits == 0)
			return -EINVAL;
	}
	return is_rest(text) ? 0 : -EINVAL;
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
