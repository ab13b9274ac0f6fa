/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * oci.h - manifests and configurations of OCI and Docker images.  Pure; the bytes are hostile.
 *
 * All functions: -EBADMSG and a text for what is malformed or over a limit of bounds.h.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "image/digest.h"
#include "image/platform.h"
#include "resoluto/err.h"

struct oci_descriptor {
	char digest[DIGEST_SIZE];
	uint64_t size; /* bytes */
};

struct oci_manifest {
	struct oci_descriptor config;
	struct oci_descriptor *layers; /* owned */
	size_t layer_count;
};

int oci_manifest_parse(const char *bytes, size_t len, struct oci_manifest *ret_manifest,
                       struct resoluto_err *err);
void oci_manifest_done(struct oci_manifest *manifest);

/* The digest of the manifest for this platform in an index of several; where any variant will do, of one without.  -ENOENT:
 * bytes are no index, or it has none. */
int oci_index_pick(const char *bytes, size_t len, const struct platform *platform,
                   char ret_digest[DIGEST_SIZE], struct resoluto_err *err);

struct oci_config {
	char arch[32], os[32];         /* "" where the image does not say */
	char (*diff_ids)[DIGEST_SIZE]; /* owned: digests of the unpacked layers */
	size_t diff_id_count;
	struct strv env;     /* KEY=VALUE; RESOLUTO_* left out */
	char *workdir;       /* owned, absolute; NULL: none */
	char *user;          /* owned; NULL: none */
	char *version_label; /* owned; NULL: none */
};

int oci_config_parse(const char *bytes, size_t len, struct oci_config *ret_config,
                     struct resoluto_err *err);
void oci_config_done(struct oci_config *config);
