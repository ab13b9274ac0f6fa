/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "resoluto/err.h"
#include "resoluto/version.h"

const char *resoluto_version(void)
{
	return RESOLUTO_VERSION;
}

struct version {
	unsigned major, minor, patch;
};

static int parse_version(const char *text, struct version *ret)
{
	int used = 0;

	/* The scan takes signs and spaces; the length limits and the first digits rule them out. */
	if (text[0] < '0' || text[0] > '9' ||
	    sscanf(text, "%5u.%5u.%5u%n", &ret->major, &ret->minor, &ret->patch, &used) != 3 ||
	    text[used])
		return -EINVAL;
	return 0;
}

int resoluto_version_guard(const char *image_version, struct resoluto_err *err)
{
	struct version image, ours;

	if (parse_version(image_version, &image) < 0)
		return resoluto_fail(err, -EINVAL, "'%s' is not a version such as %s",
		                     image_version, RESOLUTO_VERSION);
	if (parse_version(RESOLUTO_VERSION, &ours) < 0)
		return resoluto_fail(err, -EINVAL, "'%s' is not a version", RESOLUTO_VERSION);
	if (image.major != ours.major || image.minor != ours.minor)
		return resoluto_fail(err, -EPROTO, "the image was made for version %s, this is %s",
		                     image_version, RESOLUTO_VERSION);
	return 0;
}
