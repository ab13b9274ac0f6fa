/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"
#include "guest/users.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			     "toor:x:0:0::/root:/bin/sh\n"
			     "short:x\n"
			     "bad:x:many:1:::\n"
			     "app:x:500:600:App,,,:/srv/app:/bin/sh\n"
			     "nogid:x:501:x:::\n"
			     "nohome:x:502:502:::\n"
			     "last:x:503:503::/last:/bin/sh";
static const char group[] = "root:x:0:\ngames:x:60:\napp:x:600:\n";

static struct user resolve(const char *spec)
{
	struct user user;

	CHECK(user_resolve(spec, passwd, group, &user, NULL) == 0);
	return user;
}

static bool is_default(const struct user *user)
{
	return user->uid == 1000 && user->gid == 1000 && strcmp(user->name, "sandbox") == 0 &&
	       strcmp(user->home, "/home/sandbox") == 0 && !user->is_in_passwd &&
	       !user->is_in_group;
}

static void nobody_in_particular_is_the_default(void)
{
	struct user user = resolve(""), without_files;

	CHECK(is_default(&user));
	CHECK(user_resolve("", NULL, NULL, &without_files, NULL) == 0 &&
	      is_default(&without_files));
}

static void root_by_any_name_is_the_default(void)
{
	static const char *const specs[] = { "0", "root", "toor", "0:0", "root:games", "0000" };

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct user user = resolve(specs[i]);

		CHECK(is_default(&user));
	}
}

static void names_come_with_their_group_and_home(void)
{
	struct user user = resolve("app");

	CHECK(user.uid == 500 && user.gid == 600 && user.is_in_passwd && user.is_in_group);
	CHECK_STR(user.name, "app");
	CHECK_STR(user.home, "/srv/app");
	user = resolve("last");
	CHECK(user.uid == 503 && !user.is_in_group);
	CHECK_STR(user.home, "/last");
	user = resolve("nohome");
	CHECK_STR(user.home, "/home/sandbox");
}

static void the_default_name_is_not_given_twice(void)
{
	static const char ours[] = "sandbox:x:1000:1000::/home/sandbox:/bin/sh\n";
	static const char elsewhere[] = "sandbox:x:77:77::/:/bin/sh\n";
	struct user user;

	CHECK(user_resolve("4242", ours, "", &user, NULL) == 0);
	CHECK_STR(user.name, "sandbox4242");
	CHECK(user_resolve("", ours, "", &user, NULL) == 0);
	CHECK_STR(user.name, "sandbox");
	CHECK(user_resolve("", elsewhere, "", &user, NULL) == 0 && user.uid == 1000);
	CHECK_STR(user.name, "sandbox1000");
}

static void numbers_need_no_line(void)
{
	struct user user = resolve("500");

	CHECK(user.uid == 500 && user.gid == 600 && user.is_in_passwd);
	user = resolve("4242");
	CHECK(user.uid == 4242 && user.gid == 4242 && !user.is_in_passwd && !user.is_in_group);
	user = resolve("4242:0");
	CHECK(user.uid == 4242 && user.gid == 0 && user.is_in_group);
}

static void a_group_may_be_named(void)
{
	struct user user = resolve("daemon:games");

	CHECK(user.uid == 1 && user.gid == 60);
	user = resolve("500:7");
	CHECK(user.uid == 500 && user.gid == 7);
}

static void what_the_image_does_not_know(void)
{
	struct resoluto_err err = { 0 };
	struct user user;

	CHECK(user_resolve("ghost", passwd, group, &user, &err) == -ENOENT &&
	      strstr(err.text, "ghost"));
	CHECK(user_resolve("app:ghosts", passwd, group, &user, NULL) == -ENOENT);
	CHECK(user_resolve("short", passwd, group, &user, NULL) == -ENOENT);
	CHECK(user_resolve("bad", passwd, group, &user, NULL) == -ENOENT);
	CHECK(user_resolve("4294967295", passwd, group, &user, NULL) == -ENOENT);
	CHECK(user_resolve("nogid", passwd, group, &user, NULL) == -EINVAL);
}

static void what_is_no_user(void)
{
	static const char *const specs[] = { ":", ":1", "1:", "1:2:3", "app::" };

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct user user;

		CHECK(user_resolve(specs[i], passwd, group, &user, NULL) == -EINVAL);
	}
}

static void files_full_of_nonsense_do_no_harm(void)
{
	static const char *const files[] = { "\n\n\n",      ":::::::::::\n",
		                             "1000",        ":x:1000",
		                             "::1000:::::", "a:b:1000:1000:c:relative:d\n" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct user user;

		CHECK(user_resolve("", files[i], files[i], &user, NULL) == 0 && user.uid == 1000);
		CHECK_STR(user.home, "/home/sandbox");
	}
}

int main(void)
{
	RUN(nobody_in_particular_is_the_default);
	RUN(root_by_any_name_is_the_default);
	RUN(names_come_with_their_group_and_home);
	RUN(the_default_name_is_not_given_twice);
	RUN(numbers_need_no_line);
	RUN(a_group_may_be_named);
	RUN(what_the_image_does_not_know);
	RUN(what_is_no_user);
	RUN(files_full_of_nonsense_do_no_harm);
	return check_done();
}
