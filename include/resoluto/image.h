/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * image.h - from an OCI reference to the read-only root file system a microVM boots (the image=
 * of seeds 002 and 003, which wants one built for it; beyond them, any image will do).
 *
 * Any image works unmodified: it is fetched by skopeo, its layers are flattened (whiteouts, links,
 * owners, xattrs as the OCI image specification says) into one squashfs, and that is kept in a
 * content-addressed cache (docs/environment.md: RESOLUTO_CACHE_DIR; the system's cache in
 * /var/cache/resoluto-sandbox is read too).  Two processes that want the same image at once make one.
 *
 * References  "name:tag" of the local cache; "host/name:tag" or "...@sha256:..." of a registry;
 *             "oci:DIR[:REF]", "docker-archive:FILE", "dir:DIR"; "rootfs:DIR" and "tar:FILE" for a
 *             plain root directory or tar; a bare absolute path is rootfs or tar by what it is.
 *             A bare name is looked up in the cache, then in RESOLUTO_SANDBOX_REGISTRY.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum resoluto_pull {
	RESOLUTO_PULL_MISSING, /* the default: only what the cache lacks */
	RESOLUTO_PULL_ALWAYS,
	RESOLUTO_PULL_NEVER,
};

/* An image in the cache.  All strings belong to the struct. */
struct resoluto_image {
	char *ref;    /* as asked for */
	char *digest; /* "sha256:..." of the image configuration, or of the flattened content */
	char *path;   /* the squashfs */
	uint64_t size_bytes; /* of the squashfs */
	double created;      /* when it was put into the cache, seconds since the epoch */
	/* In a list: ref is the "tar:" or "rootfs:" of what is not there any more.  Pruning drops it. */
	bool source_is_gone;
	/* From the image's configuration; NULL or empty where it says nothing. */
	char **env; /* NULL-terminated KEY=VALUE, RESOLUTO_* left out; may be NULL */
	char *workdir;
	char *user;          /* as written: "name", "uid", "uid:gid" */
	char *version_label; /* of images that carry a runner */
};

struct resoluto_image_options {
	size_t struct_size;
	const char *cache_dir; /* NULL: RESOLUTO_CACHE_DIR or its default */
	enum resoluto_pull pull;
	const char *platform; /* "linux/amd64"; NULL: this machine's */
	const char *authfile; /* NULL: REGISTRY_AUTH_FILE, ~/.docker/config.json, as skopeo does */
	/* What is going on, for people: step is a short phrase, done of total (0 = unknown) bytes.
	 * NULL: nobody asks. */
	void (*progress)(void *ctx, const char *step, uint64_t done, uint64_t total);
	void *ctx;
	/* Does the caller want it no more?  Asked again and again while anything is done or waited for; `true`
	 * ends that with -ECANCELED and leaves nothing behind but, at the very end, an image without a name.  NULL: it
	 * waits for ever. */
	bool (*is_stopped)(void *ctx);
};

/**
 * Find ref in the cache, or fetch, flatten and cache it.
 *
 * Failures a caller can act on: -ENOENT no such image, tag or digest; -EACCES the registry wants
 * other credentials; -EBADMSG a layer or manifest is corrupt or hostile (the text says which and
 * how); -ENOSPC the cache is full.  Release with resoluto_image_done().
 */
int resoluto_image_get(const char *ref, const struct resoluto_image_options *options,
                       struct resoluto_image *ret_image, struct resoluto_err *err);

/** NULL is allowed. */
void resoluto_image_done(struct resoluto_image *image);

/** Call each() for every image in the cache, by name.  A negative return ends it. */
int resoluto_image_list(const struct resoluto_image_options *options,
                        int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                        struct resoluto_err *err);

/** Give what ref names (fetched if need be) the further name `name` in the cache: "base:0.1.0". */
int resoluto_image_tag(const char *ref, const char *name,
                       const struct resoluto_image_options *options, struct resoluto_err *err);

/** Forget ref; its squashfs goes when no other name has it.  -ENOENT if it is not there. */
int resoluto_image_remove(const char *ref, const struct resoluto_image_options *options,
                          struct resoluto_err *err);

/** Remove what no name refers to and what was left half done.  Returns how many bytes were freed. */
int64_t resoluto_image_prune(const struct resoluto_image_options *options,
                             struct resoluto_err *err);

#ifdef __cplusplus
}
#endif
