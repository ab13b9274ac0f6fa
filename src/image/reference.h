/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reference.h - what an image reference says.  Pure: no file and no registry is looked at.
 *
 *	name[:tag] | name@sha256:...            a name of the local cache, or of RESOLUTO_SANDBOX_REGISTRY
 *	host[:port]/name[:tag] | ...@sha256:... a registry's; a host has a '.', a ':' or is "localhost"
 *	sha256:...                              what the cache has under that digest
 *	oci:DIR[:REF]  oci-archive:FILE[:REF]  docker-archive:FILE[:REF]  dir:DIR
 *	rootfs:DIR  tar:FILE  /absolute/path    a plain root file system
 *
 * A missing tag is "latest".  With both a tag and a digest the digest counts.
 */

#include <limits.h>
#include <stdbool.h>

#include "resoluto/err.h"

enum reference_kind {
	REFERENCE_NAME,     /* without a registry */
	REFERENCE_REGISTRY, /* fully qualified */
	REFERENCE_DIGEST,   /* of the cache */
	REFERENCE_OCI,
	REFERENCE_OCI_ARCHIVE,
	REFERENCE_DOCKER_ARCHIVE,
	REFERENCE_DIR, /* skopeo's dir: transport */
	REFERENCE_ROOTFS,
	REFERENCE_TAR,
	REFERENCE_PATH, /* rootfs or tar: the file system tells */
};

enum {
	REFERENCE_NAME_MAX = 511, /* bytes of a name with registry, tag and digest */
};

struct reference {
	enum reference_kind kind;
	char name[REFERENCE_NAME_MAX +
	          1];        /* NAME, REGISTRY: with its tag or digest; DIGEST: the digest;
					    * archives and OCI: the REF behind the path, or "" */
	char path[PATH_MAX]; /* of the others, as written */
};

/* -EINVAL when text is no reference; the text of err says what is wrong and what to write. */
int reference_parse(const char *text, struct reference *ret_reference, struct resoluto_err *err);
/* Read from a file or directory, not from a registry or the cache. */
bool reference_is_local(enum reference_kind kind);
/* "oci", "tar" ...: how such a reference begins; "" for names. */
const char *reference_prefix(enum reference_kind kind);
/* The registry "host:port" of a fully qualified name is this machine: plain HTTP is fine. */
bool reference_is_loopback(const char *name);
