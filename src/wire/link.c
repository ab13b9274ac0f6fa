/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/path.h"
#include "wire/link.h"

static bool is_up(struct path_part part)
{
	return part.len == 2 && part.at[0] == '.' && part.at[1] == '.';
}

static long depth_of_directory(const char *path)
{
	struct path_part part;
	long depth = -1; /* the link's own name does not count */

	while (path_next_part(&path, &part))
		depth++;
	return depth;
}

enum link_kind link_classify(const char *path, const char *target)
{
	long depth = depth_of_directory(path);
	bool met_name = false, climbed_late = false;
	struct path_part part;

	if (*target == '/' || *target == '\0')
		return LINK_OUTSIDE;
	while (path_next_part(&target, &part)) {
		if (!is_up(part)) {
			met_name = true;
			depth++;
			continue;
		}
		climbed_late |= met_name;
		if (--depth < 0)
			return LINK_OUTSIDE;
	}
	return climbed_late ? LINK_DEPENDS : LINK_INSIDE;
}

int link_base(const char *path, const char *target, struct buf *ret_base)
{
	const char *slash = strrchr(path, '/'), *at = target, *last_up = target;
	struct path_part part;
	int r = 0;

	while (path_next_part(&at, &part)) {
		if (is_up(part))
			last_up = part.at + part.len;
	}
	if (slash)
		r = buf_add(ret_base, path, (size_t) (slash - path) + 1);
	if (r == 0)
		r = buf_add(ret_base, target, (size_t) (last_up - target));
	return r < 0 || ret_base->len > 0 ? r : buf_add_str(ret_base, ".");
}

/* Take the last component off, unless it is a ".." at the start. */
static bool drop_last(struct buf *path)
{
	const char *slash = path->data ? strrchr(path->data, '/') : NULL;
	const char *last = slash ? slash + 1 : path->data;

	if (path->len == 0 || strcmp(last, "..") == 0)
		return false;
	buf_cut(path, slash ? (size_t) (slash - path->data) : 0);
	return true;
}

int link_straighten(const char *target, struct buf *ret_target)
{
	struct path_part part;

	while (path_next_part(&target, &part)) {
		int r;

		if (is_up(part) && drop_last(ret_target))
			continue;
		r = ret_target->len > 0 ? buf_add(ret_target, "/", 1) : 0;
		if (r == 0)
			r = buf_add(ret_target, part.at, part.len);
		if (r < 0)
			return r;
	}
	return ret_target->len > 0 ? 0 : buf_add_str(ret_target, ".");
}
