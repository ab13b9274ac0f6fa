/* SPDX-License-Identifier: Apache-2.0 */
/* store_clean.c - listing the cache, and removing from it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "image/store_internal.h"

/* -- list -- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The file or directory that was imported under this name is gone: nobody can ask for it again. */
static bool source_is_gone(const char *key)
{
	static const char *const prefixes[] = { "tar:", "rootfs:" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(key, prefixes[i], n) == 0)
			return access(key + n, F_OK) < 0 && errno == ENOENT;
	}
	return false;
}

/* What key of refs names, if it is whole. */
static int list_one(const struct store *store, const char *key, const json_t *refs,
                    int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                    struct resoluto_err *err)
{
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	const char *digest = store_ref_digest(json_object_get(refs, key));
	int r;

	if (!digest[0] || store_find_image(store, digest, &image, NULL) < 0)
		return 0;
	image.source_is_gone = source_is_gone(key);
	image.ref = strdup(key);
	if (!image.ref)
		return resoluto_fail(err, -ENOMEM, "list images");
	r = each(ctx, &image);
	return r < 0 ? resoluto_fail(err, r, "stopped at %.200s", key) : 0;
}

static int list_sorted(const struct store *store, json_t *refs,
                       int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                       struct resoluto_err *err)
{
	CLEANUP(mem_free) const char **keys = calloc(json_object_size(refs) + 1, sizeof(*keys));
	size_t count = 0;
	const char *key;
	json_t *ref;
	int r = 0;

	if (!keys)
		return resoluto_fail(err, -ENOMEM, "list images");
	json_object_foreach(refs, key, ref) keys[count++] = key;
	qsort(keys, count, sizeof(*keys), by_text);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = list_one(store, keys[i], refs, each, ctx, err);
	return r;
}

int store_list(const struct store *store,
               int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
               struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *refs = NULL;
	CLEANUP(store_json_release) json_t *system = NULL;
	int r;

	r = store_refs_load(store->dir, &refs, err);
	if (r == 0 && store->system_dir[0])
		r = store_refs_load(store->system_dir, &system, err);
	if (r < 0)
		return r;
	if (system && json_object_update_missing(refs, system) < 0)
		return resoluto_fail(err, -ENOMEM, "list images");
	return list_sorted(store, refs, each, ctx, err);
}

/* -- remove -- */

static uint64_t remove_file(int images, const char *name)
{
	struct stat st;

	if (fstatat(images, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(images, name, 0) < 0)
		return 0;
	return (uint64_t) st.st_blocks * 512;
}

/* Description first: from then on there is no image. */
static void remove_image(int images, const char *digest)
{
	char name[32 + DIGEST_HEX];

	snprintf(name, sizeof(name), "sha256-%s.json", digest_hex(digest));
	(void) remove_file(images, name);
	snprintf(name, sizeof(name), "sha256-%s.squashfs", digest_hex(digest));
	(void) remove_file(images, name);
}

static bool has_image(int images, const char *digest)
{
	char name[32 + DIGEST_HEX];

	snprintf(name, sizeof(name), "sha256-%s.squashfs", digest_hex(digest));
	return faccessat(images, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Drop every ref for which it holds: its key is `key`, or (key NULL) its digest is `digest`. */
static size_t drop_refs(json_t *refs, const char *key, const char *digest)
{
	const char *name;
	json_t *ref;
	size_t count = 0;
	void *next;

	json_object_foreach_safe(refs, next, name, ref)
	{
		bool hit = key ? strcmp(name, key) == 0
		               : strcmp(store_ref_digest(ref), digest) == 0;

		if (hit && json_object_del(refs, name) == 0)
			count++;
	}
	return count;
}

static int not_ours(const struct store *store, const char *key, const char *digest,
                    struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *system = NULL;

	if (store->system_dir[0] && store_refs_load(store->system_dir, &system, NULL) == 0 &&
	    (key ? !!json_object_get(system, key) : store_refs_have(system, digest)))
		return resoluto_fail(err, -EPERM,
		                     "'%.200s' is in the system's cache %s: only root removes it",
		                     key ? key : digest, store->system_dir);
	return resoluto_fail(err, -ENOENT, "the cache has no image '%.200s'", key ? key : digest);
}

static int remove_from(const struct store *store, int images, const char *key, const char *given,
                       struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *refs = NULL;
	char digest[DIGEST_SIZE];
	int r;

	r = store_refs_load(store->dir, &refs, err);
	if (r < 0)
		return r;
	snprintf(digest, sizeof(digest), "%s",
	         key ? store_ref_digest(json_object_get(refs, key)) : given);
	if (drop_refs(refs, key, digest) > 0)
		r = store_refs_save(store->dir, refs, err);
	else if (key || !has_image(images, digest))
		return not_ours(store, key, given, err);
	if (r == 0 && digest[0] && !store_refs_have(refs, digest))
		remove_image(images, digest);
	return r;
}

static int remove_locked(const struct store *store, const char *key, const char *digest,
                         struct resoluto_err *err)
{
	CLEANUP(fd_close) int images = store_open_images(store, err);
	CLEANUP(fd_close) int lock = images < 0 ? -1 : store_lock(store, images, err);

	if (images < 0 || lock < 0)
		return images < 0 ? images : lock;
	return remove_from(store, images, key, digest, err);
}

int store_remove_ref(const struct store *store, const char *key, struct resoluto_err *err)
{
	return remove_locked(store, key, NULL, err);
}

int store_remove_digest(const struct store *store, const char *digest, struct resoluto_err *err)
{
	return remove_locked(store, NULL, digest, err);
}

/* -- prune -- */

static DIR *open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(&fd);
	return dir;
}

static uint64_t tree_size(int at, const char *name, unsigned depth)
{
	CLEANUP(dir_close) DIR *dir = open_dir(at, name);
	struct dirent *entry;
	uint64_t total = 0;

	while (dir && (entry = readdir(dir))) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		total += (uint64_t) st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth > 0)
			total += tree_size(dirfd(dir), entry->d_name, depth - 1);
	}
	return total;
}

/* A maker that lives holds its lock.  Makers start only under the cache's lock, which we hold. */
static bool maker_is_dead(int images, const char *name)
{
	CLEANUP(fd_close) int fd = -1;
	char path[NAME_MAX + 8];

	snprintf(path, sizeof(path), "%s/lock", name);
	fd = openat(images, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT;
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static uint64_t sweep_part(int images, const char *name)
{
	uint64_t size;

	if (!maker_is_dead(images, name))
		return 0;
	size = tree_size(images, name, 4);
	return remove_tree_at(images, name) == 0 ? size : 0;
}

static bool digest_of_name(const char *name, char ret_digest[DIGEST_SIZE])
{
	if (strncmp(name, "sha256-", 7) != 0 || strlen(name) < 7 + DIGEST_HEX + 1)
		return false;
	snprintf(ret_digest, DIGEST_SIZE, "sha256:%.*s", DIGEST_HEX, name + 7);
	return digest_is_valid(ret_digest);
}

/* refs NULL: only what killed makers left. */
static uint64_t clean_one(int images, const char *name, const json_t *refs)
{
	char digest[DIGEST_SIZE];

	if (strncmp(name, ".part-", 6) == 0)
		return sweep_part(images, name);
	/* base/io.h: a file that never got its name.  Files are replaced only under the lock we hold. */
	if (strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".part") == 0)
		return remove_file(images, name);
	if (!refs || !digest_of_name(name, digest) || store_refs_have(refs, digest))
		return 0;
	return remove_file(images, name);
}

/* A refs.json that never got its name. */
static uint64_t clean_part_of_refs(int cache, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(name, "refs.json.", 10) != 0 || strcmp(name + len - 5, ".part") != 0)
		return 0;
	return remove_file(cache, name);
}

static uint64_t clean_dir(int at, const char *name, const json_t *refs, bool is_images)
{
	CLEANUP(dir_close) DIR *dir = open_dir(at, name);
	struct dirent *entry;
	uint64_t freed = 0;

	while (dir && (entry = readdir(dir))) {
		const char *found = entry->d_name;

		freed += is_images ? clean_one(dirfd(dir), found, refs)
		                   : clean_part_of_refs(dirfd(dir), found);
	}
	return freed;
}

static int drop_gone(const struct store *store, json_t *refs, struct resoluto_err *err)
{
	const char *key;
	size_t before = json_object_size(refs);
	json_t *ref;
	void *next;

	json_object_foreach_safe(refs, next, key, ref)
	{
		if (source_is_gone(key))
			(void) json_object_del(refs, key);
	}
	return json_object_size(refs) < before ? store_refs_save(store->dir, refs, err) : 0;
}

static uint64_t clean_images(int images, const json_t *refs)
{
	return clean_dir(images, ".", refs, true) + clean_dir(images, "..", NULL, false);
}

int64_t store_prune(const struct store *store, struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *refs = NULL;
	CLEANUP(fd_close) int images = store_open_images(store, err);
	CLEANUP(fd_close) int lock = images < 0 ? -1 : store_lock(store, images, err);
	int r;

	if (images < 0 || lock < 0)
		return images < 0 ? images : lock;
	r = store_refs_load(store->dir, &refs, err);
	if (r == 0)
		r = drop_gone(store, refs, err);
	return r < 0 ? r : (int64_t) clean_images(images, refs);
}

void store_sweep(const struct store *store)
{
	CLEANUP(fd_close) int images = store_open_images(store, NULL);
	CLEANUP(fd_close) int lock = images < 0 ? -1 : store_lock(store, images, NULL);

	if (lock >= 0)
		(void) clean_images(images, NULL);
}
