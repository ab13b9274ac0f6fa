/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/landlock.h"

/* Of a header that knows version 4. */
enum { RULE_NET_PORT = 2, ACCESS_NET_CONNECT_TCP = 2 };

struct net_port_rule {
	uint64_t rights, port;
};

int landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
	                       LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? -errno : (int) version;
}

struct landlock_taken landlock_all(int version)
{
	struct landlock_taken taken = { .files = LANDLOCK_FS_RIGHTS_1 };

	if (version >= 2)
		taken.files |= LANDLOCK_FS_REFER;
	if (version >= 3)
		taken.files |= LANDLOCK_FS_TRUNCATE;
	if (version >= 4)
		taken.tcp = LANDLOCK_TCP;
	if (version >= 5)
		taken.files |= LANDLOCK_FS_IOCTL_DEV;
	if (version >= 6)
		taken.scopes = LANDLOCK_SCOPE_SOCKETS | LANDLOCK_SCOPE_SIGNALS;
	return taken;
}

int landlock_new(const struct landlock_taken *taken)
{
	/* An older kernel knows a shorter structure. */
	size_t size = offsetof(struct landlock_taken, tcp);
	int ruleset;

	if (taken->tcp)
		size = offsetof(struct landlock_taken, scopes);
	if (taken->scopes)
		size = sizeof(*taken);
	ruleset = (int) syscall(SYS_landlock_create_ruleset, taken, size, 0);
	return ruleset < 0 ? -errno : ruleset;
}

int landlock_give_files(int ruleset, int fd, uint64_t rights)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = rights,
		                                         .parent_fd = fd };

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int landlock_give_tcp_connect(int ruleset, uint16_t port)
{
	const struct net_port_rule rule = { ACCESS_NET_CONNECT_TCP, port };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

int landlock_enter(int ruleset)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
