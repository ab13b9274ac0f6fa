/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - what all runtimes share: the end of one, and the checks of a launch spec. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/options_copy.h"
#include "base/path.h"
#include "runtime/launch_spec.h"
#include "wire/keys.h"

void resoluto_runtime_close(struct resoluto_runtime *runtime)
{
	if (runtime)
		runtime->ops->close(runtime);
}

/* KEY=VALUE, KEY not empty.  The value is never shown: it may be a secret. */
static int check_pairs(const char *what, const char *const *pairs, struct resoluto_err *err)
{
	for (size_t i = 0; pairs && pairs[i]; i++) {
		size_t name = strcspn(pairs[i], "=");

		if (name == 0)
			return resoluto_fail(err, -EINVAL, "%s %zu has no name", what, i + 1);
		if (pairs[i][name] != '=')
			return resoluto_fail(err, -EINVAL, "%s %zu is not KEY=VALUE", what, i + 1);
	}
	return 0;
}

static bool is_prefix(const char *prefix)
{
	return strlen(prefix) <= RESOLUTO_KEY_MAX - KEY_SIZE && path_is_beneath(prefix);
}

/* The protocol writes a '/' behind it, our facade none: it is the same one. */
static void copy_prefix(const char *prefix, char ret_plain[RUNTIME_PREFIX_SIZE])
{
	size_t len = strnlen(prefix, RUNTIME_PREFIX_SIZE - 1);

	memcpy(ret_plain, prefix, len);
	if (len > 0 && !prefix[len] && prefix[len - 1] == '/')
		len--;
	ret_plain[len] = '\0';
}

static int check_spec(const struct resoluto_launch_spec *spec, struct resoluto_err *err)
{
	int r;

	if (!spec->id || !key_is_run_id(spec->id))
		return resoluto_fail(err, -EINVAL, "'%s' is not a run id ([a-z0-9][a-z0-9-]{0,%d})",
		                     spec->id ? spec->id : "", RESOLUTO_ID_MAX - 1);
	if (!spec->image || !spec->image[0])
		return resoluto_fail(err, -EINVAL, "no image");
	if (!spec->conduit)
		return resoluto_fail(err, -EINVAL, "no conduit");
	if (!is_prefix(spec->store_prefix))
		return resoluto_fail(err, -EINVAL, "'%s' cannot be the prefix of a run's keys",
		                     spec->store_prefix);
	r = check_pairs("variable", spec->env, err);
	return r < 0 ? r : check_pairs("label", spec->labels, err);
}

int runtime_check_spec(const struct resoluto_launch_spec *given, struct checked_spec *ret_checked,
                       struct resoluto_err *err)
{
	struct resoluto_launch_spec *spec = &ret_checked->spec;
	int r = options_copy(spec, sizeof(*spec), given, err);

	if (r < 0)
		return resoluto_fail_in(err, r, "launch spec");
	copy_prefix(spec->store_prefix ? spec->store_prefix : "", ret_checked->prefix);
	spec->store_prefix = ret_checked->prefix;
	return check_spec(spec, err);
}

int runtime_refuse_egress(const struct resoluto_launch_spec *spec, const char *runtime,
                          struct resoluto_err *err)
{
	if (!spec->egress_learn && (!spec->egress_allow || !spec->egress_allow[0]))
		return 0;
	return resoluto_fail(err, -EOPNOTSUPP,
	                     "egress: the runtime '%s' cannot reach anything; microvm can",
	                     runtime);
}

bool runtime_labels_match(const char *const *labels, const char *const *wanted)
{
	for (; wanted && *wanted; wanted++) {
		if (!strv_has(labels, *wanted))
			return false;
	}
	return true;
}
