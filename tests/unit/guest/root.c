/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - the thread that makes the root, with what it calls replaced: who waits for whom, what of the job it may touch
 * and until when, and whose failure is told.  Sanitizers watch (check.sh --full: also for threads).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "guest/early.h"
#include "guest/egress_files.h"
#include "guest/inputs.h"
#include "guest/kernel_check.h"
#include "guest/mounts.h"
#include "guest/prefetch.h"
#include "guest/root.h"

enum { UID = 4711, SETTINGS = 5, PID = 17 };

/* What the replaced steps do, and what they saw. */
static struct {
	int image_code, cgroup_code, kernel_code, user_code, workspace_code, names_code, start_code;
	bool has_inbox, has_names, has_users, was_read, has_no_rights;
	pthread_t builder;
	char cwd[64], hint_name[64], hint_path[64];
	sem_t has_hint, may_hint;
	sem_t may_start;
	const struct program *started;
	int early_lock;
} steps = { .early_lock = -1 };

int early_take(struct early *ret, int *ret_lock, struct resoluto_err *err)
{
	*ret_lock = steps.early_lock;
	steps.builder = pthread_self();
	*ret = (struct early){ .has_scratch = true, .kernel = { .settings = SETTINGS } };
	if (steps.has_inbox)
		snprintf(ret->inbox, sizeof(ret->inbox), "/dev/vdb");
	return steps.image_code < 0 ? resoluto_fail(err, steps.image_code, "no image") : 0;
}

int cgroup_create(struct cgroup *ret_cgroup, struct resoluto_err *err)
{
	*ret_cgroup = CGROUP_NONE;
	return steps.cgroup_code < 0 ? resoluto_fail(err, steps.cgroup_code, "no cgroup") : 0;
}

const char *program_path(const struct program *program)
{
	CHECK_STR(program->env->items[0], "PATH=/a:/b");
	return program->env->items[0] + strlen("PATH=");
}

int program_empty_bounding_set(struct resoluto_err *err)
{
	CHECK(pthread_equal(steps.builder, pthread_self()));
	steps.has_no_rights = true;
	return 0;
}

/* Stands at its gate until the test says so. */
int program_start(const struct program *program, struct program_child *ret_child,
                  struct program_failure *ret_failure, struct resoluto_err *err)
{
	CHECK(pthread_equal(steps.builder, pthread_self()) && steps.has_no_rights);
	while (sem_wait(&steps.may_start) < 0)
		;
	steps.started = program;
	*ret_child = (struct program_child){ .pid = PID, .stdin_fd = -1 };
	*ret_failure = (struct program_failure){ STEP_FIND, ENOENT };
	return steps.start_code < 0 ? resoluto_fail(err, steps.start_code, "no start") : 0;
}

int inputs_open_disk(const char *path, struct resoluto_err *err)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int egress_files_write(struct resoluto_err *err)
{
	steps.has_names = true;
	return steps.names_code < 0 ? resoluto_fail(err, steps.names_code, "no names") : 0;
}

int kernel_check(int root, struct resoluto_err *err)
{
	return 0;
}

int mount_set_up_kernel(struct kernel_done *done, struct resoluto_err *err)
{
	CHECK(pthread_equal(steps.builder, pthread_self()));
	CHECK(done->settings == SETTINGS && !done->rest);
	return steps.kernel_code < 0 ? resoluto_fail(err, steps.kernel_code, "no settings") : 0;
}

int mount_read_users(struct image_users *ret, struct resoluto_err *err)
{
	steps.has_users = steps.was_read = true;
	return 0;
}

void image_users_done(struct image_users *users)
{
	steps.has_users = false;
}

int mount_settle_user(const char *spec, struct image_users *users, struct user *ret_user,
                      struct resoluto_err *err)
{
	CHECK(pthread_equal(steps.builder, pthread_self()) && steps.has_users);
	if (steps.user_code < 0)
		return resoluto_fail(err, steps.user_code, "no user %s", spec);
	*ret_user = (struct user){ .uid = UID, .name = "someone", .home = "/home/someone" };
	return 0;
}

int mount_make_owned(const char *path, const struct user *user, struct resoluto_err *err)
{
	if (steps.workspace_code < 0)
		return resoluto_fail(err, steps.workspace_code, "no %s for %d", path,
		                     (int) user->uid);
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void prefetch_open(const char *name, const char *path, const char *cwd, struct prefetch *ret)
{
	snprintf(steps.cwd, sizeof(steps.cwd), "%s", cwd);
	CHECK(pthread_equal(steps.builder, pthread_self()));
	snprintf(steps.hint_name, sizeof(steps.hint_name), "%s", name);
	snprintf(steps.hint_path, sizeof(steps.hint_path), "%s", path);
	ret->count = 1;
}

void prefetch_read(struct prefetch *prefetch)
{
	if (prefetch->count == 0)
		return;
	while (sem_wait(&steps.may_hint) < 0)
		;
	(void) sem_post(&steps.has_hint);
}

/* Of this process, which has no such root. */
int chroot(const char *path)
{
	return strcmp(path, "/newroot") == 0 ? 0 : -1;
}

int chdir(const char *path)
{
	return strcmp(path, "/") == 0 ? 0 : -1;
}

static struct job make_job(void)
{
	struct job job = { .user = strdup("someone"),
		           .workspace_dir = strdup("/workspace"),
		           .cwd = strdup("/work") };

	(void) strv_add(&job.argv, "program");
	(void) strv_add(&job.env, "PATH=/a:/b");
	return job;
}

static void begin(struct root *root)
{
	struct resoluto_err err = { 0 };

	CHECK(sem_init(&steps.has_hint, 0, 0) == 0 && sem_init(&steps.may_hint, 0, 0) == 0);
	CHECK(sem_init(&steps.may_start, 0, 0) == 0);
	CHECK(root_begin(root, &err) == 0);
}

static void all_is_there(void)
{
	static struct root root;
	struct resoluto_err err = { 0 };
	struct job job = make_job();

	steps.has_inbox = true;
	CHECK(strv_add(&job.setup_argv, "hook") == 0);
	begin(&root);
	root_give_job(&root, &job);
	CHECK(root_await(&root, &err) == 0);
	CHECK(root.has_scratch && !root_starts_ahead(&job) && !root.program.gate);
	CHECK(strlen(root.boot_id) == BOOT_ID_SIZE - 1);
	CHECK(root.user.uid == UID && root.workspace >= 0 && root.inbox_disk >= 0);
	CHECK(job.env.count == 1 && root.env.count == 4 && root.program.env == &root.env);
	CHECK_STR(root.env.items[1], "HOME=/home/someone");
	CHECK_STR(root.env.items[3], "LOGNAME=someone");
	CHECK(sem_post(&steps.may_hint) == 0);
	while (sem_wait(&steps.has_hint) < 0)
		;
	CHECK_STR(steps.cwd, "/work");
	CHECK_STR(steps.hint_name, "program");
	CHECK_STR(steps.hint_path, "/a:/b");
	job_done(&job);
}

static void check_it_starts_in_its_turn(bool inbox)
{
	static struct root root;
	struct resoluto_err err = { 0 };
	struct job job = make_job();

	job.has_inbox = inbox;
	job.has_egress = !inbox;
	begin(&root);
	root_give_job(&root, &job);
	CHECK(root_await(&root, &err) == 0 && !root_starts_ahead(&job) && !root.program.gate);
	CHECK(sem_post(&steps.may_hint) == 0);
	while (sem_wait(&steps.has_hint) < 0)
		;
	CHECK(!steps.started);
	job_done(&job);
}

/* Inputs may make what the program needs. */
static void behind_inputs_nothing_starts_ahead(void)
{
	check_it_starts_in_its_turn(true);
}

static void with_egress_nothing_starts_ahead(void)
{
	check_it_starts_in_its_turn(false);
}

static void the_program_starts_ahead(void)
{
	int stays[2];
	char byte;
	static struct root root;
	struct program_failure failure;
	struct program_child child;
	struct resoluto_err err = { 0 };
	struct job job = make_job();

	CHECK(pipe2(stays, O_CLOEXEC) == 0);
	steps.early_lock = stays[1];
	job.has_stdin = true;
	begin(&root);
	/* Nobody has said yet for whom. */
	CHECK(root_await_image(&root) == 0 && root.workspace < 0);
	root_give_job(&root, &job);
	CHECK(root_await(&root, &err) == 0 && root_starts_ahead(&job));
	CHECK(root.program.gate == &root.gate && root.program.has_stdin);
	CHECK(root.program.argv == &job.argv);
	CHECK(sem_post(&steps.may_start) == 0);
	CHECK(root_await_program(&root, &child, &failure, &err) == 0 && child.pid == PID);
	CHECK(steps.started == &root.program);
	/* What is left of /early stays until it is let go. */
	CHECK(write(stays[1], "s", 1) == 1);
	root_let_go(&root);
	CHECK(read(stays[0], &byte, 1) == 1 && read(stays[0], &byte, 1) == 0);
	CHECK(close(stays[0]) == 0);
	job_done(&job);
}

static void a_failed_start_is_told(void)
{
	static struct root root;
	struct program_failure failure;
	struct program_child child;
	struct resoluto_err err = { 0 };
	struct job job = make_job();

	steps.start_code = -ECHILD;
	begin(&root);
	root_give_job(&root, &job);
	CHECK(root_await(&root, &err) == 0 && sem_post(&steps.may_start) == 0);
	CHECK(root_await_program(&root, &child, &failure, &err) == -ECHILD);
	CHECK(failure.step == STEP_FIND && failure.error == ENOENT);
	CHECK_STR(err.text, "no start");
	job_done(&job);
}

static struct root failed;

/* What fails before the job has come is told when it is waited for; the job is not touched. */
static void await_failure(int image_code, int code, const char *words)
{
	struct resoluto_err err = { 0 };
	struct job job = make_job();

	begin(&failed);
	CHECK(root_await_image(&failed) == image_code);
	root_give_job(&failed, &job);
	CHECK(root_await(&failed, &err) == code);
	CHECK_STR(err.text, words);
	job_done(&job);
}

static void a_failure_of_the_image_waits_for_its_question(void)
{
	steps.image_code = -EIO;
	await_failure(-EIO, -EIO, "no image");
	CHECK(failed.workspace == -1 && failed.inbox_disk == -1 && !steps.cwd[0]);
}

static void a_failure_of_the_cgroup_waits_for_its_question(void)
{
	steps.cgroup_code = -EBUSY;
	await_failure(-EBUSY, -EBUSY, "no cgroup");
	CHECK(!failed.program.gate && !steps.was_read);
}

static void a_failure_of_the_kernel_waits_for_its_question(void)
{
	steps.kernel_code = -EPERM;
	await_failure(-EPERM, -EPERM, "no settings");
	CHECK(failed.workspace == -1 && !steps.was_read);
}

static void a_failure_of_the_job_is_told(void)
{
	steps.user_code = -EINVAL;
	await_failure(0, -EINVAL, "no user someone");
}

static void without_a_workspace_there_is_no_root(void)
{
	steps.workspace_code = -ENOTDIR;
	await_failure(0, -ENOTDIR, "no /workspace for 4711");
	CHECK(failed.inbox_disk == -1);
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "all_is_there", all_is_there },
	{ "behind_inputs_nothing_starts_ahead", behind_inputs_nothing_starts_ahead },
	{ "with_egress_nothing_starts_ahead", with_egress_nothing_starts_ahead },
	{ "the_program_starts_ahead", the_program_starts_ahead },
	{ "a_failed_start_is_told", a_failed_start_is_told },
	{ "a_failure_of_the_cgroup_waits_for_its_question",
	  a_failure_of_the_cgroup_waits_for_its_question },
	{ "a_failure_of_the_image_waits_for_its_question",
	  a_failure_of_the_image_waits_for_its_question },
	{ "a_failure_of_the_kernel_waits_for_its_question",
	  a_failure_of_the_kernel_waits_for_its_question },
	{ "a_failure_of_the_job_is_told", a_failure_of_the_job_is_told },
	{ "without_a_workspace_there_is_no_root", without_a_workspace_there_is_no_root },
};
static size_t current;

/* Standard output is the parent's TAP. */
static int run_current(void)
{
	check_state.failed = 0;
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return 1;
	check_run(cases[current].name, cases[current].fn);
	return check_state.failed ? 1 : 0;
}

/* Each in a process of its own: there is one such thread in the life of one. */
static void each_in_its_own_process(void)
{
	for (current = 0; current < sizeof(cases) / sizeof(cases[0]); current++)
		CHECK(in_child(run_current) == 0);
}

int main(void)
{
	RUN(each_in_its_own_process);
	return check_done();
}
