/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - resoluto-runner, PID 1 of the microVM.
 *
 * Up to channel_await_job() nothing depends on the run.  After it, node_run() does everything there is to
 * do, and then the machine is switched off, whatever came of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "guest/early.h"
#include "guest/init.h"
#include "guest/job.h"
#include "guest/kernel_check.h"
#include "guest/node.h"
#include "guest/ports.h"
#include "guest/program.h"
#include "resoluto/version.h"

enum {
	HEAP_BYTES = 1024 * 1024,
	HEAP_KEPT = 8 * HEAP_BYTES, /* free at its end, before that is given back */
};

static int block_sigchld(struct resoluto_err *err)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &chld, NULL) < 0 ? resoluto_fail(err, -1, "block SIGCHLD")
	                                               : 0;
}

/* Names of egress are parsed unredacted: what the parser gives back is overwritten. */
static void wipe_and_free(void *bytes)
{
	if (bytes)
		explicit_bzero(bytes, malloc_usable_size(bytes));
	free(bytes);
}

/* Of the library's tables, which would open /dev/urandom for it. */
static void seed_hashes(void)
{
	size_t seed;

	memcpy(&seed, (const void *) getauxval(AT_RANDOM), sizeof(seed));
	json_object_seed(seed ? seed : 1);
}

static int open_channel(struct channel *channel, struct resoluto_err *err)
{
	int control = port_open("control", err), conduit;

	if (control < 0)
		return control;
	conduit = port_open("conduit", err);
	if (conduit < 0)
		return conduit;
	channel_init(channel, control, conduit);
	return channel_say_hello(channel, err);
}

/* What is missing is said at once, instead of being waited for.  Not asked where there are ports: the rest is asked
 * when something fails (root.c). */
static int check_kernel(struct resoluto_err *err)
{
	CLEANUP(fd_close) int root = -1;

	if (ports_are_there())
		return 0;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? resoluto_fail(err, -errno, "open /") : kernel_check(root, err);
}

/* The root is made while the runner speaks with the host.  Where /early makes it, the host is asked first. */
static int boot(struct root *root, struct channel *channel, struct resoluto_err *err)
{
	const int mounted = init_mount_early(err);
	int r = mounted < 0 ? mounted : init_load_modules(err);

	if (r == 0 && mounted == 0)
		r = root_begin(root, err);
	if (r == 0)
		r = check_kernel(err);
	if (r == 0)
		r = open_channel(channel, err);
	return r < 0 || mounted == 0 ? r : root_begin(root, err);
}

static int run(struct resoluto_err *err)
{
	struct resoluto_err job_failure = { .code = 0 };
	static struct root root;
	static struct job job;
	struct channel channel;
	int r = init_harden_self(err);

	if (r == 0)
		r = block_sigchld(err);
	if (r == 0)
		r = boot(&root, &channel, err);
	/* While the host answers. */
	if (r == 0)
		r = program_empty_bounding_set(err);
	if (r == 0)
		r = channel_await_job(&channel, err);
	if (r < 0)
		return r;
	/* One that is refused has no user and no places; the root is not awaited then. */
	if (job_parse(channel.job.data, channel.job.len, &job, &job_failure) == 0)
		root_give_job(&root, &job);
	channel_forget_job(&channel);
	return node_run(&channel, &root, &job, &job_failure, err);
}

int main(int argc, char **argv)
{
	struct resoluto_err err = { .code = 0 };

	(void) umask(0);
	/* The second thread gets no memory of its own: it would be mapped, and mostly not used. */
	(void) mallopt(M_ARENA_MAX, 1);
	/* And the heap is asked for once and kept: each piece mapped or given back throws away what the processors know of the
	 * memory. */
	(void) mallopt(M_MMAP_THRESHOLD, HEAP_BYTES);
	(void) mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	(void) mallopt(M_TOP_PAD, HEAP_BYTES);
	json_set_alloc_funcs(malloc, wipe_and_free);
	seed_hashes();
	if (argc > 0 && early_is_meant(argv[0]))
		return early_main();
	if (getpid() != 1) {
		printf("resoluto-runner %s: the first process of a sandbox, not to be started by "
		       "hand\n",
		       resoluto_version());
		return argc == 2 && strcmp(argv[1], "--version") == 0 ? 0 : 2;
	}
	if (run(&err) < 0)
		dprintf(STDERR_FILENO, "resoluto-runner: %s: %s\n", err.text,
		        strerrordesc_np(-err.code));
	init_power_off();
	return 1;
}
