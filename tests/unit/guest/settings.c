/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel has all settings, some, or one that cannot be set; a directory plays it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "guest/settings.h"

static char dir[sizeof("/tmp/resoluto-settings-XXXXXX")];

static void kernel_open(void)
{
	strcpy(dir, "/tmp/resoluto-settings-XXXXXX");
	CHECK(mkdtemp(dir));
}

static void kernel_close(void)
{
	CHECK(remove_tree_at(AT_FDCWD, dir) == 0);
}

static void kernel_has(const char *name, const char *value)
{
	CLEANUP(mem_free) char *path = NULL;
	CLEANUP(fd_close) int fd = -1;
	char *slash;

	CHECK(asprintf(&path, "%s/%s", dir, name) > 0);
	slash = strrchr(path, '/');
	*slash = '\0';
	CHECK(mkdirs(path, 0755) == 0);
	*slash = '/';
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write_all(fd, value, strlen(value)) == 0);
}

static void is_set_to(const char *name, const char *value)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	CLEANUP(fd_close) int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK(read_file_at(fd, name, 100, &text, NULL) == 0);
	CHECK_STR(text.data ? text.data : "", value);
}

static void what_is_there_is_set(void)
{
	uint32_t done = 0;

	kernel_open();
	kernel_has("kernel/modules_disabled", "0");
	kernel_has("kernel/kptr_restrict", "0");
	kernel_has("fs/protected_regular", "0");
	kernel_has("kernel/hostname", "x");
	CHECK(settings_apply(dir, &done, NULL) == 0);
	is_set_to("kernel/modules_disabled", "1");
	is_set_to("kernel/kptr_restrict", "2");
	is_set_to("fs/protected_regular", "2");
	is_set_to("kernel/hostname", "x");
	kernel_close();
}

static void what_is_not_there_is_passed_over(void)
{
	uint32_t done = 0;

	kernel_open();
	CHECK(settings_apply(dir, &done, NULL) == 0);
	CHECK(done == 0);
	CHECK(rmdir(dir) == 0); /* nothing was made in there */
}

/* One driver starts after the other: what the kernel lacked the first time is said the second time, and nothing twice. */
static void what_was_missing_is_said_later(void)
{
	uint32_t done = 0;

	kernel_open();
	kernel_has("kernel/dmesg_restrict", "0");
	CHECK(settings_apply(dir, &done, NULL) == 0);
	is_set_to("kernel/dmesg_restrict", "1");
	kernel_has("kernel/dmesg_restrict", "of others");
	kernel_has("vm/unprivileged_userfaultfd", "1");
	CHECK(settings_apply(dir, &done, NULL) == 0);
	is_set_to("kernel/dmesg_restrict", "of others");
	is_set_to("vm/unprivileged_userfaultfd", "0");
	kernel_close();
}

/* One that is there and does not take its value: whoever relies on it must not start. */
static void what_cannot_be_set_is_an_error_that_names_it(void)
{
	struct resoluto_err err = { 0 };
	uint32_t done = 0;
	char path[100];

	kernel_open();
	kernel_has("net/core/bpf_jit_harden", "0");
	kernel_has("kernel/dmesg_restrict", "0");
	snprintf(path, sizeof(path), "%s/kernel/kexec_load_disabled", dir);
	CHECK(mkdir(path, 0755) == 0);
	CHECK(settings_apply(dir, &done, &err) == -EISDIR);
	CHECK(strstr(err.text, "kernel/kexec_load_disabled to 1"));
	is_set_to("kernel/dmesg_restrict", "1");
	CHECK(settings_apply("/no/such/directory", &done, &err) == -ENOENT);
	CHECK(strstr(err.text, "/no/such/directory"));
	kernel_close();
}

static void the_level_in_force_is_in_brackets(void)
{
	CHECK(settings_is_locked_down("none integrity [confidentiality]\n"));
	CHECK(!settings_is_locked_down("none [integrity] confidentiality\n"));
	CHECK(!settings_is_locked_down("[none] integrity confidentiality\n"));
	CHECK(!settings_is_locked_down(""));
}

/* Ours has no such file system: it cannot be told, and need not be. */
static void a_kernel_without_the_directory_is_passed_over(void)
{
	CHECK(settings_lock_down("/no/such/directory", NULL) == 0);
}

int main(void)
{
	RUN(what_is_there_is_set);
	RUN(what_is_not_there_is_passed_over);
	RUN(what_was_missing_is_said_later);
	RUN(what_cannot_be_set_is_an_error_that_names_it);
	RUN(the_level_in_force_is_in_brackets);
	RUN(a_kernel_without_the_directory_is_passed_over);
	return check_done();
}
