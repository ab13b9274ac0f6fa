/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* platform.h - "linux/amd64": which of an image's variants is meant, in the words of OCI. */

#include "resoluto/err.h"

struct platform {
	char arch[32];    /* "amd64", "arm64" */
	char variant[16]; /* "v7"; "" = any */
};

/* text NULL: the machine named by machine (as uname says it: "x86_64").  -EINVAL for anything but
 * linux/ARCH[/VARIANT]. */
int platform_parse(const char *text, const char *machine, struct platform *ret_platform,
                   struct resoluto_err *err);
