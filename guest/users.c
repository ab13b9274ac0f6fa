/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/users.h"

enum {
	FIELD_NAME = 0,
	FIELD_ID = 2,
	PASSWD_GID = 3,
	PASSWD_HOME = 5,
	FIELDS = 7,
};

/* One line of either file, cut at its colons; the fields point into the file and are not terminated. */
struct line {
	const char *at[FIELDS];
	size_t len[FIELDS];
	int count;
};

static const char *cut_line(const char *at, struct line *ret)
{
	size_t end = strcspn(at, "\n");
	const char *stop = at + end;

	ret->count = 0;
	while (ret->count < FIELDS) {
		size_t n = 0;

		while (at + n < stop && at[n] != ':')
			n++;
		ret->at[ret->count] = at;
		ret->len[ret->count++] = n;
		if (at + n == stop)
			break;
		at += n + 1;
	}
	return *stop ? stop + 1 : stop;
}

static bool parse_id(const char *text, size_t len, uint32_t *ret)
{
	uint64_t id = 0;

	if (len == 0 || len > 10)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		id = id * 10 + (uint64_t) (text[i] - '0');
	}
	/* The largest means "no id" to the kernel. */
	if (id >= UINT32_MAX)
		return false;
	*ret = (uint32_t) id;
	return true;
}

/* Find by name (len > 0) or by id the first line that has at least `fields` fields and a good id. */
static bool find_line(const char *file, const char *name, size_t len, uint32_t id, int fields,
                      struct line *ret)
{
	while (file && *file) {
		uint32_t line_id;

		file = cut_line(file, ret);
		if (ret->count < fields ||
		    !parse_id(ret->at[FIELD_ID], ret->len[FIELD_ID], &line_id))
			continue;
		if (len > 0 ? ret->len[FIELD_NAME] == len &&
		                      memcmp(ret->at[FIELD_NAME], name, len) == 0
		            : line_id == id)
			return true;
	}
	return false;
}

static void copy_field(const struct line *line, int field, char *ret, size_t cap)
{
	if (field < line->count && line->len[field] > 0 && line->len[field] < cap)
		snprintf(ret, cap, "%.*s", (int) line->len[field], line->at[field]);
}

/* The image may have given the default name to somebody else. */
static void pick_name(struct user *user, const char *passwd)
{
	struct line line;

	if (find_line(passwd, USER_DEFAULT_NAME, strlen(USER_DEFAULT_NAME), 0, FIELD_ID + 1, &line))
		snprintf(user->name, sizeof(user->name), USER_DEFAULT_NAME "%u", user->uid);
	else
		snprintf(user->name, sizeof(user->name), "%s", USER_DEFAULT_NAME);
}

static void set_default(struct user *user, const char *passwd, const char *group)
{
	struct line line;

	*user = (struct user){ .uid = USER_DEFAULT_ID, .gid = USER_DEFAULT_ID };
	pick_name(user, passwd);
	snprintf(user->home, sizeof(user->home), "%s", USER_DEFAULT_HOME);
	user->is_in_passwd = find_line(passwd, NULL, 0, USER_DEFAULT_ID, FIELD_ID + 1, &line);
	if (user->is_in_passwd)
		copy_field(&line, FIELD_NAME, user->name, sizeof(user->name));
	user->is_in_group = find_line(group, NULL, 0, USER_DEFAULT_ID, FIELD_ID + 1, &line);
}

static int resolve_user(const char *spec, size_t len, const char *passwd, struct user *user,
                        struct resoluto_err *err)
{
	bool is_number = parse_id(spec, len, &user->uid);
	struct line line;

	user->is_in_passwd = is_number
	                             ? find_line(passwd, NULL, 0, user->uid, PASSWD_GID + 1, &line)
	                             : find_line(passwd, spec, len, 0, PASSWD_GID + 1, &line);
	if (!user->is_in_passwd && !is_number)
		return resoluto_fail(err, -ENOENT, "the image has no user '%.*s' in /etc/passwd",
		                     (int) (len < 64 ? len : 64), spec);
	snprintf(user->home, sizeof(user->home), "%s", USER_DEFAULT_HOME);
	user->gid = user->uid;
	if (!user->is_in_passwd) {
		pick_name(user, passwd);
		return 0;
	}
	snprintf(user->name, sizeof(user->name), "%s", USER_DEFAULT_NAME);
	(void) parse_id(line.at[FIELD_ID], line.len[FIELD_ID], &user->uid);
	if (!parse_id(line.at[PASSWD_GID], line.len[PASSWD_GID], &user->gid))
		return resoluto_fail(err, -EINVAL, "the image's /etc/passwd has a bad group id");
	copy_field(&line, FIELD_NAME, user->name, sizeof(user->name));
	if (line.count > PASSWD_HOME && line.len[PASSWD_HOME] > 1 && line.at[PASSWD_HOME][0] == '/')
		copy_field(&line, PASSWD_HOME, user->home, sizeof(user->home));
	return 0;
}

static int resolve_group(const char *spec, size_t len, const char *group, struct user *user,
                         struct resoluto_err *err)
{
	struct line line;

	if (parse_id(spec, len, &user->gid))
		return 0;
	if (!find_line(group, spec, len, 0, FIELD_ID + 1, &line))
		return resoluto_fail(err, -ENOENT, "the image has no group '%.*s' in /etc/group",
		                     (int) (len < 64 ? len : 64), spec);
	(void) parse_id(line.at[FIELD_ID], line.len[FIELD_ID], &user->gid);
	return 0;
}

int user_resolve(const char *spec, const char *passwd, const char *group, struct user *ret_user,
                 struct resoluto_err *err)
{
	size_t len = strcspn(spec, ":");
	struct line line;
	int r = 0;

	if (!*spec) {
		set_default(ret_user, passwd, group);
		return 0;
	}
	if (len == 0 || (spec[len] && (!spec[len + 1] || strchr(spec + len + 1, ':'))))
		return resoluto_fail(err, -EINVAL,
		                     "'%.100s' is not a user: use uid, uid:gid, name or name:group",
		                     spec);
	*ret_user = (struct user){ .uid = 0 };
	r = resolve_user(spec, len, passwd, ret_user, err);
	if (r == 0 && spec[len])
		r = resolve_group(spec + len + 1, strlen(spec + len + 1), group, ret_user, err);
	if (r < 0)
		return r;
	if (ret_user->uid == 0)
		set_default(ret_user, passwd, group);
	else
		ret_user->is_in_group = find_line(group, NULL, 0, ret_user->gid, FIELD_ID + 1,
		                                  &line);
	return 0;
}
