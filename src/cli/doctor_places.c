/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/quantity.h"
#include "cli/doctor.h"
#include "cli/environment.h"
#include "cli/facts.h"
#include "cli/leftovers.h"
#include "resoluto/image.h"
#include "resoluto/version.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"

#define DEFAULT_IMAGE "resoluto-sandbox-base:" RESOLUTO_VERSION

enum {
	AMOUNT_MAX = 32, /* bytes of "12.0 MiB" */
	PATH_SIZE = 4096,
	MEMINFO_MAX = 64 * 1024, /* bytes */
	STATE_MODE = 0700,
	CACHE_MODE = 0755,
};

#define SPACE_MIN (1ull << 30)
#define MEMORY_MIN (512ull << 20)

void check_configuration(const struct config *config, struct finding *finding)
{
	const char *file = config_file(config);

	text_add(&finding->note, file ? file : "no file; environment and defaults");
}

/* Only what is before a '=': a value may be a secret. */
static void note_unknown(struct finding *finding, const char *const *entries)
{
	const char *before = "unknown: ";

	for (; entries && *entries; entries++) {
		if (!environment_is_unknown(*entries))
			continue;
		text_addf(&finding->note, "%s%.*s", before, (int) strcspn(*entries, "="), *entries);
		before = ", ";
	}
}

static void note_odd_lines(struct finding *finding, const char *const *lines)
{
	const char *before = finding->note.buf.len ? "; no KEY=VALUE: " : "no KEY=VALUE: ";

	for (; lines && *lines; lines++) {
		text_addf(&finding->note, "%s%s", before, *lines);
		before = ", ";
	}
}

void check_keys(const struct config *config, struct finding *finding)
{
	note_unknown(finding, config_entries(config));
	note_odd_lines(finding, config_odd_lines(config));
	if (finding->note.buf.len == 0)
		text_add(&finding->note, "all known");
	else
		finding_fail(finding, CHECK_ABSENT, "correct %s; the man page lists what is read",
		             config_file(config));
}

void check_runtime(const struct config *config, struct finding *finding)
{
	const char *name = config_get(config, "RESOLUTO_LOCAL_RUNTIME");

	text_add(&finding->note, name && name[0] ? name : "microvm");
	if (name && name[0] && strcmp(name, "microvm") != 0)
		finding_fail(finding, CHECK_MISSING,
		             "set RESOLUTO_LOCAL_RUNTIME to microvm, the only one in this version");
}

static const char *default_image(const struct config *config)
{
	const char *ref = config_get(config, "RESOLUTO_SANDBOX_IMAGE");

	return ref && ref[0] ? ref : DEFAULT_IMAGE;
}

static int find_image(const char *ref, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	const struct resoluto_image_options options = { .struct_size = sizeof(options),
		                                        .pull = RESOLUTO_PULL_NEVER };

	return resoluto_image_get(ref, &options, ret_image, err);
}

void check_image(const struct config *config, struct finding *finding)
{
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	const char *ref = default_image(config);
	struct resoluto_err err = { 0 };
	char amount[AMOUNT_MAX];

	int r = find_image(ref, &image, &err);

	if (r == 0) {
		quantity_format_bytes(image.size_bytes, amount, sizeof(amount));
		text_addf(&finding->note, "%s, %s", ref, amount);
		return;
	}
	/* Only the cache was asked. */
	if (r == -ENOENT)
		text_addf(&finding->note, "%s is not in the cache", ref);
	else
		text_add(&finding->note, err.text);
	finding_fail(finding, CHECK_MISSING,
	             "run scripts/local-backend-up.sh of the source tree, or image pull %s", ref);
}

/* Where the directory would be made: its nearest parent that exists. */
static void nearest_parent(const char *path, char ret_parent[PATH_SIZE])
{
	snprintf(ret_parent, PATH_SIZE, "%s", path);
	while (access(ret_parent, F_OK) < 0) {
		char *slash = strrchr(ret_parent, '/');

		if (!slash || slash == ret_parent) {
			snprintf(ret_parent, PATH_SIZE, "/");
			return;
		}
		*slash = '\0';
	}
}

static bool is_there(const char *path, struct finding *finding)
{
	if (access(path, F_OK) == 0)
		return true;
	text_addf(&finding->note, "%s is not there yet", path);
	finding_fail(finding, CHECK_ABSENT,
	             "doctor --fix makes it; so does the first command that needs it");
	return false;
}

void check_state_dir(const struct config *config, struct finding *finding)
{
	const char *path = config_state_dir(config);
	struct stat st;

	if (!is_there(path, finding))
		return;
	text_addf(&finding->note, "%s", path);
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || access(path, W_OK | X_OK) < 0) {
		text_add(&finding->note, ": not a directory that one can write to");
		finding_fail(finding, CHECK_MISSING,
		             "set RESOLUTO_STATE_DIR to a directory of your own");
	} else if (st.st_uid != geteuid()) {
		text_addf(&finding->note, ": belongs to user %u", st.st_uid);
		finding_fail(finding, CHECK_MISSING,
		             "set RESOLUTO_STATE_DIR to a directory of your own");
	} else if ((st.st_mode & 0077) != 0) {
		text_addf(&finding->note, ": mode %04o lets others in", st.st_mode & 07777);
		finding_fail(finding, CHECK_MISSING, "doctor --fix, or chmod 0700 %s", path);
	}
}

int fix_state_dir(const struct config *config, struct resoluto_err *err)
{
	const char *path = config_state_dir(config);
	CLEANUP(fd_close) int fd = -1;
	struct stat st;
	int r = mkdirs(path, STATE_MODE);

	if (r < 0)
		return resoluto_fail(err, r, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (st.st_uid != geteuid())
		return resoluto_fail(err, -EPERM, "%s belongs to user %u", path, st.st_uid);
	if (fchmod(fd, STATE_MODE) < 0)
		return resoluto_fail(err, -errno, "change the mode of %s", path);
	return 0;
}

/* A cache that somebody else keeps is enough for runs of the images in it. */
static void check_foreign_cache(const struct config *config, struct finding *finding)
{
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };

	if (find_image(default_image(config), &image, NULL) < 0) {
		text_add(&finding->note, ": not a directory that one can write to");
		finding_fail(finding, CHECK_MISSING,
		             "set RESOLUTO_CACHE_DIR to a directory of your own");
		return;
	}
	text_add(&finding->note, ": read-only, so no images can be added");
	finding_fail(finding, CHECK_ABSENT,
	             "to add images, set RESOLUTO_CACHE_DIR to a directory of your own");
}

void check_cache_dir(const struct config *config, struct finding *finding)
{
	const char *path = config_cache_dir(config);
	struct stat st;

	if (!is_there(path, finding))
		return;
	text_addf(&finding->note, "%s", path);
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || access(path, W_OK | X_OK) < 0) {
		check_foreign_cache(config, finding);
	} else if ((st.st_mode & 0022) != 0) {
		text_addf(&finding->note, ": mode %04o lets others write", st.st_mode & 07777);
		finding_fail(finding, CHECK_MISSING, "chmod go-w %s", path);
	}
}

int fix_cache_dir(const struct config *config, struct resoluto_err *err)
{
	const char *path = config_cache_dir(config);
	int r = mkdirs(path, CACHE_MODE);

	return r < 0 ? resoluto_fail(err, r, "make %s", path) : 0;
}

static uint64_t space_at(const char *path, char ret_text[AMOUNT_MAX])
{
	char parent[PATH_SIZE];
	struct statvfs fs;
	uint64_t bytes;

	nearest_parent(path, parent);
	if (statvfs(parent, &fs) < 0)
		fs = (struct statvfs){ 0 };
	bytes = (uint64_t) fs.f_bavail * fs.f_frsize;
	quantity_format_bytes(bytes, ret_text, AMOUNT_MAX);
	return bytes;
}

void check_space(const struct config *config, struct finding *finding)
{
	char state[AMOUNT_MAX], cache[AMOUNT_MAX];
	uint64_t state_bytes = space_at(config_state_dir(config), state);
	uint64_t cache_bytes = space_at(config_cache_dir(config), cache);

	text_addf(&finding->note, "%s free for runs, %s for images", state, cache);
	if (state_bytes < SPACE_MIN || cache_bytes < SPACE_MIN)
		finding_fail(
			finding, CHECK_ABSENT,
			"free some, with image prune or otherwise, or move RESOLUTO_STATE_DIR and "
			"RESOLUTO_CACHE_DIR");
}

void check_memory(const struct config *config, struct finding *finding)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MEMINFO_MAX);
	struct resoluto_err err = { 0 };
	char amount[AMOUNT_MAX];
	uint64_t available = 0;
	unsigned count;

	if (read_file_at(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text, NULL) == 0 && text.data)
		available = fact_meminfo(text.data, "MemAvailable");
	quantity_format_bytes(available, amount, sizeof(amount));
	text_addf(&finding->note, "%s available", amount);
	if (slot_count(config_get(config, "RESOLUTO_LOCAL_MAX_RUNS"), available, &count, &err) <
	    0) {
		finding_fail(finding, CHECK_MISSING, "%s", err.text);
		return;
	}
	text_addf(&finding->note, ", %u sandbox%s at once", count, count == 1 ? "" : "es");
	if (available < MEMORY_MIN)
		finding_fail(finding, CHECK_ABSENT,
		             "free some memory, or run with a small --memory");
}

void check_uids(const struct config *config, struct finding *finding)
{
	const char *text = config_get(config, "RESOLUTO_LOCAL_UIDS");
	struct resoluto_err err = { 0 };
	struct uid_range range;

	if (geteuid() != 0) {
		text_addf(&finding->note, "not root: sandboxes run as user %u", geteuid());
	} else if (!text) {
		text_add(&finding->note, "not configured; root's runs are refused");
		finding_fail(finding, CHECK_MISSING,
		             "run scripts/local-backend-up.sh of the source tree, or set "
		             "RESOLUTO_LOCAL_UIDS "
		             "to ids that nobody uses, such as 520000-520099");
	} else if (uid_range_parse(text, &range, &err) < 0) {
		text_add(&finding->note, text);
		finding_fail(finding, CHECK_MISSING, "%s", err.text);
	} else {
		text_addf(&finding->note, "%" PRIu32 " to %" PRIu32, range.first, range.last);
	}
}

void check_leftovers(const struct config *config, struct finding *finding)
{
	struct resoluto_err err = { 0 };
	struct leftovers count;
	char amount[AMOUNT_MAX];

	if (leftovers_count(config_state_dir(config), &count, &err) < 0) {
		text_add(&finding->note, err.text);
		finding_fail(finding, CHECK_ABSENT, "look at the state directory");
		return;
	}
	quantity_format_bytes(count.bytes, amount, sizeof(amount));
	text_addf(&finding->note, "%u running, %u kept, %u dead; %s stored", count.alive,
	          count.kept, count.dead, amount);
	if (count.dead > 0)
		finding_fail(
			finding, CHECK_ABSENT,
			"doctor --fix removes what dead runs left, and says what it cannot remove; "
			"so does the next run, silently");
}

int fix_leftovers(const struct config *config, struct resoluto_err *err)
{
	int r = rundir_sweep_dead(config_state_dir(config), err);

	return r < 0 ? r : 0;
}

void check_later(const struct config *config, struct finding *finding)
{
	text_add(&finding->note, "later version");
	finding_fail(finding, CHECK_ABSENT,
	             "nothing to install: version " RESOLUTO_VERSION
	             " runs microVMs of this machine, without it");
}
