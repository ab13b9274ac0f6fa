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
#include "guest/image_path.h"
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
	int r = early_take(&early, err);

	if (r < 0)
		return r;
	*ret_done = early.kernel;
	root->has_scratch = early.has_scratch;
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
	return mount_read_users(users, err);
}

static int settle_in(struct root *root, struct image_users *users, struct resoluto_err *err)
{
	const struct job *job = root->job;
	int r = mount_settle_user(job->user, users, &root->user, err);

	if (r == 0)
		root->workspace = r = mount_make_owned(job->workspace_dir, &root->user, err);
	if (r >= 0 && job->has_egress)
		r = egress_files_write(err);
	/* For the hint; where there is no such directory, the start of the program says so. */
	(void) image_enter(job->cwd);
	return r < 0 ? r : 0;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

/* What the program will need first.  Copied before the process goes on, whose job is its own again then. */
struct hint {
	char *name, *path;
};

static void take_hint(const struct job *job, struct hint *ret)
{
	const char *path = job_env(job, "PATH");

	*ret = (struct hint){ strdup(job->argv.items[0]), strdup(path ? path : PROGRAM_PATH) };
}

static void use_hint(struct hint *hint)
{
	if (hint->name && hint->path)
		prefetch_program(hint->name, hint->path);
	free(hint->name);
	free(hint->path);
}

static void *make(void *ctx)
{
	CLEANUP(image_users_done) struct image_users users = { BUF_INIT(0), BUF_INIT(0) };
	struct kernel_done done = { 0 };
	struct root *root = ctx;
	struct hint hint = { NULL, NULL };

	root->result = explain(build(root, &done, &root->err), &root->err);
	(void) sem_post(&root->has_early);
	if (root->result == 0)
		root->result = explain(look_in(&done, &users, &root->err), &root->err);
	await(&root->has_job);
	if (root->result == 0)
		root->result = settle_in(root, &users, &root->err);
	if (root->result == 0)
		take_hint(root->job, &hint);
	(void) sem_post(&root->has_ended);
	use_hint(&hint);
	return NULL;
}

int root_begin(struct root *root, struct resoluto_err *err)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	*root = (struct root){ .inbox_disk = -1, .workspace = -1 };
	(void) sem_init(&root->has_job, 0, 0);
	(void) sem_init(&root->has_early, 0, 0);
	(void) sem_init(&root->has_ended, 0, 0);
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

void root_await_early(struct root *root)
{
	await(&root->has_early);
}

int root_await(struct root *root, struct resoluto_err *err)
{
	await(&root->has_ended);
	if (root->result < 0)
		*err = root->err;
	return root->result;
}
