/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - from a launch spec to a shim that owns a QEMU.
 *
 * Everything that can be refused is refused before the run directory is claimed; everything the shim needs
 * is a descriptor.  What fails half way undoes itself: run_end() and microvm_drop_claim() accept
 * a run in any state.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "base/quantity.h"
#include "conduit/local.h"
#include "runtime/launch_spec.h"
#include "runtime/microvm/door.h"
#include "runtime/microvm/files.h"
#include "runtime/microvm/gateway.h"
#include "runtime/microvm/host.h"
#include "runtime/microvm/images.h"
#include "runtime/microvm/inbox.h"
#include "runtime/microvm/job.h"
#include "runtime/microvm/kernel.h"
#include "runtime/microvm/microvm.h"
#include "runtime/microvm/run.h"
#include "runtime/microvm/shim_config.h"
#include "runtime/microvm/tsc.h"
#include "wire/chunk_writer.h"

#define PROVISION "run scripts/local-backend-up.sh"

enum {
	/* From QEMU's start to HELLO: an emulated boot on a busy machine takes half a minute. */
	BOOT_LIMIT_MS = 120 * 1000,
	BOOT_LIMIT_MIN_MS = 1000,
	BOOT_LIMIT_MAX_MS = 60 * 60 * 1000,
	SHIM_FDS_ALWAYS = 13, /* descriptors of a shim that every run has */
};

/* Descriptors on their way to the shim. */
struct files {
	int config, job, kernel, initrd, rootfs, inbox, scratch;
	int socket; /* the shim's end */
	int door;
	int net; /* QEMU's end of the gateway's socket; -1 without egress */
};

#define FILES_NONE ((struct files){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 })

static void files_done(struct files *files)
{
	int *const all[] = { &files->config, &files->job,   &files->kernel,  &files->initrd,
		             &files->rootfs, &files->inbox, &files->scratch, &files->socket,
		             &files->door,   &files->net };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fd_close(all[i]);
}

/* --- claims --- */

struct claim *microvm_find_claim(struct microvm *microvm, const char *id)
{
	for (struct claim *claim = microvm->claims; claim; claim = claim->next) {
		if (strcmp(claim->id, id) == 0)
			return claim;
	}
	return NULL;
}

int microvm_add_claim(struct microvm *microvm, const char *id, struct claim **ret_claim,
                      struct resoluto_err *err)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	int r;

	if (!claim)
		return resoluto_fail(err, -ENOMEM, "claim the run");
	snprintf(claim->id, sizeof(claim->id), "%s", id);
	claim->dir = RUNDIR_NONE;
	r = rundir_claim(microvm->state_dir, id, &claim->dir, err);
	if (r < 0) {
		free(claim);
		return r;
	}
	claim->next = microvm->claims;
	microvm->claims = claim;
	*ret_claim = claim;
	return 0;
}

int microvm_drop_claim(struct microvm *microvm, struct claim *claim, struct resoluto_err *err)
{
	struct claim **at = &microvm->claims;
	int r = rundir_remove(microvm->state_dir, claim->id, &claim->dir, err);

	while (*at != claim)
		at = &(*at)->next;
	*at = claim->next;
	free(claim);
	return r;
}

/* The caller's claim, or a new one. */
static int use_claim(struct microvm *microvm, const char *id, struct claim **ret_claim,
                     struct resoluto_err *err)
{
	struct claim *claim = microvm_find_claim(microvm, id);
	int r = 0;

	if (claim && claim->is_in_use)
		return resoluto_fail(err, -EEXIST, "run %s is running already", id);
	if (!claim)
		r = microvm_add_claim(microvm, id, &claim, err);
	if (r < 0)
		return r;
	claim->is_in_use = true;
	*ret_claim = claim;
	return 0;
}

/* --- what is asked for --- */

static int check_kvm(struct shim_config *config, struct resoluto_err *err)
{
	const struct host_kvm kvm = host_kvm();

	switch (kvm.state) {
	case KVM_USABLE:
		config->kvm_gid = kvm.gid;
		return 0;
	case KVM_OTHER:
		return resoluto_fail(err, -EOPNOTSUPP,
		                     "/dev/kvm, which provisioning recorded "
		                     "(RESOLUTO_LOCAL_ACCEL=kvm), is not KVM: " PROVISION " again");
	case KVM_ROOTS_ALONE:
		return resoluto_fail(err, -EACCES,
		                     "/dev/kvm is root's alone, but QEMU does not run as root: "
		                     "chgrp kvm /dev/kvm && chmod 660 /dev/kvm");
	default:
		return resoluto_fail(
			err, kvm.code,
			"open /dev/kvm, which provisioning recorded (RESOLUTO_LOCAL_ACCEL=kvm): "
			"join its group, or " PROVISION " again");
	}
}

static int check_accel(const struct microvm *microvm, struct shim_config *config,
                       struct resoluto_err *err)
{
	if (!microvm->accel)
		return resoluto_fail(err, -EINVAL,
		                     "RESOLUTO_LOCAL_ACCEL is not set: " PROVISION
		                     ", which finds out what works here");
	config->accel = accel_from_name(microvm->accel);
	if (config->accel == ACCEL_COUNT)
		return resoluto_fail(err, -EINVAL, "RESOLUTO_LOCAL_ACCEL=%s is neither kvm nor tcg",
		                     microvm->accel);
	return config->accel == ACCEL_KVM ? check_kvm(config, err) : 0;
}

int microvm_check_resources(const struct resoluto_resources *resources, struct resoluto_err *err)
{
	struct host_memory memory;
	struct machine_size size;
	int r;

	/* The launch looks again, and says so. */
	if (host_memory(&memory, NULL) < 0)
		return 0;
	r = machine_size_from(resources->memory_bytes, resources->cpu_milli, memory.total, &size,
	                      err);
	if (r < 0 || resources->disk_bytes == 0)
		return r;
	return scratch_check(resources->disk_bytes, err);
}

static int check_size(const struct resoluto_launch_spec *spec, const struct host_memory *memory,
                      struct shim_config *config, struct resoluto_err *err)
{
	struct machine_size size;
	int r = machine_size_from(spec->resources.memory_bytes, spec->resources.cpu_milli,
	                          memory->total, &size, err);

	if (r < 0)
		return r;
	config->memory_mib = size.memory_mib;
	config->cpus = size.cpus;
	config->has_scratch = spec->resources.disk_bytes > 0;
	config->scratch_bytes = spec->resources.disk_bytes;
	return 0;
}

static int check_tsc(const struct microvm *microvm, struct shim_config *config,
                     struct resoluto_err *err)
{
	if (!machine_needs_tsc(microvm->row, config->accel))
		return 0;
	return tsc_khz(microvm->state_dir, config->host_boot_id, &config->tsc_khz, err);
}

static int check_boot_limit(const struct microvm *microvm, struct shim_config *config,
                            struct resoluto_err *err)
{
	const char *text = config_get(microvm->config, "RESOLUTO_LOCAL_BOOT_LIMIT");

	config->boot_limit_ms = BOOT_LIMIT_MS;
	if (!text || !*text)
		return 0;
	if (quantity_parse_duration(text, &config->boot_limit_ms, NULL) < 0 ||
	    config->boot_limit_ms < BOOT_LIMIT_MIN_MS || config->boot_limit_ms > BOOT_LIMIT_MAX_MS)
		return resoluto_fail(err, -EINVAL,
		                     "RESOLUTO_LOCAL_BOOT_LIMIT=%s is not a time from 1s to 1h, as "
		                     "in 120s",
		                     text);
	return 0;
}

static int fill_config(struct microvm *microvm, const struct resoluto_launch_spec *spec,
                       const struct host_memory *memory, struct shim_config *config,
                       struct resoluto_err *err)
{
	int r;

	if (!microvm->kernel || !microvm->initrd)
		return resoluto_fail(err, -EINVAL, "%s is not set: " PROVISION,
		                     microvm->kernel ? "RESOLUTO_LOCAL_INITRD"
		                                     : "RESOLUTO_LOCAL_KERNEL");
	snprintf(config->run_id, sizeof(config->run_id), "%s", spec->id);
	snprintf(config->machine, sizeof(config->machine), "%s", machine_name(microvm->row));
	if ((size_t) snprintf(config->qemu, sizeof(config->qemu), "%s", microvm->qemu) >=
	    sizeof(config->qemu))
		return resoluto_fail(err, -ENAMETOOLONG, "the path of QEMU is too long");
	config->deadline_ms = spec->deadline_ms;
	config->dead_after_ms = spec->dead_after_ms;
	config->quotas = spec->quotas;
	config->has_net = gateway_is_needed(spec);
	config->drops_objects = spec->drops_objects;
	r = check_accel(microvm, config, err);
	if (r == 0)
		r = check_size(spec, memory, config, err);
	if (r == 0)
		r = check_boot_limit(microvm, config, err);
	if (r == 0)
		r = host_boot_id(config->host_boot_id, err);
	return r < 0 ? r : check_tsc(microvm, config, err);
}

/* Three of them before a silent sandbox is given up; 0: the guest's own come often enough. */
static uint64_t heartbeat_ms(uint64_t dead_after_ms)
{
	const uint64_t third = dead_after_ms / 3;

	if (dead_after_ms == 0 || third >= CHUNK_HEARTBEAT_MS)
		return 0;
	return third > CHUNK_HEARTBEAT_MIN_MS ? third : CHUNK_HEARTBEAT_MIN_MS;
}

static int make_job(const struct resoluto_launch_spec *spec, const struct shim_config *config,
                    struct files *files, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(0);
	struct job job = {
		.env = spec->env,
		.host_boot_id = config->host_boot_id,
		.has_stdin = spec->has_stdin,
		.has_scratch = config->has_scratch,
		.heartbeat_ms = heartbeat_ms(spec->dead_after_ms),
		.has_egress = config->has_net,
		.egress_allow = spec->egress_allow,
		.egress_learn = spec->egress_learn,
		.egress_wide = spec->egress_wide,
	};
	int r = inbox_has_archives(spec->conduit, spec->store_prefix, &job.has_inbox, err);

	if (r == 0)
		r = job_write(&job, &json, err);
	if (r < 0)
		return r;
	files->job = file_in_memory("resoluto-job", json.data, json.len, err);
	return files->job < 0 ? files->job : 0;
}

static int read_uids(const struct microvm *microvm, struct uid_range *ret_range,
                     struct resoluto_err *err)
{
	const char *uids = config_get(microvm->config, "RESOLUTO_LOCAL_UIDS");

	if (!uids || !*uids)
		return resoluto_fail(err, -EPERM,
		                     "root runs microVMs as users of their own, and "
		                     "RESOLUTO_LOCAL_UIDS=FIRST-LAST "
		                     "does not say which: " PROVISION);
	return uid_range_parse(uids, ret_range, err);
}

/* As root a run also gets a user that no other run has. */
static int take_slot(struct microvm *microvm, const struct host_memory *memory, struct run *run,
                     struct shim_config *config, struct resoluto_err *err)
{
	const bool is_root = geteuid() == 0;
	struct uid_range range;
	unsigned count;
	int r = slot_count(config_get(microvm->config, "RESOLUTO_LOCAL_MAX_RUNS"),
	                   memory->available, &count, err);

	if (r == 0 && is_root)
		r = read_uids(microvm, &range, err);
	if (r == 0)
		r = slot_try(microvm->state_dir, count, &run->slot, err);
	if (r == 0 && is_root)
		r = slot_take_uid(&run->slot, UID_LOCKS_TOP, &range, err);
	if (r == 0 && is_root)
		config->uid = run->slot.uid;
	return r;
}

/* --- files --- */

static int open_images(const struct microvm *microvm, const struct resoluto_launch_spec *spec,
                       struct files *files, struct resoluto_err *err)
{
	const bool for_others = geteuid() == 0;
	int r = image_open(microvm->kernel, IMAGE_KERNEL, for_others, &files->kernel, err);

	if (r == 0)
		r = image_open(microvm->initrd, IMAGE_INITRD, for_others, &files->initrd, err);
	return r < 0 ? r : image_open(spec->image, IMAGE_ROOTFS, false, &files->rootfs, err);
}

static int open_prefix(const struct resoluto_launch_spec *spec, struct run *run,
                       struct resoluto_err *err)
{
	int root = conduit_local_root(spec->conduit), r;

	if (root < 0)
		return resoluto_fail(err, -EINVAL,
		                     "a microVM needs a conduit that is a local directory");
	r = mkdirs_beneath(root, spec->store_prefix, 0700);
	if (r < 0)
		return resoluto_fail(err, r, "make %s in the conduit", spec->store_prefix);
	run->prefix_fd = open_beneath(root, spec->store_prefix, O_RDONLY | O_DIRECTORY, 0);
	if (run->prefix_fd < 0)
		return resoluto_fail(err, run->prefix_fd, "open %s in the conduit",
		                     spec->store_prefix);
	return 0;
}

static int build_disks(const struct resoluto_launch_spec *spec, struct run *run,
                       struct files *files, struct resoluto_err *err)
{
	int r = inbox_build(spec->conduit, spec->store_prefix, run->claim->dir.fd, &files->inbox,
	                    err);

	if (r == 0 && spec->resources.disk_bytes > 0)
		r = scratch_build(run->claim->dir.fd, spec->resources.disk_bytes, &files->scratch,
		                  err);
	return r;
}

/* The door of a boot before this one leads nowhere. */
static int make_door(const struct run *run, struct files *files, struct resoluto_err *err)
{
	(void) unlinkat(run->claim->dir.fd, DOOR_NAME, 0);
	return door_make(run->claim->dir.fd, &files->door, err);
}

/* rundir.h says why the sticky bit. */
static int hand_over(const struct run *run, const struct shim_config *config,
                     struct resoluto_err *err)
{
	const int dir = run->claim->dir.fd;

	if (!config->uid)
		return 0;
	if (fchown(dir, 0, config->uid) < 0 || fchmod(dir, 01770) < 0 ||
	    fchown(run->prefix_fd, config->uid, config->uid) < 0)
		return resoluto_fail(err, -errno, "give the run's directories to user %u",
		                     (unsigned) config->uid);
	return 0;
}

static int start_gateway(struct microvm *microvm, const struct resoluto_launch_spec *spec,
                         const struct shim_config *config, struct run *run, struct files *files,
                         struct resoluto_err *err)
{
	CLEANUP(mem_free) char *program = NULL;
	const char *proxy = spec->egress_proxy
	                            ? spec->egress_proxy
	                            : config_get(microvm->config, "RESOLUTO_EGRESS_PROXY");
	struct gateway gateway = { .spec = spec,
		                   .proxy = proxy && proxy[0] ? proxy : NULL,
		                   .uid = config->uid,
		                   .rundir_fd = run->claim->dir.fd };
	int r;

	if (!config->has_net)
		return 0;
	r = config_find_helper(microvm->config, GATEWAY_PROGRAM, &program, err);
	if (r < 0)
		return r;
	gateway.program = program;
	return gateway_start(&gateway, &run->gateway, &files->net, err);
}

static int make_config(const struct shim_config *config, struct files *files,
                       struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(SHIM_CONFIG_MAX);
	int r = shim_config_write(&json, config);

	if (r < 0)
		return resoluto_fail(err, r, "write the shim's configuration");
	files->config = file_in_memory("resoluto-shim", json.data, json.len, err);
	return files->config < 0 ? files->config : 0;
}

/* --- the shim --- */

static int spawn_shim(const struct microvm *microvm, struct run *run, const struct files *files,
                      bool is_orphan, struct resoluto_err *err)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	const char *const argv[] = { microvm->shim, NULL };
	const int uid_lock = run->slot.uid_fd < 0 ? run->slot.fd : run->slot.uid_fd;
	struct proc_fd fds[SHIM_FD_END] = {
		{ files->socket, SHIM_FD_CALLER },  { files->config, SHIM_FD_CONFIG },
		{ files->job, SHIM_FD_JOB },        { run->claim->dir.fd, SHIM_FD_RUN },
		{ run->prefix_fd, SHIM_FD_PREFIX }, { run->claim->dir.lock, SHIM_FD_LOCK },
		{ run->slot.fd, SHIM_FD_SLOT },     { uid_lock, SHIM_FD_UID },
		{ files->door, SHIM_FD_DOOR },      { files->kernel, SHIM_FD_KERNEL },
		{ files->initrd, SHIM_FD_INITRD },  { files->rootfs, SHIM_FD_ROOTFS },
		{ files->inbox, SHIM_FD_INBOX },
	};
	size_t count = SHIM_FDS_ALWAYS;

	if (files->scratch >= 0)
		fds[count++] = (struct proc_fd){ files->scratch, SHIM_FD_SCRATCH };
	if (files->net >= 0)
		fds[count++] = (struct proc_fd){ files->net, SHIM_FD_NET };
	/* A session of its own: the terminal's Ctrl-C is for the caller. */
	return proc_spawn(&(struct proc_options){ .argv = argv,
	                                          .env = env,
	                                          .fds = fds,
	                                          .fd_count = count,
	                                          .new_session = true,
	                                          .is_orphan = is_orphan },
	                  &run->shim, err);
}

static int start_shim(const struct microvm *microvm, struct run *run, struct files *files,
                      bool is_orphan, struct resoluto_err *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket for the shim");
	run->socket = pair[0];
	files->socket = pair[1];
	r = spawn_shim(microvm, run, files, is_orphan, err);
	files_done(files);
	return r;
}

static void path_of_fd(int fd, char ret_path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, PATH_MAX - 1);
	ret_path[n > 0 ? n : 0] = '\0';
}

/* Its first hint says that QEMU runs and that it has locked itself down. */
static int await_shim(struct run *run, uint64_t limit_ms, struct resoluto_err *err)
{
	struct run_state state;
	int r = run_wait_news(run, 0, (int) shim_start_limit_ms(limit_ms));

	if (r < 0)
		return resoluto_fail(
			err, r,
			"hear from resoluto-shim, which starts QEMU (RESOLUTO_LOCAL_BOOT_LIMIT)");
	if (!run->has_ended)
		return 0;
	r = run_read_state(run, &state, err);
	if (r < 0)
		return r;
	/* A guest that has ended already is no failure of the launch. */
	if (strcmp(state.reason, "refused") != 0 && strcmp(state.reason, "shim-killed") != 0)
		return 0;
	return resoluto_fail(err, -EOPNOTSUPP, "start the microVM: %s",
	                     state.detail[0] ? state.detail : "the shim ended without a word");
}

static int record(const struct resoluto_launch_spec *spec, const struct shim_config *config,
                  const struct run *run, struct resoluto_err *err)
{
	char objects[PATH_MAX];
	struct run_record record = {
		.id = spec->id,
		.labels = spec->labels,
		.image = spec->image,
		.created = clock_wall(),
		.caller_pid = getpid(),
		.shim_pid = run->shim.pid,
		.boot_id = config->host_boot_id,
		.accel = run->accel,
		.kernel = run->kernel,
		.objects = objects,
	};

	path_of_fd(run->prefix_fd, objects);

	/* One that is gone already has no start time, and needs none. */
	(void) proc_start_time(record.caller_pid, &record.caller_start);
	(void) proc_start_time(record.shim_pid, &record.shim_start);
	return run_record_write(run->claim->dir.fd, &record, err);
}

static int start(struct microvm *microvm, const struct resoluto_launch_spec *spec,
                 const struct shim_config *config, struct run *run, struct files *files,
                 struct resoluto_err *err)
{
	int r = open_prefix(spec, run, err);

	if (r == 0)
		r = build_disks(spec, run, files, err);
	if (r == 0)
		r = make_door(run, files, err);
	if (r == 0)
		r = run_state_reserve(run->claim->dir.fd, config->uid, err);
	if (r == 0)
		r = hand_over(run, config, err);
	if (r == 0)
		r = start_gateway(microvm, spec, config, run, files, err);
	if (r == 0)
		r = make_config(config, files, err);
	if (r == 0)
		r = start_shim(microvm, run, files, spec->outlives_caller, err);
	if (r == 0)
		r = record(spec, config, run, err);
	return r < 0 ? r : await_shim(run, config->boot_limit_ms, err);
}

static void give_up(struct microvm *microvm, struct run *run)
{
	struct claim *claim = run->claim;

	run_end(run);
	free(run);
	if (!claim)
		return;
	claim->is_in_use = false;
	if (!claim->is_callers)
		(void) microvm_drop_claim(microvm, claim, NULL);
}

static int prepare(struct microvm *microvm, const struct resoluto_launch_spec *spec,
                   struct shim_config *config, struct run *run, struct files *files,
                   struct resoluto_err *err)
{
	struct host_memory memory;
	int r;

	if (!microvm->row)
		return resoluto_fail(err, -EOPNOTSUPP, "this runtime was opened to read only");
	r = host_memory(&memory, err);
	if (r == 0)
		r = fill_config(microvm, spec, &memory, config, err);
	if (r == 0)
		r = open_images(microvm, spec, files, err);
	if (r == 0)
		r = make_job(spec, config, files, err);
	return r < 0 ? r : take_slot(microvm, &memory, run, config, err);
}

static int launch(struct microvm *microvm, const struct resoluto_launch_spec *spec,
                  struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	CLEANUP(files_done) struct files files = FILES_NONE;
	struct shim_config config = { 0 };
	struct run *run = malloc(sizeof(*run));
	int r;

	if (!run)
		return resoluto_fail(err, -ENOMEM, "launch");
	run_init(run, NULL);
	r = prepare(microvm, spec, &config, run, &files, err);
	if (r == 0)
		r = use_claim(microvm, spec->id, &run->claim, err);
	if (r == 0) {
		kernel_describe(microvm->kernel, microvm->row, run->kernel);
		snprintf(run->accel, sizeof(run->accel), "%s", microvm->accel);
		r = start(microvm, spec, &config, run, &files, err);
	}
	if (r < 0) {
		/* A gateway ends with QEMU's end of its socket. */
		files_done(&files);
		give_up(microvm, run);
		return r;
	}
	run->stdin_is_closed = !spec->has_stdin;
	run->next = microvm->runs;
	microvm->runs = run;
	snprintf(ret_handle->id, sizeof(ret_handle->id), "%s", spec->id);
	ret_handle->state = run;
	return 0;
}

int microvm_launch(struct resoluto_runtime *runtime, const struct resoluto_launch_spec *spec,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct checked_spec checked;
	int r = runtime_check_spec(spec, &checked, err);

	return r < 0 ? r : launch((struct microvm *) runtime, &checked.spec, ret_handle, err);
}
