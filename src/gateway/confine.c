/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/filter.h"
#include "base/landlock.h"
#include "gateway/confine.h"

enum {
	PORT_DNS = 53,
	ROWS = 4, /* the descriptor */
};

/* A sanitizer maps more than there is. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BOUNDS_MEMORY 0
#endif
#endif
#ifndef BOUNDS_MEMORY
#define BOUNDS_MEMORY 1
#endif

/* The lower of what is wanted and what we may have. */
static int limit(int resource, rlim_t wanted)
{
	struct rlimit value;

	if (getrlimit(resource, &value) < 0)
		return -errno;
	if (value.rlim_max == RLIM_INFINITY || value.rlim_max > wanted)
		value.rlim_max = wanted;
	value.rlim_cur = value.rlim_max;
	return setrlimit(resource, &value) < 0 ? -errno : 0;
}

static int set_limits(void)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = limit(RLIMIT_NOFILE, CONFINE_FILES);
	if (r == 0)
		r = limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, CONFINE_FILE_SIZE);
	if (r == 0)
		r = limit(RLIMIT_MEMLOCK, 0);
	if (r == 0)
		r = limit(RLIMIT_MSGQUEUE, 0);
	if (r == 0 && BOUNDS_MEMORY)
		r = limit(RLIMIT_DATA, CONFINE_DATA);
	if (r == 0 && BOUNDS_MEMORY)
		r = limit(RLIMIT_AS, CONFINE_ADDRESSES);
	return r;
}

static int become(uid_t uid)
{
	if (uid == 0 || uid == geteuid())
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return getuid() == uid && setuid(0) < 0 ? 0 : -EPERM;
}

/* Before the user changes: afterwards there is no right to. */
static void drop_bounding_set(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	(void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* A user of its own has none by now; root without a user to become keeps only its name. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };

	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int give_ports(int ruleset, const struct gateway_config *config)
{
	int r = landlock_give_tcp_connect(ruleset, PORT_DNS);

	if (config->proxy.port)
		return r < 0 ? r : landlock_give_tcp_connect(ruleset, config->proxy.port);
	for (size_t i = 0; r == 0 && i < config->policy.count; i++)
		r = landlock_give_tcp_connect(ruleset, config->policy.patterns[i].port);
	return r;
}

static int give_up_files(const struct gateway_config *config)
{
	CLEANUP(fd_close) int ruleset = -1;
	const int version = landlock_version();
	struct landlock_taken taken;
	int r = 0;

	if (version < 0)
		return version;
	taken = landlock_all(version);
	ruleset = landlock_new(&taken);
	if (ruleset < 0)
		return ruleset;
	if (taken.tcp)
		r = give_ports(ruleset, config);
	return r < 0 ? r : landlock_enter(ruleset);
}

static const char *const calls[] = {
	/* its sockets, and the rows */
	"read",
	"readv",
	"write",
	"writev",
	"recvfrom",
	"recvmsg",
	"recvmmsg",
	"close",
	"shutdown",
	"connect",
	"accept4",
	"getsockopt",
	"setsockopt",
	"getsockname",
	"getpeername",
	/* waiting */
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_ctl",
	"poll",
	"ppoll",
	"restart_syscall",
	"sigaltstack", /* a sanitizer, before the end */
	NULL,
};

/* The kind of socket, without its flags. */
enum { SOCKET_KIND = 0xf };

static int add_sockets(scmp_filter_ctx filter)
{
	static const int families[] = { AF_INET, AF_INET6 };
	static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM };
	static const int protocols[] = { IPPROTO_TCP, IPPROTO_UDP };

	for (int i = 0; i < 8; i++) {
		const int protocol = i < 4 ? 0 : protocols[i % 2];
		const struct scmp_arg_cmp compare[] = {
			{ .arg = 0,
			  .op = SCMP_CMP_EQ,
			  .datum_a = (scmp_datum_t) families[i / 2 % 2] },
			{ .arg = 1,
			  .op = SCMP_CMP_MASKED_EQ,
			  .datum_a = SOCKET_KIND,
			  .datum_b = (scmp_datum_t) kinds[i % 2] },
			{ .arg = 2, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t) protocol },
		};
		int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
		                               compare);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Not so that they connect, past landlock's rule for ports. */
static int add_sending(scmp_filter_ctx filter)
{
	const struct {
		int number;
		unsigned flags; /* which argument */
	} sending[] = { { SCMP_SYS(sendto), 3 },
		        { SCMP_SYS(sendmsg), 2 },
		        { SCMP_SYS(sendmmsg), 3 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(sending) / sizeof(sending[0]); i++)
		r = filter_add_if(filter, SCMP_ACT_ALLOW, sending[i].number, sending[i].flags,
		                  SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0);
	return r;
}

/* The library that asks name servers (c-ares) sets up its sockets so. */
static const uint32_t fcntl_of_any[] = { F_GETFD, F_SETFD, F_GETFL };

/*
 * F_SETFL not of the rows: what was appended stays.  Of a descriptor, too, the kernel looks at the lower half
 * only, so "another than the rows" is said bit by bit: it has one that their number has not.
 */
static int add_fcntl(scmp_filter_ctx filter)
{
	int r = filter_add_values(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, fcntl_of_any,
	                          sizeof(fcntl_of_any) / sizeof(fcntl_of_any[0]));

	for (scmp_datum_t bit = 1; r == 0 && bit < CONFINE_FILES; bit <<= 1) {
		const struct scmp_arg_cmp compare[] = {
			{ .arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = bit, .datum_b = bit },
			{ .arg = 1,
			  .op = SCMP_CMP_MASKED_EQ,
			  .datum_a = UINT32_MAX,
			  .datum_b = F_SETFL },
		};

		if (!(ROWS & bit))
			r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 2,
			                           compare);
	}
	return r;
}

static int add_conditions(scmp_filter_ctx filter)
{
	const uint32_t allow = SCMP_ACT_ALLOW;
	int r = add_sockets(filter);

	if (r == 0)
		r = add_sending(filter);

	/* abort() */
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(tgkill), 0, SCMP_CMP_EQ,
		                  (scmp_datum_t) getpid(), 0);
	/* No new code. */
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(mmap), 2, SCMP_CMP_MASKED_EQ, PROT_EXEC,
		                  0);
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(mprotect), 2, SCMP_CMP_MASKED_EQ,
		                  PROT_EXEC, 0);
	return r == 0 ? add_fcntl(filter) : r;
}

/* Anything else fails with EPERM: a C library that tries a newer call first goes on with the old one. */
static int allow_calls(void)
{
	CLEANUP(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return -ENOMEM;
	r = filter_add_names(filter, SCMP_ACT_ALLOW, calls);
	if (r == 0)
		r = filter_add_names(filter, SCMP_ACT_ALLOW, filter_plain_calls);
	if (r == 0)
		r = add_conditions(filter);
	return r < 0 ? r : filter_load(filter);
}

int gateway_confine(const struct gateway_config *config, struct resoluto_err *err)
{
	int r = set_limits();

	if (r < 0)
		return resoluto_fail(err, r, "set limits");
	drop_bounding_set();
	r = become(config->uid);
	if (r < 0)
		return resoluto_fail(err, r, "become user %u", (unsigned) config->uid);
	r = drop_capabilities();
	if (r < 0)
		return resoluto_fail(err, r, "drop capabilities");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return resoluto_fail(err, -errno, "become not dumpable");
	r = give_up_files(config);
	if (r < 0)
		return resoluto_fail(err, r, "give up files by landlock");
	r = allow_calls();
	return r < 0 ? resoluto_fail(err, r, "give up system calls by seccomp") : 0;
}
