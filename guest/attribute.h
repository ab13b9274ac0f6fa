/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* attribute.h - devices as sysfs shows them: a directory each, a file for each attribute. */

enum { ATTRIBUTE_SIZE = 64 }; /* of a value, the 0 included; of a longer one the rest is left out */

/* The value of the attribute, without its newline, of a device, which is a directory beneath dirfd; "" for none. */
void attribute_read(int dirfd, const char *device, const char *attribute,
                    char ret_value[ATTRIBUTE_SIZE]);
