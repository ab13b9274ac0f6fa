/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * skopeo.h - images from registries, archives and layouts, by the program skopeo, which knows them all
 * and honours the usual files and variables (registry credentials, proxies, certificates, policy).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "image/caller.h"
#include "image/platform.h"
#include "image/reference.h"
#include "resoluto/err.h"

struct skopeo {
	const char *source; /* "docker://host/name:tag", "oci:DIR:REF" ... */
	bool is_loopback;   /* a registry on this machine: no TLS needed */
	bool has_policy;    /* a signature policy is configured */
	const struct platform *platform;
	const char *authfile; /* NULL: where skopeo looks by itself */
	const char *scratch;  /* directory for its temporary files */
	const struct caller *caller;
};

enum skopeo_verb {
	SKOPEO_CONFIG,   /* print the image's configuration */
	SKOPEO_MANIFEST, /* print the manifest, or the index of several */
	SKOPEO_COPY,     /* copy to dir:TARGET */
};

/* The command line.  Pure. */
int skopeo_args(const struct skopeo *skopeo, enum skopeo_verb verb, const char *target,
                struct strv *ret_args);
/* What its last words mean: -ENOENT, -EACCES, -ENOSPC, -EBADMSG, -EINVAL (a file of another kind), -EHOSTUNREACH or
 * -EIO.  Pure. */
int skopeo_failure(const char *words);
/* What to do, "; ..." to stand behind them; "" where they tell it themselves.  Pure. */
const char *skopeo_remedy(const char *words);
/* Where in them it says more than which step and which image it was, which we say ourselves.  Pure. */
const char *skopeo_cause(const char *words);
/* The same registry's name with this digest instead of its tag.  -EINVAL: source is no registry's.  Pure. */
int skopeo_source_at(const char *source, const char *digest, char *ret_source, size_t size);
/* Is there a policy.json of this user or of the system? */
bool skopeo_policy_exists(void);

int skopeo_config(const struct skopeo *skopeo, struct buf *ret_config, struct resoluto_err *err);
/* Copy into the directory target, which is in scratch and not there yet. */
int skopeo_copy(const struct skopeo *skopeo, const char *target, struct resoluto_err *err);
