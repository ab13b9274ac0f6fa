/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - run directories, slots and disks on a real file system, with a second process beside. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "runtime/microvm/images.h"
#include "runtime/microvm/inbox.h"
#include "runtime/microvm/files.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"
#include "runtime/microvm/state.h"

enum {
	NOBODY = 65534,
	RACES = 500, /* runs that are made while somebody looks */
};

static char state_dir[] = "/tmp/resoluto-places-XXXXXX";

static bool run_exists(const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/runs/%s", state_dir, id);
	return access(path, F_OK) == 0;
}

/* A process that claims a run and then waits to be killed; returns once it has. */
static pid_t start_owner(const char *id, const char *const *labels)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct rundir dir = RUNDIR_NONE;

		if (rundir_claim(state_dir, id, &dir, NULL) < 0 ||
		    run_record_write(dir.fd, &(struct run_record){ .id = id, .labels = labels },
		                     NULL) < 0)
			_exit(1);
		(void) !write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

static void end_owner(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void a_run_is_claimed_once(void)
{
	struct rundir dir = RUNDIR_NONE, second = RUNDIR_NONE;
	struct resoluto_err err = { 0 };

	CHECK(rundir_claim(state_dir, "run-1", &dir, &err) == 0);
	CHECK(rundir_claim(state_dir, "run-1", &second, &err) == -EEXIST);
	CHECK(strstr(err.text, "run-1"));
	CHECK(rundir_remove(state_dir, "run-1", &dir, &err) == 0 && !run_exists("run-1"));
	CHECK(rundir_remove(state_dir, "run-1", &dir, &err) == 0);
}

static void a_dead_run_goes_with_the_next_claim(void)
{
	struct rundir dir = RUNDIR_NONE;
	pid_t owner = start_owner("run-dead", NULL);

	CHECK(rundir_sweep_dead(state_dir, NULL) == 0 && run_exists("run-dead"));
	end_owner(owner);
	CHECK(rundir_claim(state_dir, "run-next", &dir, NULL) == 0);
	CHECK(!run_exists("run-dead") && run_exists("run-next"));
	CHECK(rundir_remove(state_dir, "run-next", &dir, NULL) == 0);
}

static void a_kept_run_stays_when_dead(void)
{
	struct rundir dir = RUNDIR_NONE;

	CHECK(rundir_claim(state_dir, "run-kept", &dir, NULL) == 0);
	CHECK(run_record_keep(dir.fd, "run-kept", NULL) == 0);
	rundir_done(&dir);
	CHECK(rundir_sweep_dead(state_dir, NULL) == 0);
	CHECK(rundir_sweep(state_dir, NULL, NULL) == 0 && run_exists("run-kept"));
	CHECK(rundir_claim(state_dir, "run-kept", &dir, NULL) == -EEXIST);
	dir.fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(remove_tree_at(dir.fd, "runs/run-kept") == 0);
	rundir_done(&dir);
}

static bool is_noted(const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" RUNDIR_LAUNCH "/%s", state_dir, id);
	return access(path, F_OK) == 0;
}

static void note(const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" RUNDIR_LAUNCH "/%s/deep", state_dir, id);
	CHECK(mkdirs(path, 0700) == 0);
}

static void what_was_noted_goes_with_the_run(void)
{
	struct rundir dir = RUNDIR_NONE;

	CHECK(rundir_claim(state_dir, "run-noted", &dir, NULL) == 0);
	note("run-noted");
	note("run-unknown"); /* its directory was removed by hand */
	CHECK(rundir_sweep_dead(state_dir, NULL) == 0);
	CHECK(is_noted("run-noted") && !is_noted("run-unknown"));
	CHECK(rundir_remove(state_dir, "run-noted", &dir, NULL) == 0 && !is_noted("run-noted"));
	/* Nor does a run inherit from one that had its id. */
	note("run-noted");
	CHECK(rundir_claim(state_dir, "run-noted", &dir, NULL) == 0 && !is_noted("run-noted"));
	CHECK(rundir_remove(state_dir, "run-noted", &dir, NULL) == 0);
}

/* Its maker was killed before the lock was there. */
static void a_directory_without_a_lock_is_nobodys(void)
{
	CLEANUP(fd_close) int fd = -1;
	struct rundir dir = RUNDIR_NONE;
	char path[256];

	snprintf(path, sizeof(path), "%s/runs/run-half", state_dir);
	CHECK(mkdir(path, 0700) == 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && !rundir_is_alive(fd));
	CHECK(rundir_claim(state_dir, "run-half", &dir, NULL) == 0 && rundir_is_alive(dir.fd));
	CHECK(rundir_is_removed(fd));
	CHECK(rundir_remove(state_dir, "run-half", &dir, NULL) == 0);
}

static void the_last_state_has_its_place(void)
{
	static const char json[] = "{\"schema\": 1}";
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	struct rundir dir = RUNDIR_NONE;

	CHECK(rundir_claim(state_dir, "run-full", &dir, NULL) == 0);
	CHECK(run_state_use_reserve(dir.fd, json, strlen(json)) == -ENOENT);
	/* Once more for a second boot in the same directory. */
	CHECK(run_state_reserve(dir.fd, 0, NULL) == 0 && run_state_reserve(dir.fd, 0, NULL) == 0);
	CHECK(run_state_use_reserve(dir.fd, json, STATE_SPARE_SIZE + 1) == -E2BIG);
	CHECK(run_state_use_reserve(dir.fd, json, strlen(json)) == 0);
	CHECK(read_file_at(dir.fd, "state.json", 1024, &text, NULL) == 0);
	CHECK_STR(text.data, json);
	CHECK(faccessat(dir.fd, STATE_SPARE, F_OK, 0) < 0);
	/* Of another user, only we could replace it. */
	CHECK(run_state_reserve(dir.fd, 0, NULL) == 0);
	CHECK(faccessat(dir.fd, "state.json", F_OK, 0) < 0);
	CHECK(rundir_remove(state_dir, "run-full", &dir, NULL) == 0);
}

static void a_sweep_looks_at_labels(void)
{
	const char *const mine[] = { "team=a", "resoluto.kind=sandbox", NULL };
	const char *const others[] = { "team=b", NULL };
	const char *const wanted[] = { "team=a", NULL };
	pid_t first = start_owner("run-mine", mine), second = start_owner("run-others", others);

	CHECK(rundir_sweep(state_dir, wanted, NULL) == 1);
	CHECK(!run_exists("run-mine") && run_exists("run-others"));
	end_owner(first);
	end_owner(second);
	CHECK(rundir_sweep(state_dir, NULL, NULL) == 1);
}

/* No pid of a record is believed: this one is ours. */
static void a_sweep_kills_nobody_but_a_shim(void)
{
	struct rundir dir = RUNDIR_NONE;
	const struct run_record record = { .id = "run-liar",
		                           .shim_pid = getpid(),
		                           .shim_start = 1 };

	CHECK(rundir_claim(state_dir, "run-liar", &dir, NULL) == 0);
	CHECK(run_record_write(dir.fd, &record, NULL) == 0);
	CHECK(rundir_sweep(state_dir, NULL, NULL) == 1);
	rundir_done(&dir);
}

/* Swept while its owner lived, and claimed by another since: the owner's cleaning up is not the other's. */
static void an_owner_removes_only_its_own_directory(void)
{
	struct rundir swept = RUNDIR_NONE, next = RUNDIR_NONE;

	CHECK(rundir_claim(state_dir, "run-again", &swept, NULL) == 0);
	CHECK(run_record_write(swept.fd, &(struct run_record){ .id = "run-again" }, NULL) == 0);
	CHECK(rundir_sweep(state_dir, NULL, NULL) == 1);
	CHECK(rundir_claim(state_dir, "run-again", &next, NULL) == 0);
	CHECK(rundir_remove(state_dir, "run-again", &swept, NULL) == 0);
	CHECK(run_exists("run-again"));
	CHECK(rundir_remove(state_dir, "run-again", &next, NULL) == 0 && !run_exists("run-again"));
}

static void make_empty(const char *path)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
}

/* No directory, so it cannot be swept: the others are, and it is told. */
static void what_cannot_be_swept_blocks_nobody(void)
{
	struct rundir dir = RUNDIR_NONE;
	struct resoluto_err err = { 0 };
	pid_t owner = start_owner("run-dead", NULL);
	char path[256];

	snprintf(path, sizeof(path), "%s/runs/run-strange", state_dir);
	make_empty(path);
	end_owner(owner);
	CHECK(rundir_sweep_dead(state_dir, &err) == -ENOTDIR && strstr(err.text, "run-strange"));
	CHECK(!run_exists("run-dead"));
	CHECK(rundir_claim(state_dir, "run-next", &dir, &err) == 0 && run_exists("run-next"));
	CHECK(rundir_remove(state_dir, "run-next", &dir, NULL) == 0);
	CHECK(unlink(path) == 0);
}

/* In a child that is no longer root; its exit status is the number of the first thing that went wrong. */
static int claim_as_nobody(const char *home)
{
	struct rundir dir = RUNDIR_NONE;
	struct resoluto_err err = { 0 };

	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 1;
	if (rundir_claim(home, "run-1", &dir, NULL) < 0)
		return 2;
	if (rundir_remove(home, "run-1", &dir, NULL) < 0)
		return 3;
	/* What the first claim had renamed away stands in the way of the second no more than before. */
	if (rundir_claim(home, "run-2", &dir, NULL) < 0)
		return 4;
	return rundir_sweep_dead(home, &err) == -EACCES && strstr(err.text, "run-") ? 0 : 5;
}

static void make_roots_run(int runs, const char *name, mode_t mode)
{
	char file[64];

	snprintf(file, sizeof(file), "%s/console.log", name);
	CHECK(mkdirat(runs, name, mode) == 0);
	CHECK(replace_file_at(runs, file, "x", 1, 0600, NULL) == 0);
}

static void a_dead_run_of_root_blocks_no_user(void)
{
	char home[] = "/tmp/resoluto-places-XXXXXX", path[64];
	CLEANUP(fd_close) int runs = -1;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("only root can leave what a user cannot remove");
	snprintf(path, sizeof(path), "%s/runs", mkdtemp(home));
	CHECK(mkdir(path, 0700) == 0);
	runs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_roots_run(runs, "run-closed", 0700);
	make_roots_run(runs, "run-open", 0755);
	CHECK(chown(path, NOBODY, NOBODY) == 0 && chown(home, NOBODY, NOBODY) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(claim_as_nobody(home));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(faccessat(runs, "run-closed", F_OK, 0) == 0);
	CHECK(remove_tree_at(AT_FDCWD, home) == 0);
}

static void a_sweep_that_cannot_list_says_so(void)
{
	CHECK(rundir_sweep("/proc/1/nowhere", NULL, NULL) < 0);
}

static void slots_are_shared_between_processes(void)
{
	struct slot first = SLOT_NONE, second = SLOT_NONE;
	int ready[2];
	pid_t pid;
	char byte;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct slot theirs = SLOT_NONE;

		if (slot_try(state_dir, 2, &theirs, NULL) < 0)
			_exit(1);
		(void) !write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(slot_try(state_dir, 2, &first, NULL) == 0 && first.number == 1);
	CHECK(slot_try(state_dir, 2, &second, NULL) == -EBUSY);
	end_owner(pid);
	CHECK(slot_try(state_dir, 2, &second, NULL) == 0 && second.number == 0);
	slot_done(&first);
	slot_done(&second);
	close(ready[0]);
	close(ready[1]);
}

/* A process that takes a slot of that state directory and a user, and then waits to be killed. */
static pid_t start_user(const char *state, const char *top, const struct uid_range *range)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct slot theirs = SLOT_NONE;

		if (slot_try(state, 1, &theirs, NULL) < 0 ||
		    slot_take_uid(&theirs, top, range, NULL) < 0 || theirs.uid != range->first)
			_exit(1);
		(void) !write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

/* Each state directory has slots of its own, all of them the same users. */
static void a_user_is_one_runs_whatever_its_state_directory(void)
{
	const struct uid_range range = { 520000, 520001 };
	struct slot second = SLOT_NONE, third = SLOT_NONE;
	struct resoluto_err err = { 0 };
	char one[256], two[256];
	pid_t first;

	snprintf(one, sizeof(one), "%s/one", state_dir);
	snprintf(two, sizeof(two), "%s/two", state_dir);
	first = start_user(one, state_dir, &range);
	CHECK(slot_try(two, 2, &second, NULL) == 0 && second.number == 0);
	CHECK(slot_take_uid(&second, state_dir, &range, NULL) == 0 && second.uid == 520001);
	CHECK(slot_try(two, 2, &third, NULL) == 0 && third.number == 1);
	CHECK(slot_take_uid(&third, state_dir, &range, &err) == -EBUSY);
	CHECK(strstr(err.text, "RESOLUTO_LOCAL_UIDS=520000-520001"));
	end_owner(first);
	CHECK(slot_take_uid(&third, state_dir, &range, NULL) == 0 && third.uid == 520000);
	slot_done(&second);
	slot_done(&third);
}

/* As the shim does, which inherits it. */
static void a_user_is_taken_while_anybody_holds_its_lock(void)
{
	const struct uid_range range = { 520002, 520002 };
	struct slot slot = SLOT_NONE, next = SLOT_NONE;
	int inherited;

	CHECK(slot_take_uid(&slot, state_dir, &range, NULL) == 0);
	inherited = dup(slot.uid_fd);
	slot_done(&slot);
	CHECK(slot_take_uid(&next, state_dir, &range, NULL) == -EBUSY);
	close(inherited);
	CHECK(slot_take_uid(&next, state_dir, &range, NULL) == 0);
	slot_done(&next);
}

static void no_user_is_taken_where_others_write(void)
{
	const struct uid_range range = { 520003, 520003 };
	struct slot slot = SLOT_NONE;
	struct resoluto_err err = { 0 };
	char path[256];

	snprintf(path, sizeof(path), "%s/missing", state_dir);
	CHECK(slot_take_uid(&slot, path, &range, &err) == -ENOENT && strstr(err.text, path));
	CHECK(access(path, F_OK) < 0);
	CHECK(slot_take_uid(&slot, "/proc/self", &range, &err) < 0 && strstr(err.text, "uids"));
	snprintf(path, sizeof(path), "%s/shared/resoluto-sandbox", state_dir);
	CHECK(mkdirs(path, 0700) == 0 && chmod(path, 0770) == 0);
	*strrchr(path, '/') = '\0';
	CHECK(slot_take_uid(&slot, path, &range, NULL) == -EPERM);
	snprintf(path, sizeof(path), "%s/linked", state_dir);
	CHECK(mkdir(path, 0700) == 0);
	strcat(path, "/resoluto-sandbox");
	CHECK(symlink(state_dir, path) == 0);
	*strrchr(path, '/') = '\0';
	CHECK(slot_take_uid(&slot, path, &range, NULL) == -ELOOP);
	CHECK(slot.fd < 0 && slot.uid_fd < 0);
}

static void slots_are_counted(void)
{
	unsigned count;

	CHECK(slot_count(NULL, 3ull << 30, &count, NULL) == 0 && count == 6);
	CHECK(slot_count("", 1, &count, NULL) == 0 && count == 1);
	CHECK(slot_count("3", 1, &count, NULL) == 0 && count == 3);
	CHECK(slot_count("0", 1, &count, NULL) == -EINVAL);
	CHECK(slot_count("-1", 1, &count, NULL) == -EINVAL);
	CHECK(slot_count("3x", 1, &count, NULL) == -EINVAL);
	CHECK(slot_count("99999999999999999999", 1, &count, NULL) == -EINVAL);
}

static void user_ranges_are_checked(void)
{
	struct uid_range range;

	CHECK(uid_range_parse("200000-200063", &range, NULL) == 0);
	CHECK(range.first == 200000 && range.last == 200063);
	CHECK(uid_range_parse("5000-5000", &range, NULL) == 0);
	CHECK(uid_range_parse("0-5", &range, NULL) == -EINVAL);
	CHECK(uid_range_parse("6000-5000", &range, NULL) == -EINVAL);
	CHECK(uid_range_parse("5000", &range, NULL) == -EINVAL);
	CHECK(uid_range_parse("5000-", &range, NULL) == -EINVAL);
	CHECK(uid_range_parse("5000-6000x", &range, NULL) == -EINVAL);
	CHECK(uid_range_parse("5000-4294967295", &range, NULL) == -EINVAL);
}

static struct resoluto_conduit *filled_conduit(void)
{
	struct resoluto_conduit *conduit = NULL;

	CHECK(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(conduit, "run/1/inbox/workspace.tar.gz", "hello", 5,
	                                 NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(conduit, "run/1/inbox/a.tar.gz", "first", 5, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(conduit, "run/1/inbox/notes.txt", "no archive", 10,
	                                 NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(conduit, "run/10/inbox/b.tar.gz", "another run", 11,
	                                 NULL) == 0);
	return conduit;
}

static void the_inbox_disk_holds_the_archives(void)
{
	CLEANUP(fd_close) int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), disk = -1;
	struct resoluto_conduit *conduit = filled_conduit();
	struct inbox_entry entries[INBOX_ARCHIVES_MAX];
	uint8_t block[INBOX_INDEX_SIZE];
	char bytes[6] = { 0 };
	struct stat st;
	unsigned count;

	CHECK(inbox_build(conduit, "run/1", dir, &disk, NULL) == 0);
	CHECK(fstat(disk, &st) == 0 && (uint64_t) st.st_size == INBOX_DISK_SIZE &&
	      st.st_nlink == 0);
	CHECK(st.st_blocks < 1000 && (fcntl(disk, F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK(pread(disk, block, sizeof(block), 0) == (ssize_t) sizeof(block));
	CHECK(inbox_index_parse(block, entries, &count) == 0 && count == 2);
	CHECK_STR(entries[0].name, "a.tar.gz");
	CHECK_STR(entries[1].name, "workspace.tar.gz");
	CHECK(entries[1].length == 5 && entries[1].offset % INBOX_ALIGN == 0);
	CHECK(pread(disk, bytes, 5, (off_t) entries[1].offset) == 5);
	CHECK_STR(bytes, "hello");
	resoluto_conduit_close(conduit);
}

static void an_index_that_lies_is_refused(void)
{
	struct inbox_entry good = { .name = "a.tar.gz", .offset = INBOX_ALIGN, .length = 10 },
			   entry;
	struct inbox_entry entries[INBOX_ARCHIVES_MAX];
	uint8_t block[INBOX_INDEX_SIZE];
	unsigned count;

	inbox_index_write(&good, 1, block);
	CHECK(inbox_index_parse(block, entries, &count) == 0 && count == 1);
	block[8] = INBOX_ARCHIVES_MAX + 1;
	CHECK(inbox_index_parse(block, entries, &count) == -EBADMSG);
	memset(block, 0, sizeof(block));
	CHECK(inbox_index_parse(block, entries, &count) == -EBADMSG);
	entry = good;
	entry.offset = 0;
	inbox_index_write(&entry, 1, block);
	CHECK(inbox_index_parse(block, entries, &count) == -EBADMSG);
	entry.offset = INBOX_DISK_SIZE;
	inbox_index_write(&entry, 1, block);
	CHECK(inbox_index_parse(block, entries, &count) == -EBADMSG);
	entry = good;
	strcpy(entry.name, "../a.tar.gz");
	inbox_index_write(&entry, 1, block);
	CHECK(inbox_index_parse(block, entries, &count) == -EBADMSG);
}

static int open_image(const char *bytes, size_t len, enum image_kind kind)
{
	CLEANUP(fd_close) int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char path[256];

	CHECK(replace_file_at(dir, "image", bytes, len, 0600, NULL) == 0);
	snprintf(path, sizeof(path), "%s/image", state_dir);
	return image_open(path, kind, false, &fd, NULL);
}

static void damaged_images_are_refused(void)
{
	char squashfs[200] = "hsqs", elf[200] = "\177ELF\2";
	CLEANUP(fd_close) int fd = -1;
	char path[256];

	CHECK(open_image("", 0, IMAGE_INITRD) == -EBADMSG);
	CHECK(open_image("x", 1, IMAGE_INITRD) == 0);
	CHECK(open_image("nothing", 7, IMAGE_ROOTFS) == -EBADMSG);
	squashfs[40] = (char) 200;
	CHECK(open_image(squashfs, sizeof(squashfs), IMAGE_ROOTFS) == 0);
	CHECK(open_image(squashfs, sizeof(squashfs) - 1, IMAGE_ROOTFS) == -EBADMSG);
	CHECK(open_image(elf, sizeof(elf), IMAGE_KERNEL) == -EBADMSG);
	snprintf(path, sizeof(path), "%s/missing", state_dir);
	CHECK(image_open(path, IMAGE_KERNEL, false, &fd, NULL) == -ENOENT);
	CHECK(image_open(state_dir, IMAGE_KERNEL, false, &fd, NULL) == -EINVAL);
	CHECK(open_image("x", 1, IMAGE_INITRD) == 0);
	snprintf(path, sizeof(path), "%s/image", state_dir);
	CHECK(image_open(path, IMAGE_INITRD, true, &fd, NULL) == -EACCES);
}

/* As scripts/build-initramfs.sh makes it, and as cpio does, which fills its blocks. */
static void an_initramfs_that_is_cut_off_is_refused(void)
{
	static const char file[] =
		"07070100000001000081A4000000000000000000000001000000000000001400"
		"0000000000000000000000000000000000000200000000a";
	static const char last[] =
		"0707010000000200000000000000000000000000000001000000000000000000"
		"0000000000000000000000000000000000000B00000000TRAILER!!!";
	char archive[1024] = "";
	size_t at = sizeof(file) + 20, end = at + sizeof(last);

	memcpy(archive, file, sizeof(file));
	memset(archive + sizeof(file), 'x', 20);
	memcpy(archive + at, last, sizeof(last));
	CHECK(open_image(archive, end, IMAGE_INITRD) == 0);
	CHECK(open_image(archive, sizeof(archive), IMAGE_INITRD) == 0);
	for (size_t len = 6; len < end - 1; len += 5)
		CHECK(open_image(archive, len, IMAGE_INITRD) == -EBADMSG);
	/* Linux unpacks what follows, too. */
	memcpy(archive + end + 4, "\x1f\x8b\x08", 3);
	CHECK(open_image(archive, sizeof(archive), IMAGE_INITRD) == 0);
	archive[60] = 'z';
	CHECK(open_image(archive, sizeof(archive), IMAGE_INITRD) == -EBADMSG);
	/* Packed, and it cannot be told. */
	CHECK(open_image("\x1f\x8b\x08", 3, IMAGE_INITRD) == 0);
}

static void a_scratch_disk_is_a_file_system(void)
{
	CLEANUP(fd_close) int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	unsigned char magic[2];
	struct stat st;

	if (access("/sbin/mkfs.ext4", X_OK) < 0 && access("/usr/sbin/mkfs.ext4", X_OK) < 0)
		SKIP("mkfs.ext4 is not installed");
	CHECK(scratch_build(dir, 64 << 20, &fd, NULL) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 64 << 20 && st.st_nlink == 0);
	CHECK(pread(fd, magic, 2, 1024 + 56) == 2 && magic[0] == 0x53 && magic[1] == 0xef);
	fd_close(&fd);
	CHECK(scratch_build(dir, 1 << 20, &fd, NULL) == -EINVAL);
}

/* Shared with who makes and removes runs: odd from when one was made to its removal. */
static unsigned *turns;

static _Noreturn void make_and_remove_runs(void)
{
	for (int i = 0; i < RACES; i++) {
		struct rundir dir = RUNDIR_NONE;

		if (rundir_claim(state_dir, "run-race", &dir, NULL) < 0)
			_exit(1);
		__atomic_add_fetch(turns, 1, __ATOMIC_SEQ_CST);
		if (rundir_remove(state_dir, "run-race", &dir, NULL) < 0)
			_exit(1);
		__atomic_add_fetch(turns, 1, __ATOMIC_SEQ_CST);
	}
	_exit(0);
}

/* False: it was being made just then, and was taken for one that nobody holds. */
static bool looks_right(void)
{
	CLEANUP(rundir_done) struct rundir dir = RUNDIR_NONE;
	const unsigned before = __atomic_load_n(turns, __ATOMIC_SEQ_CST);

	return before % 2 || rundir_open(state_dir, "run-race", &dir, NULL) < 0 ||
	       rundir_is_alive(dir.fd) || __atomic_load_n(turns, __ATOMIC_SEQ_CST) != before;
}

static void one_that_is_being_made_is_not_taken_for_dead(void)
{
	int status = 0;
	pid_t pid;

	turns = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	             0);
	CHECK(turns != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		make_and_remove_runs();
	while (waitpid(pid, &status, WNOHANG) == 0)
		CHECK(looks_right());
	CHECK(status == 0 && *turns == 2 * RACES);
}

int main(void)
{
	int r;

	if (!mkdtemp(state_dir))
		return 1;
	RUN(a_run_is_claimed_once);
	RUN(a_dead_run_goes_with_the_next_claim);
	RUN(a_kept_run_stays_when_dead);
	RUN(what_was_noted_goes_with_the_run);
	RUN(a_directory_without_a_lock_is_nobodys);
	RUN(one_that_is_being_made_is_not_taken_for_dead);
	RUN(the_last_state_has_its_place);
	RUN(a_sweep_looks_at_labels);
	RUN(a_sweep_kills_nobody_but_a_shim);
	RUN(an_owner_removes_only_its_own_directory);
	RUN(what_cannot_be_swept_blocks_nobody);
	RUN(a_dead_run_of_root_blocks_no_user);
	RUN(a_sweep_that_cannot_list_says_so);
	RUN(slots_are_shared_between_processes);
	RUN(a_user_is_one_runs_whatever_its_state_directory);
	RUN(a_user_is_taken_while_anybody_holds_its_lock);
	RUN(no_user_is_taken_where_others_write);
	RUN(slots_are_counted);
	RUN(user_ranges_are_checked);
	RUN(the_inbox_disk_holds_the_archives);
	RUN(an_index_that_lies_is_refused);
	RUN(damaged_images_are_refused);
	RUN(an_initramfs_that_is_cut_off_is_refused);
	RUN(a_scratch_disk_is_a_file_system);
	r = check_done();
	(void) remove_tree_at(AT_FDCWD, state_dir);
	return r;
}
