/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* attribute.h - devices as sysfs shows them: a directory each, a file for each attribute. */

#include <stdbool.h>

/* Does device, a directory beneath dirfd, have the attribute with exactly this value (not empty)? */
bool attribute_is(int dirfd, const char *device, const char *attribute, const char *value);
