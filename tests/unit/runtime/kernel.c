/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - what a guest kernel is called: by the file VERSION beside it, whatever stands in that. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "runtime/microvm/kernel.h"

static char folder[] = "/tmp/resoluto-kernel-XXXXXX";

/* With this VERSION beside it; NULL: none. */
static void is_called(const char *version, const char *want)
{
	CLEANUP(fd_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[128], name[KERNEL_NAME_MAX];

	(void) unlinkat(dir, "VERSION", 0);
	if (version)
		CHECK(replace_file_at(dir, "VERSION", version, strlen(version), 0600, NULL) == 0);
	snprintf(path, sizeof(path), "%s/vmlinux", folder);
	kernel_describe(path, machine_find("x86_64-built"), name);
	CHECK_STR(name, want);
}

static void a_provisioned_kernel_is_called_by_version_and_hash(void)
{
	is_called("6.1.159-guest 0123456789abcdef\n", "6.1.159-guest 0123456789abcdef (built)");
	is_called("6.1.159-guest 0123456789abcdef", "6.1.159-guest 0123456789abcdef (built)");
	is_called("6.1.159-guest\n", "6.1.159-guest (built)");
}

static void what_is_no_version_is_not_believed(void)
{
	char huge[4 * KERNEL_NAME_MAX];

	is_called(NULL, "vmlinux (built)");
	is_called("", "vmlinux (built)");
	is_called("guest 0123456789abcdef\n", "vmlinux (built)");
	is_called("6.1\x1b[2J 0123456789abcdef\n", "6.1 (built)");
	is_called("6.1 0123456789abcdeg\n", "6.1 (built)");
	is_called("6.1 0123456789abcdef0\n", "6.1 (built)");
	memset(huge, '6', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	is_called(huge, "vmlinux (built)");
	huge[200] = '\0';
	is_called(huge, "vmlinux (built)");
}

static void a_link_leads_to_the_folder_of_its_kernel(void)
{
	char link[128], target[128], name[KERNEL_NAME_MAX];

	is_called("6.1.2 0123456789abcdef\n", "6.1.2 0123456789abcdef (built)");
	snprintf(target, sizeof(target), "%s/vmlinux", folder);
	snprintf(link, sizeof(link), "%s-link", folder);
	CHECK(replace_file_at(AT_FDCWD, target, "", 0, 0600, NULL) == 0);
	CHECK(symlink(target, link) == 0);
	kernel_describe(link, machine_find("x86_64-debian"), name);
	CHECK_STR(name, "6.1.2 0123456789abcdef (debian)");
	CHECK(unlink(link) == 0 && unlink(target) == 0);
}

static void a_long_name_leaves_room_for_the_kind(void)
{
	char path[400], name[KERNEL_NAME_MAX];

	memset(path, 'k', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	kernel_describe(path, machine_find("x86_64-ubuntu"), name);
	CHECK(strlen(name) > 9 && strcmp(name + strlen(name) - 9, " (ubuntu)") == 0);
}

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	CHECK(replace_file_at(AT_FDCWD, path, text, strlen(text), 0600, NULL) == 0);
}

static const char *row_of(const char *name)
{
	const struct machine_row *row = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/vmlinux", folder);
	return kernel_row(path, name, &row, NULL) < 0 ? "none" : machine_name(row);
}

static void the_row_is_the_named_one_else_the_one_beside_the_kernel(void)
{
	const struct machine_row *row = NULL;
	struct resoluto_err err = { 0 };

	put("MACHINE", "x86_64-built\n");
	CHECK_STR(row_of(NULL), "x86_64-built");
	CHECK_STR(row_of(""), "x86_64-built");
	CHECK_STR(row_of("x86_64-ubuntu"), "x86_64-ubuntu");
	CHECK_STR(row_of("pdp11"), "none");
	put("MACHINE", "pdp11\n");
	CHECK_STR(row_of(NULL), machine_name(machine_default()));
	put("MACHINE", "");
	CHECK_STR(row_of(NULL), machine_name(machine_default()));
	CHECK(kernel_row(NULL, NULL, &row, NULL) == 0 && row == machine_default());
	CHECK(kernel_row("/nowhere/vmlinux", NULL, &row, NULL) == 0 && row == machine_default());
	CHECK(kernel_row(NULL, "pdp11", &row, &err) == -EOPNOTSUPP && strstr(err.text, "pdp11"));
}

static void no_link_leads_out_of_the_folder(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(KERNEL_NAME_MAX);
	char path[128], link[128];

	snprintf(path, sizeof(path), "%s/vmlinux", folder);
	snprintf(link, sizeof(link), "%s/LINK", folder);
	CHECK(symlink("/etc/passwd", link) == 0);
	CHECK(kernel_read_beside(path, "LINK", &text) < 0 && text.len == 0);
	CHECK(kernel_read_beside(path, "NONE", &text) == -ENOENT);
	CHECK(unlink(link) == 0);
}

int main(void)
{
	static const char *const names[] = { "VERSION", "MACHINE" };

	CHECK(mkdtemp(folder));
	RUN(a_provisioned_kernel_is_called_by_version_and_hash);
	RUN(what_is_no_version_is_not_believed);
	RUN(a_link_leads_to_the_folder_of_its_kernel);
	RUN(a_long_name_leaves_room_for_the_kind);
	RUN(the_row_is_the_named_one_else_the_one_beside_the_kernel);
	RUN(no_link_leads_out_of_the_folder);
	for (int i = 0; i < 2; i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void) unlink(path);
	}
	(void) rmdir(folder);
	return check_done();
}
