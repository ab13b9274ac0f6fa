/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "shim/confine.h"
#include "shim/launcher.h"
#include "shim/shim.h"

/* Numbers in QEMU. */
enum qemu_fd {
	QEMU_FD_KERNEL = 3,
	QEMU_FD_INITRD,
	QEMU_FD_ROOTFS,
	QEMU_FD_INBOX,
	QEMU_FD_QMP,
	QEMU_FD_CONSOLE,
	QEMU_FD_CONTROL,
	QEMU_FD_CONDUIT,
	QEMU_FD_SCRATCH,
	QEMU_FD_NET,
	QEMU_FD_END,
};

enum { QEMU_FDS_ALWAYS = 8 }; /* of them, that every run has */

static int read_config(struct shim *shim, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(SHIM_CONFIG_MAX);
	int r = read_rest(SHIM_FD_CONFIG, &json);

	if (r < 0 || !json.data)
		return resoluto_fail(err, r < 0 ? r : -EINVAL, "read the shim's configuration");
	r = shim_config_parse(json.data, json.len, &shim->config, err);
	if (r == 0)
		shim->ending.leaves_by_reset = machine_leaves_by_reset(
			machine_find(shim->config.machine));
	return r;
}

/* What is handed on must not leak into anything else that is ever executed. */
static int close_on_exec(void)
{
	for (int fd = SHIM_FD_CALLER; fd < SHIM_FD_END; fd++) {
		if (fd_set_cloexec(fd, 1) < 0 && fd != SHIM_FD_SCRATCH && fd != SHIM_FD_NET)
			return -EBADF;
	}
	return 0;
}

int shim_open(struct shim *shim, struct resoluto_err *err)
{
	struct stat job;
	int r = close_on_exec();

	if (r < 0)
		return resoluto_fail(err, r, "this program is started by libresoluto-sandbox only");
	r = read_config(shim, err);
	if (r < 0)
		return r;
	if (fstat(SHIM_FD_JOB, &job) < 0)
		return resoluto_fail(err, -errno, "look at the job");
	shim->job_size = (uint64_t) job.st_size;
	r = loop_new(&shim->loop);
	if (r < 0)
		return resoluto_fail(err, r, "make an event loop");
	channel_init(&shim->caller, SHIM_FD_CALLER, shim_caller_event, shim);
	shim->door_watch = (struct loop_watch){ .fd = SHIM_FD_DOOR,
		                                .events = EPOLLIN,
		                                .fn = shim_door_event,
		                                .ctx = shim };
	return 0;
}

/* /dev/kvm needs its group; nothing else is kept. */
static int drop_groups(const struct shim_config *config)
{
	const gid_t kvm = config->kvm_gid;

	return setgroups(kvm ? 1 : 0, &kvm) < 0 ? -errno : 0;
}

int shim_drop_rights(struct shim *shim, struct resoluto_err *err)
{
	const uid_t uid = shim->config.uid;
	unsigned landlock;
	char word[STATE_WORD_MAX];
	int r = confine_check(&landlock, err);

	if (r < 0)
		return r;
	if (uid) {
		r = drop_groups(&shim->config);
		if (r == 0 && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
			r = -errno;
		if (r == 0 && (getuid() != uid || setuid(0) == 0))
			r = -EPERM;
		if (r < 0)
			return resoluto_fail(err, r, "become user %u", (unsigned) uid);
		snprintf(word, sizeof(word), "uid-%u", (unsigned) uid);
		run_state_add_confinement(&shim->state, word);
	}
	if (geteuid() == 0)
		return resoluto_fail(err, -EPERM, "the shim must not stay root");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return resoluto_fail(err, -errno, "set no_new_privs");
	run_state_add_confinement(&shim->state, "no-new-privs");
	snprintf(word, sizeof(word), "landlock-%u", landlock);
	run_state_add_confinement(&shim->state, word);
	run_state_add_confinement(&shim->state, "seccomp");
	run_state_add_confinement(&shim->state, "qemu-sandbox");
	run_state_add_confinement(&shim->state, "rlimits");
	return 0;
}

/* Our end becomes a channel, the other end is *ret_theirs. */
static int make_channel(struct channel *channel, loop_fn *fn, struct shim *shim, int *ret_theirs)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	channel_init(channel, pair[0], fn, shim);
	*ret_theirs = pair[1];
	return channel_watch(channel, shim->loop);
}

struct ends {
	int qmp, console, control, conduit, emulator;
};

static void ends_done(struct ends *ends)
{
	fd_close(&ends->qmp);
	fd_close(&ends->console);
	fd_close(&ends->control);
	fd_close(&ends->conduit);
	fd_close(&ends->emulator);
}

static int make_channels(struct shim *shim, struct ends *ends)
{
	int r = make_channel(&shim->monitor, shim_monitor_event, shim, &ends->qmp);

	if (r == 0)
		r = make_channel(&shim->console, shim_console_event, shim, &ends->console);
	if (r == 0)
		r = make_channel(&shim->control, shim_control_event, shim, &ends->control);
	if (r == 0)
		r = make_channel(&shim->conduit, shim_conduit_event, shim, &ends->conduit);
	if (r == 0)
		r = make_channel(&shim->emulator, shim_emulator_event, shim, &ends->emulator);
	return r;
}

static int build_argv(const struct shim_config *config, struct strv *ret_argv)
{
	const struct cmdline_input input = {
		.row = machine_find(config->machine),
		.accel = config->accel,
		.run_id = config->run_id,
		.memory_mib = config->memory_mib,
		.cpus = config->cpus,
		.tsc_khz = config->tsc_khz,
		.fds = { .kernel = QEMU_FD_KERNEL,
		         .initrd = QEMU_FD_INITRD,
		         .rootfs = QEMU_FD_ROOTFS,
		         .inbox = QEMU_FD_INBOX,
		         .scratch = config->has_scratch ? QEMU_FD_SCRATCH : -1,
		         .qmp = QEMU_FD_QMP,
		         .console = QEMU_FD_CONSOLE,
		         .control = QEMU_FD_CONTROL,
		         .conduit = QEMU_FD_CONDUIT,
		         .net = config->has_net ? QEMU_FD_NET : -1 },
	};

	return cmdline_build(&input, config->qemu, ret_argv);
}

/* What there need not be. */
static size_t add_optional(const struct shim_config *config, struct proc_fd *fds, size_t count)
{
	if (config->has_scratch)
		fds[count++] = (struct proc_fd){ SHIM_FD_SCRATCH, QEMU_FD_SCRATCH };
	if (config->has_net)
		fds[count++] = (struct proc_fd){ SHIM_FD_NET, QEMU_FD_NET };
	return count;
}

static int spawn(struct shim *shim, const struct ends *ends, struct resoluto_err *err)
{
	CLEANUP(strv_done) struct strv argv = { 0 };
	const struct shim_config *config = &shim->config;
	struct proc_fd fds[QEMU_FD_END] = {
		{ SHIM_FD_KERNEL, QEMU_FD_KERNEL }, { SHIM_FD_INITRD, QEMU_FD_INITRD },
		{ SHIM_FD_ROOTFS, QEMU_FD_ROOTFS }, { SHIM_FD_INBOX, QEMU_FD_INBOX },
		{ ends->qmp, QEMU_FD_QMP },         { ends->console, QEMU_FD_CONSOLE },
		{ ends->control, QEMU_FD_CONTROL }, { ends->conduit, QEMU_FD_CONDUIT },
	};
	const size_t count = add_optional(config, fds, QEMU_FDS_ALWAYS);
	int r = build_argv(config, &argv);

	if (r < 0)
		return resoluto_fail(err, r, "build QEMU's command line");
	return launcher_start(
		&(struct launcher){
			.program = config->qemu,
			.argv = (const char *const *) argv.items,
			.fds = fds,
			.fd_count = count,
			.kernel_fd = SHIM_FD_KERNEL,
			.initrd_fd = SHIM_FD_INITRD,
			.stderr_fd = ends->emulator,
			.needs_kvm = config->accel == ACCEL_KVM,
			.file_size_max = config->scratch_bytes,
		},
		&shim->qemu, err);
}

/* The files are QEMU's now; the shim keeps what it writes to, the locks and the job. */
static void close_images(const struct shim_config *config)
{
	for (int fd = SHIM_FD_KERNEL; fd < SHIM_FD_SCRATCH; fd++)
		(void) close(fd);
	/* Without these their numbers are those of something else. */
	if (config->has_scratch)
		(void) close(SHIM_FD_SCRATCH);
	if (config->has_net)
		(void) close(SHIM_FD_NET);
	(void) close(SHIM_FD_CONFIG);
}

int shim_start_qemu(struct shim *shim, struct resoluto_err *err)
{
	CLEANUP(ends_done) struct ends ends = { -1, -1, -1, -1, -1 };
	const struct shim_config *config = &shim->config;
	int r = make_channels(shim, &ends);

	if (r < 0)
		return resoluto_fail(err, r, "make sockets for QEMU");
	r = spawn(shim, &ends, err);
	if (r < 0)
		return r;
	close_images(config);
	shim->state.qemu_pid = shim->qemu.pid;
	shim->qemu_watch = (struct loop_watch){ .fd = shim->qemu.pidfd,
		                                .events = EPOLLIN,
		                                .fn = shim_qemu_event,
		                                .ctx = shim };
	r = loop_add(shim->loop, &shim->qemu_watch);
	if (r == 0)
		r = channel_watch(&shim->caller, shim->loop);
	if (r == 0)
		r = loop_add(shim->loop, &shim->door_watch);
	if (r == 0)
		r = buf_add_str(&shim->monitor.out, QMP_HELLO);
	if (r == 0)
		r = channel_flush(&shim->monitor);
	return r < 0 ? resoluto_fail(err, r, "watch QEMU") : 0;
}

int shim_lock_down(struct shim *shim, struct resoluto_err *err)
{
	CLEANUP(fd_close) int ruleset = -1;
	const struct confine_place places[] = {
		{ NULL, SHIM_FD_RUN, CONFINE_TREE },
		{ NULL, SHIM_FD_PREFIX, CONFINE_TREE },
	};
	int r = confine_ruleset(places, 2, false, &ruleset, err);

	if (r < 0)
		return r;
	r = confine_enter(ruleset);
	if (r == 0)
		r = confine_shim_calls(shim->qemu.pidfd);
	return r < 0 ? resoluto_fail(err, r, "lock the shim down") : 0;
}

void shim_done(struct shim *shim)
{
	proc_done(&shim->qemu);
	store_done(&shim->store);
	channel_done(&shim->monitor);
	channel_done(&shim->console);
	channel_done(&shim->control);
	channel_done(&shim->conduit);
	channel_done(&shim->emulator);
	qmp_done(&shim->qmp);
	buf_done(&shim->stdin_bytes);
	loop_remove(&shim->door_watch);
	buf_done(&shim->door_in);
	/* Last: its end tells the caller that everything else is over. */
	channel_done(&shim->caller);
	loop_free(&shim->loop);
}
