/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_users.c - an image's passwd and group files: the input is who is asked for, passwd and group, apart by NUL.
 * Whatever they say, the program is nobody's root.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check(const struct user *user)
{
	require(user->uid != 0 && user->uid != (uid_t) -1 && user->gid != (gid_t) -1);
	require(memchr(user->name, '\0', sizeof(user->name)) != NULL && user->name[0]);
	require(memchr(user->home, '\0', sizeof(user->home)) != NULL && user->home[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 3), *passwd, *group;
	struct resoluto_err err = { 0 };
	struct user user;
	int r;

	require(text != NULL);
	memcpy(text, data, size);
	passwd = text + strlen(text) + 1;
	group = passwd >= text + size ? NULL : passwd + strlen(passwd) + 1;
	if (group && group >= text + size)
		group = NULL;
	if (passwd >= text + size)
		passwd = NULL;
	r = user_resolve(text, passwd, group, &user, &err);
	require(r == 0 || (r == err.code && (r == -ENOENT || r == -EINVAL)));
	if (r == 0)
		check(&user);
	free(text);
	return 0;
}
