/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - every allocation of the base fails in turn: nothing crashes, leaks or is half done. */
#include <fcntl.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/proc.h"

static char dir[64];

static int fill_buffer(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(100000);
	CLEANUP(mem_free) char *taken = NULL;

	for (int i = 0; i < 1000; i++) {
		size_t before = buf.len;
		int r = buf_addf(&buf, "%d bytes and more ", i);

		if (r < 0) {
			/* What was there is there. */
			CHECK(buf.len == before && (!buf.data || strlen(buf.data) == before));
			return r;
		}
	}
	taken = buf_take(&buf);
	return taken ? 0 : -ENOMEM;
}

static int take_empty_buffer(void)
{
	struct buf buf = BUF_INIT(10);
	CLEANUP(mem_free) char *taken = buf_take(&buf);

	return taken ? 0 : -ENOMEM;
}

static int fill_list(void)
{
	static const char *const more[] = { "x", "y", NULL };
	CLEANUP(strv_done) struct strv strv = { 0 };
	int r = 0;

	for (int i = 0; i < 20 && r == 0; i++) {
		r = i % 2 ? strv_add(&strv, "text") : strv_addf(&strv, "number %d", i);
		CHECK(strv.count == strv_count((const char *const *) strv.items));
	}
	return r < 0 ? r : strv_add_all(&strv, more);
}

static int load_config(void)
{
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(mem_free) char *path = NULL;
	int r = config_load(&config, NULL);

	return r < 0 ? r : config_find_helper(config, "helper", &path, NULL);
}

static int make_loop(void)
{
	CLEANUP(loop_free) struct loop *loop = NULL;

	return loop_new(&loop);
}

static int remove_tree(void)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = mkdirs_beneath(fd, "a/b/c/d", 0700);

	return r < 0 ? r : remove_tree_at(fd, "a");
}

static int copy_file(void)
{
	CLEANUP(fd_close) int from = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	CLEANUP(fd_close) int to = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return copy_fd(from, to, NULL, NULL);
}

static int run_program(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	int r = proc_run((const char *const[]){ "echo", "x", NULL }, &out, NULL, NULL);

	/* Output that there is no memory for is dropped, as what is over the bound. */
	return r < 0 ? r : 0;
}

static void buffers_survive(void)
{
	CHECK(alloc_fail_each(fill_buffer, -ENOMEM) >= 5);
	CHECK(alloc_fail_each(take_empty_buffer, -ENOMEM) == 1);
	CHECK(alloc_fail_each(fill_list, -ENOMEM) >= 22);
}

static void configuration_survives(void)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[128];

	CHECK(replace_file_at(fd, "local.env", "A=1\nB=2\n", 8, 0600, NULL) == 0);
	CHECK(replace_file_at(fd, "helper", "", 0, 0700, NULL) == 0);
	snprintf(path, sizeof(path), "%s/local.env", dir);
	CHECK(setenv("RESOLUTO_LOCAL_ENV", path, 1) == 0);
	CHECK(setenv("RESOLUTO_LIBEXEC_DIR", dir, 1) == 0);
	CHECK(alloc_fail_each(load_config, -ENOMEM) >= 7);
}

static void the_rest_survives(void)
{
	CHECK(alloc_fail_each(make_loop, -ENOMEM) == 1);
	CHECK(alloc_fail_each(remove_tree, -ENOMEM) >= 4);
	CHECK(alloc_fail_each(copy_file, -ENOMEM) == 1);
	CHECK(alloc_fail_each(run_program, -ENOMEM) >= 1);
}

int main(void)
{
	snprintf(dir, sizeof(dir), "/tmp/alloc-XXXXXX");
	if (!mkdtemp(dir))
		return 99;
	RUN(buffers_survive);
	RUN(configuration_survives);
	RUN(the_rest_survives);
	if (remove_tree_at(AT_FDCWD, dir) < 0)
		return 99;
	return check_done();
}
