/* SPDX-License-Identifier: Apache-2.0 */

/* facts.c - what doctor and version make of what they find. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "cli/environment.h"
#include "cli/facts.h"
#include "cli/leftovers.h"
#include "wire/contract.h"

static void check_version(const char *text, const char *want)
{
	char version[FACT_MAX];

	fact_version_in(text, version);
	CHECK_STR(version, want);
}

static void versions_are_found_in_words(void)
{
	check_version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright 2003\n",
	              "7.2.22");
	check_version("tool 1.0, built today", "1.0");
	check_version("no digits here\nat all", "");
	check_version("", "");
	check_version("3", "3");
}

static void old_qemus_keep_old_code(void)
{
	CHECK(fact_qemu_keeps_old_code("7.2.22") && fact_qemu_keeps_old_code("8.0.5"));
	CHECK(!fact_qemu_keeps_old_code("8.1.0") && !fact_qemu_keeps_old_code("10.0.2"));
	CHECK(!fact_qemu_keeps_old_code("") && !fact_qemu_keeps_old_code("seven"));
}

static void formats_are_told_by_their_first_bytes(void)
{
	char zimage[0x206] = { 0 };

	memcpy(zimage + 0x202, "HdrS", 4);
	CHECK_STR(fact_kernel_format("\177ELF\2", 5), "ELF");
	CHECK_STR(fact_kernel_format(zimage, sizeof(zimage)), "bzImage");
	CHECK(!fact_kernel_format(zimage, sizeof(zimage) - 1));
	CHECK(!fact_kernel_format("\177EL", 3) && !fact_kernel_format("", 0));
	CHECK_STR(fact_initrd_format("\x1f\x8b\x08", 3), "gzip");
	CHECK_STR(fact_initrd_format("070701000", 9), "cpio");
	CHECK(!fact_initrd_format("\177ELF", 4) && !fact_initrd_format("\x1f", 1));
}

static void memory_is_read_from_its_line(void)
{
	static const char text[] = "MemTotal:  8 kB\nMemAvailableX: 1 kB\nMemAvailable:   4 kB\n";

	CHECK(fact_meminfo(text, "MemAvailable") == 4096);
	CHECK(fact_meminfo(text, "MemTotal") == 8192);
	CHECK(fact_meminfo(text, "Swap") == 0);
	CHECK(fact_meminfo("", "MemTotal") == 0);
}

static void a_kernel_tells_its_version(void)
{
	char path[] = "/tmp/resoluto-kernel-XXXXXX", version[FACT_MAX];
	CLEANUP(mem_free) char *bytes = calloc(1, 100000);
	CLEANUP(fd_close) int fd = mkstemp(path);
	static const char decoy[] = "Linux version %s", banner[] = "Linux version 6.1.0-9 (gcc)\n";

	CHECK(fd >= 0);
	memcpy(bytes + 10, decoy, sizeof(decoy));
	CHECK(write_all(fd, bytes, 100000) == 0);
	CHECK(fact_kernel_version(path, version) == -ENODATA);
	memcpy(bytes + 50000, banner, sizeof(banner));
	CHECK(pwrite(fd, bytes, 100000, 0) == 100000);
	CHECK(fact_kernel_version(path, version) == 0);
	CHECK_STR(version, "6.1.0-9");
	/* At the very end of the file: no byte behind it is read. */
	memcpy(bytes + 100000 - 14, banner, 14);
	memset(bytes + 50000, 0, sizeof(banner));
	CHECK(pwrite(fd, bytes, 100000, 0) == 100000);
	CHECK(fact_kernel_version(path, version) == -ENODATA);
	CHECK(ftruncate(fd, 0) == 0);
	CHECK(fact_kernel_version(path, version) == -ENODATA);
	CHECK(unlink(path) == 0);
	CHECK(fact_kernel_version(path, version) == -ENOENT);
}

static void programs_are_found(void)
{
	CLEANUP(mem_free) char *path = NULL, *none = NULL;

	CHECK(fact_find_program("sh", &path) == 0);
	CHECK(access(path, X_OK) == 0);
	CHECK(fact_find_program("resoluto-no-such-program", &none) == -ENOENT);
}

static void misspelt_keys_are_noticed(void)
{
	CHECK(!environment_is_unknown("RESOLUTO_LOCAL_KERNEL=/x"));
	CHECK(!environment_is_unknown("PATH=/bin"));
	CHECK(environment_is_unknown(ENV_PREFIX "LOCAL_KERNE=/x"));
	CHECK(environment_is_unknown(ENV_PREFIX "LOCAL_KERNELS=/x"));
}

/* A run's directory; returns the descriptor of its lock, held if asked. */
static int make_run(const char *state, const char *name, const char *record, bool is_alive)
{
	char path[256];
	int lock;

	snprintf(path, sizeof(path), "%s/runs/%s", state, name);
	CHECK(mkdirs(path, 0700) == 0);
	if (record) {
		CLEANUP(fd_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		CHECK(replace_file_at(dir, "run.json", record, strlen(record), 0600, NULL) == 0);
	}
	snprintf(path, sizeof(path), "%s/runs/%s/lock", state, name);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(lock >= 0);
	CHECK(!is_alive || flock(lock, LOCK_EX | LOCK_NB) == 0);
	return lock;
}

static void runs_are_alive_kept_or_dead(void)
{
	char state[] = "/tmp/resoluto-state-XXXXXX", doomed[64];
	struct leftovers count;
	int alive, kept, dead;

	CHECK(mkdtemp(state) != NULL);
	CHECK(leftovers_count(state, &count, NULL) == 0);
	CHECK(count.alive == 0 && count.dead == 0);
	alive = make_run(state, "alive", "{\"schema\": 1, \"keep\": true}", true);
	kept = make_run(state, "kept", "{\"schema\": 1, \"keep\": true}", false);
	dead = make_run(state, "dead", "{\"schema\": 1, \"keep\": false}", false);
	snprintf(doomed, sizeof(doomed), "%s/runs/.doomed-x", state);
	CHECK(mkdir(doomed, 0700) == 0);
	CHECK(leftovers_count(state, &count, NULL) == 0);
	CHECK(count.alive == 1 && count.kept == 1 && count.dead == 2);
	snprintf(doomed, sizeof(doomed), "%s/runs/no-directory", state);
	CHECK(symlink("dead", doomed) == 0);
	CHECK(leftovers_count(state, &count, NULL) == 0 && count.dead == 3);
	fd_close(&alive);
	fd_close(&kept);
	fd_close(&dead);
	CHECK(remove_tree_at(AT_FDCWD, state) == 0);
	CHECK(leftovers_count(state, &count, NULL) == 0);
}

int main(void)
{
	RUN(versions_are_found_in_words);
	RUN(old_qemus_keep_old_code);
	RUN(formats_are_told_by_their_first_bytes);
	RUN(memory_is_read_from_its_line);
	RUN(a_kernel_tells_its_version);
	RUN(programs_are_found);
	RUN(misspelt_keys_are_noticed);
	RUN(runs_are_alive_kept_or_dead);
	return check_done();
}
