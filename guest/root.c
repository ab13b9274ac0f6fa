/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/early.h"
#include "guest/egress_files.h"
#include "guest/inputs.h"
#include "guest/kernel_check.h"
#include "guest/mounts.h"
#include "guest/prefetch.h"
#include "guest/program.h"
#include "guest/root.h"

enum {
#ifdef __SANITIZE_THREAD__
	STACK_BYTES = 2 * 1024 * 1024, /* the sanitizer keeps its own there, too */
#else
	STACK_BYTES = 256 * 1024,
#endif
};

/* Of the only such thread; not the C library's, which would be mapped and guarded first. */
static _Alignas(4096) char stack[STACK_BYTES];

/* What does not depend on the job. */
static int build(struct root *root, struct kernel_done *ret_done, struct resoluto_err *err)
{
	struct early early;
	int r = early_take(&early, &root->early_lock, err);

	if (r < 0)
		return r;
	*ret_done = early.kernel;
	root->has_scratch = early.has_scratch;
	r = cgroup_create(&root->cgroup, err);
	if (r < 0)
		return r;
	if (early.inbox[0])
		root->inbox_disk = r = inputs_open_disk(early.inbox, err);
	return r < 0 ? r : 0;
}

/* What the kernel lacks is said by the name of its option: a file system, the driver of the disks, the network. */
static int explain(int r, struct resoluto_err *err)
{
	CLEANUP(fd_close) int old_root = -1;

	if (r == 0)
		return 0;
	old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old_root >= 0 && kernel_check(old_root, err) < 0)
		dprintf(STDERR_FILENO, "resoluto-runner: %s\n", err->text);
	return r;
}

/* While the host is asked for the job.  Settings of drivers that had not started when /early said the others; then inside, since the
 * image's links mean its own root. */
static int look_in(struct kernel_done *done, struct image_users *users, struct resoluto_err *err)
{
	int r = mount_set_up_kernel(done, err);

	if (r < 0)
		return r;
	if (unshare(CLONE_FS) < 0 || chroot("/newroot") < 0 || chdir("/") < 0)
		return resoluto_fail(err, -errno, "look into the root of the image");
	r = mount_read_users(users, err);
	/* Of this thread, should it start the program. */
	return r < 0 ? r : program_empty_bounding_set(err);
}

/* The job's own stays as it is: the process may fork meanwhile, and its child walks through it.  Its strings are borrowed, so that they
 * are wiped there. */
static int make_env(struct root *root)
{
	const struct {
		const char *name, *value;
	} defaults[] = {
		{ "PATH", PROGRAM_PATH },
		{ "HOME", root->user.home },
		{ "USER", root->user.name },
		{ "LOGNAME", root->user.name },
	};
	const size_t more = sizeof(defaults) / sizeof(defaults[0]);
	const struct job *job = root->job;
	struct strv *env = &root->env;

	env->items = calloc(job->env.count + more + 1, sizeof(*env->items));
	if (!env->items)
		return -ENOMEM;
	for (; env->count < job->env.count; env->count++)
		env->items[env->count] = job->env.items[env->count];
	for (size_t i = 0; i < more; i++) {
		if (job_env(job, defaults[i].name))
			continue;
		if (asprintf(&env->items[env->count], "%s=%s", defaults[i].name,
		             defaults[i].value) < 0)
			return -ENOMEM;
		env->count++;
	}
	return 0;
}

/* A hook, or inputs, may make what it needs, and a hook's processes are its user's, too; with egress the canary takes so long that
 * it is better to look ahead meanwhile. */
bool root_starts_ahead(const struct job *job)
{
	return job->setup_argv.count == 0 && !job->has_inbox && !job->has_egress;
}

static void describe_program(struct root *root)
{
	const struct job *job = root->job;

	root->program = (struct program){ .argv = &job->argv,
		                          .env = &root->env,
		                          .cwd = job->cwd,
		                          .user = &root->user,
		                          .cgroup = &root->cgroup,
		                          .has_stdin = job->has_stdin,
		                          .gate = root_starts_ahead(job) ? &root->gate : NULL };
}

static int settle_in(struct root *root, struct image_users *users, struct resoluto_err *err)
{
	const struct job *job = root->job;
	int r = mount_settle_user(job->user, users, &root->user, err);

	if (r == 0 && make_env(root) < 0)
		r = resoluto_fail(err, -ENOMEM, "set the environment");
	if (r == 0)
		root->workspace = r = mount_make_owned(job->workspace_dir, &root->user, err);
	if (r >= 0 && job->has_egress)
		r = egress_files_write(err);
	if (r >= 0)
		describe_program(root);
	return r < 0 ? r : 0;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

static void look_ahead(const struct program *program)
{
	struct prefetch prefetch;

	prefetch_open(program->argv->items[0], program_path(program), program->cwd, &prefetch);
	prefetch_read(&prefetch);
}

/* It waits at its gate, and this thread with it. */
static void start_ahead(struct root *root)
{
	root->start_result = program_start(&root->program, &root->child, &root->failure,
	                                   &root->start_err);
	(void) sem_post(&root->has_started);
}

static void *make(void *ctx)
{
	CLEANUP(image_users_done) struct image_users users = { BUF_INIT(0), BUF_INIT(0) };
	struct kernel_done done = { 0 };
	struct root *root = ctx;
	bool is_there;

	identity_read(root->boot_id);
	root->result = explain(build(root, &done, &root->err), &root->err);
	if (root->result == 0)
		root->result = explain(look_in(&done, &users, &root->err), &root->err);
	root->open_result = root->result;
	(void) sem_post(&root->is_open);
	await(&root->has_job);
	if (root->result == 0)
		root->result = settle_in(root, &users, &root->err);
	is_there = root->result == 0;
	(void) sem_post(&root->has_ended);
	if (is_there && root_starts_ahead(root->job))
		start_ahead(root);
	else if (is_there)
		look_ahead(&root->program);
	await(&root->may_end);
	fd_close(&root->early_lock);
	return NULL;
}

int root_begin(struct root *root, struct resoluto_err *err)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	*root = (struct root){ .early_lock = -1,
		               .inbox_disk = -1,
		               .workspace = -1,
		               .cgroup = CGROUP_NONE,
		               .child = PROGRAM_CHILD_NONE };
	(void) sem_init(&root->is_open, 0, 0);
	(void) sem_init(&root->has_job, 0, 0);
	(void) sem_init(&root->has_ended, 0, 0);
	(void) sem_init(&root->has_started, 0, 0);
	(void) sem_init(&root->may_end, 0, 0);
	(void) pthread_attr_init(&attr);
	(void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_attr_setstack(&attr, stack, sizeof(stack));
	if (r == 0)
		r = pthread_create(&thread, &attr, make, root);
	return r > 0 ? resoluto_fail(err, -r, "start a thread") : 0;
}

void root_give_job(struct root *root, const struct job *job)
{
	root->job = job;
	(void) sem_post(&root->has_job);
}

int root_await_image(struct root *root)
{
	await(&root->is_open);
	return root->open_result;
}

int root_await(struct root *root, struct resoluto_err *err)
{
	await(&root->has_ended);
	if (root->result < 0)
		*err = root->err;
	return root->result;
}

int root_await_program(struct root *root, struct program_child *ret_child,
                       struct program_failure *ret_failure, struct resoluto_err *err)
{
	await(&root->has_started);
	*ret_child = root->child;
	*ret_failure = root->failure;
	if (root->start_result < 0)
		*err = root->start_err;
	return root->start_result;
}

void root_let_go(struct root *root)
{
	(void) sem_post(&root->may_end);
}
