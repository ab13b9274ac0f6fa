/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * bounds.h - what an image may be.  Generous for what people build, and an end for what they forge:
 * each is refused by name (docs/design/image.md says where the figures come from).
 */

#include <stdint.h>

enum {
	IMAGE_MANIFEST_MAX = 4 * 1024 * 1024, /* bytes; registries stop at this too */
	IMAGE_CONFIG_MAX = 8 * 1024 * 1024,   /* bytes */
	IMAGE_LAYERS_MAX = 512,
	IMAGE_ENV_MAX = 4096,                /* variables */
	IMAGE_ENV_BYTES_MAX = 1024 * 1024,   /* bytes of all variables */
	IMAGE_STRING_MAX = 4096,             /* bytes of workdir, user or label */
	IMAGE_MEMBERS_MAX = 4 * 1000 * 1000, /* members of all layers together */
	IMAGE_NODES_MAX = 1000 * 1000,       /* names in the merged tree */
	IMAGE_PATH_MAX = 4095,               /* bytes: more cannot be opened by its full path */
	IMAGE_NAME_MAX = 255,                /* bytes of one component */
	IMAGE_DEPTH_MAX = 1024,              /* directories */
	IMAGE_SYMLINKS_MAX = 40, /* followed to find one parent directory, as the kernel does */
	IMAGE_XATTRS_MAX = 64,   /* of one file */
	IMAGE_XATTR_BYTES_MAX = 64 * 1024, /* names and values of one file */
	IMAGE_RATIO_MAX = 200,             /* unpacked to packed, beyond IMAGE_RATIO_FREE */
};

#define IMAGE_BYTES_MAX ((uint64_t) 64 << 30) /* unpacked, all layers together */
#define IMAGE_RATIO_FREE \
	((uint64_t) 1 << 30) /* unpacked bytes of a layer before its ratio counts */
