/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "wire/link.h"

struct part {
	const char *at;
	size_t len;
};

static bool is_up(struct part part)
{
	return part.len == 2 && part.at[0] == '.' && part.at[1] == '.';
}

/* Take the next component that says something: empty ones and "." do not. */
static bool next_part(const char **path, struct part *ret_part)
{
	for (;;) {
		struct part part;

		*path += strspn(*path, "/");
		part = (struct part){ *path, strcspn(*path, "/") };
		if (part.len == 0)
			return false;
		*path += part.len;
		if (part.len == 1 && part.at[0] == '.')
			continue;
		*ret_part = part;
		return true;
	}
}

static long depth_of_directory(const char *path)
{
	struct part part;
	long depth = -1; /* the link's own name does not count */

	while (next_part(&path, &part))
		depth++;
	return depth;
}

enum link_kind link_classify(const char *path, const char *target)
{
	long depth = depth_of_directory(path);
	bool met_name = false, climbed_late = false;
	struct part part;

	if (*target == '/' || *target == '\0')
		return LINK_OUTSIDE;
	while (next_part(&target, &part)) {
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
	struct part part;
	int r = 0;

	while (next_part(&at, &part)) {
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
	path->len = slash ? (size_t) (slash - path->data) : 0;
	path->data[path->len] = '\0';
	return true;
}

int link_straighten(const char *target, struct buf *ret_target)
{
	struct part part;

	while (next_part(&target, &part)) {
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
