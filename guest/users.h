/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * users.h - who the program runs as, from the image's passwd and group files.  Pure; hostile input.
 *
 * A static program must not use the C library's name service, which loads modules of the image.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "resoluto/err.h"

enum {
	USER_DEFAULT_ID = 1000,
	USER_FILE_MAX = 1024 * 1024, /* bytes of a passwd or group file that are looked at */
	USER_NAME_SIZE = 64,
	USER_HOME_SIZE = 256,
};

#define USER_DEFAULT_NAME "sandbox"
#define USER_DEFAULT_HOME "/home/sandbox"

struct user {
	uid_t uid;
	gid_t gid;
	char name[USER_NAME_SIZE];
	char home[USER_HOME_SIZE];
	bool is_in_passwd, is_in_group; /* the image has a line for the uid, for the gid */
};

/*
 * spec is "", "uid", "uid:gid", "name" or "name:group".  "" and every spec that means uid 0 give
 * 1000:1000 with USER_DEFAULT_HOME; -ENOENT: the image does not know the name; -EINVAL: no such spec.
 */
int user_resolve(const char *spec, const char *passwd, const char *group, struct user *ret_user,
                 struct resoluto_err *err);
