/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/random.h"
#include "image/squashfs.h"
#include "image/store_internal.h"

enum {
	REFS_MAX = 16 * 1024 * 1024,        /* bytes of refs.json */
	DESCRIPTION_MAX = 16 * 1024 * 1024, /* bytes of an image's description */
	SCHEMA = 1,
	SLOTS = 64, /* lock files that makers share by hash */
};

int store_init(struct store *store, const char *dir, const char *system_dir,
               struct resoluto_err *err)
{
	int n = snprintf(store->dir, sizeof(store->dir), "%s", dir);
	int m = snprintf(store->system_dir, sizeof(store->system_dir), "%s",
	                 system_dir ? system_dir : "");

	store->caller = NULL;
	if (n <= 0 || n >= STORE_DIR_MAX || m >= STORE_DIR_MAX)
		return resoluto_fail(err, -ENAMETOOLONG,
		                     "the cache directory's path is empty or too long");
	return 0;
}

/* -- refs.json -- */

static int load_schema_1(const char *path, size_t max, json_t **ret_json, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	CLEANUP(store_json_release) json_t *json = NULL;
	json_int_t schema;
	int r;

	r = read_file_at(AT_FDCWD, path, max, &text, err);
	if (r < 0)
		return r;
	json = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(json))
		return resoluto_fail(err, -EBADMSG, "%s is damaged: remove it", path);
	schema = json_integer_value(json_object_get(json, "schema"));
	if (schema != SCHEMA)
		return resoluto_fail(
			err, -EBADMSG,
			"%s has schema %lld, and this version reads schema 1: update, or remove it",
			path, (long long) schema);
	*ret_json = mem_take(&json);
	return 0;
}

int store_refs_load(const char *cache_dir, json_t **ret_refs, struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *json = NULL;
	struct resoluto_err why = { 0 };
	char path[PATH_MAX];
	json_t *refs;
	int r;

	snprintf(path, sizeof(path), "%s/refs.json", cache_dir);
	r = load_schema_1(path, REFS_MAX, &json, &why);
	if (r == -ENOENT) {
		*ret_refs = json_object();
		return *ret_refs ? 0 : resoluto_fail(err, -ENOMEM, "read %s", path);
	}
	if (r < 0)
		return resoluto_fail(err, r, "%s", why.text);
	refs = json_object_get(json, "refs");
	if (!json_is_object(refs))
		return resoluto_fail(err, -EBADMSG, "%s is damaged: remove it", path);
	*ret_refs = json_incref(refs);
	return 0;
}

static int save_at(int dirfd, const char *name, json_t *json, struct resoluto_err *err)
{
	CLEANUP(mem_free)
	char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);

	if (!text)
		return resoluto_fail(err, -ENOMEM, "write %s", name);
	return replace_file_at(dirfd, name, text, strlen(text), 0644, err);
}

int store_refs_save(const char *cache_dir, json_t *refs, struct resoluto_err *err)
{
	CLEANUP(store_json_release)
	json_t *json = json_pack("{s:i, s:O}", "schema", SCHEMA, "refs", refs);
	CLEANUP(fd_close) int dir = open(cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return resoluto_fail(err, -errno, "open %s", cache_dir);
	if (!json)
		return resoluto_fail(err, -ENOMEM, "write refs.json");
	return save_at(dir, "refs.json", json, err);
}

const char *store_ref_digest(const json_t *ref)
{
	const char *digest = json_string_value(json_object_get(ref, "digest"));

	return digest && digest_is_valid(digest) ? digest : "";
}

bool store_refs_have(const json_t *refs, const char *digest)
{
	const char *key;
	json_t *ref;

	json_object_foreach((json_t *) refs, key, ref)
	{
		if (strcmp(store_ref_digest(ref), digest) == 0)
			return true;
	}
	return false;
}

static int find_ref_in(const char *cache_dir, const char *key, const char *stamp,
                       char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *refs = NULL;
	const char *found;
	const json_t *ref;
	int r;

	r = store_refs_load(cache_dir, &refs, err);
	if (r < 0)
		return r;
	ref = json_object_get(refs, key);
	found = json_string_value(json_object_get(ref, "stamp"));
	if (!store_ref_digest(ref)[0] || (stamp && (!found || strcmp(found, stamp) != 0)))
		return resoluto_fail(err, -ENOENT, "the cache has no image '%.200s'", key);
	memcpy(ret_digest, store_ref_digest(ref), DIGEST_SIZE);
	return 0;
}

int store_find_ref(const struct store *store, const char *key, const char *stamp,
                   char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	struct resoluto_err why = { 0 };
	int r = find_ref_in(store->dir, key, stamp, ret_digest, &why);

	if (r == -ENOENT && store->system_dir[0])
		return find_ref_in(store->system_dir, key, stamp, ret_digest, err);
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 0;
}

/* -- images -- */

static int copy_list(const json_t *list, char ***ret_list)
{
	struct strv strv = { 0 };
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (!json_string_value(item))
			continue;
		if (strv_add(&strv, json_string_value(item)) < 0) {
			strv_done(&strv);
			return -ENOMEM;
		}
	}
	*ret_list = strv.items;
	return 0;
}

static int copy_string(const json_t *json, const char *name, char **ret_text)
{
	const char *text = json_string_value(json_object_get(json, name));

	*ret_text = text ? strdup(text) : NULL;
	return text && !*ret_text ? -ENOMEM : 0;
}

static int fill_image(const json_t *json, const char *path, struct resoluto_image *image)
{
	int r = copy_string(json, "digest", &image->digest);

	if (r == 0)
		r = copy_list(json_object_get(json, "env"), &image->env);
	if (r == 0)
		r = copy_string(json, "workdir", &image->workdir);
	if (r == 0)
		r = copy_string(json, "user", &image->user);
	if (r == 0)
		r = copy_string(json, "version_label", &image->version_label);
	image->size_bytes = (uint64_t) json_integer_value(json_object_get(json, "size"));
	image->created = json_number_value(json_object_get(json, "created"));
	image->path = strdup(path);
	return r < 0 || !image->path ? -ENOMEM : 0;
}

static int check_file(const char *path, const json_t *json, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	json_int_t size = json_integer_value(json_object_get(json, "size"));
	struct stat st;
	int r;

	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "stat %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size != size)
		return resoluto_fail(err, -EBADMSG, "%s is truncated: %lld of %lld bytes are there",
		                     path, (long long) st.st_size, (long long) size);
	r = squashfs_check(fd, err);
	return r < 0 ? resoluto_fail_in(err, r, "%s", path) : 0;
}

int store_load_image(const char *cache_dir, const char *digest, struct resoluto_image *ret_image,
                     struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *json = NULL;
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	char path[PATH_MAX];
	const char *named;
	int r;

	snprintf(path, sizeof(path), "%s/images/sha256-%s.json", cache_dir, digest_hex(digest));
	r = load_schema_1(path, DESCRIPTION_MAX, &json, err);
	if (r < 0)
		return r;
	named = json_string_value(json_object_get(json, "digest"));
	if (!named || strcmp(named, digest) != 0)
		return resoluto_fail(err, -EBADMSG, "%s is damaged: it describes another image",
		                     path);
	snprintf(path, sizeof(path), "%s/images/sha256-%s.squashfs", cache_dir, digest_hex(digest));
	r = check_file(path, json, err);
	if (r < 0)
		return r;
	r = fill_image(json, path, &image);
	if (r < 0)
		return resoluto_fail(err, r, "describe the image");
	*ret_image = image;
	image = (struct resoluto_image){ 0 };
	return 0;
}

int store_find_image(const struct store *store, const char *digest,
                     struct resoluto_image *ret_image, struct resoluto_err *err)
{
	struct resoluto_err ours = { 0 };
	int r = store_load_image(store->dir, digest, ret_image, &ours);

	if (r < 0 && store->system_dir[0] &&
	    store_load_image(store->system_dir, digest, ret_image, NULL) == 0)
		return 0;
	return r < 0 ? resoluto_fail(err, r, "%s", ours.text) : 0;
}

/* -- places and locks -- */

/* Ours is world-readable whatever the umask, when we make it: others may be meant to read it. */
static int make_dir(const char *path)
{
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(path, 0755) < 0 ? -errno : 0;
}

int store_open_images(const struct store *store, struct resoluto_err *err)
{
	char path[PATH_MAX], *slash;
	int fd, r;

	snprintf(path, sizeof(path), "%s", store->dir);
	slash = strrchr(path, '/');
	if (slash && slash != path) {
		*slash = '\0';
		(void) mkdirs(path, 0755);
	}
	r = make_dir(store->dir);
	snprintf(path, sizeof(path), "%s/images", store->dir);
	if (r == 0)
		r = make_dir(path);
	if (r < 0)
		return resoluto_fail(
			err, r, "make the cache directory %s; RESOLUTO_CACHE_DIR names another",
			path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? resoluto_fail(err, -errno, "open %s", path) : fd;
}

/* Without an end where nobody can stop it; else a step.  -EWOULDBLOCK: ask again. */
static int wait_for_lock(const struct store *store, int fd, struct resoluto_err *err)
{
	int r = caller_check(store->caller, err);

	if (r < 0)
		return r;
	if (caller_can_stop(store->caller)) {
		(void) poll(NULL, 0, CALLER_STEP_MS);
		return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	}
	return flock(fd, LOCK_EX) < 0 ? -errno : 0;
}

/* step, where there is one, tells people of the wait. */
static int lock_file(const struct store *store, int images, const char *name, const char *step,
                     struct resoluto_err *err)
{
	CLEANUP(fd_close)
	int fd = openat(images, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;

	if (r == -EWOULDBLOCK && step)
		caller_tell(store->caller, step, 0, 0);
	while (r == -EWOULDBLOCK || r == -EINTR)
		r = wait_for_lock(store, fd, err);
	if (r == -ECANCELED)
		return r;
	return r < 0 ? resoluto_fail(err, r, "lock the image cache") : fd_take(&fd);
}

int store_lock(const struct store *store, int images, struct resoluto_err *err)
{
	return lock_file(store, images, ".lock", NULL, err);
}

int store_lock_slot(const struct store *store, const char *what, int *ret_fd,
                    struct resoluto_err *err)
{
	CLEANUP(fd_close) int images = store_open_images(store, err);
	char digest[DIGEST_SIZE], name[32];
	unsigned long slot;
	int fd;

	if (images < 0)
		return images;
	digest_of(what, strlen(what), digest);
	slot = strtoul((char[]){ digest_hex(digest)[0], digest_hex(digest)[1], '\0' }, NULL, 16) %
	       SLOTS;
	snprintf(name, sizeof(name), ".lock-%02lu", slot);
	fd = lock_file(store, images, name, "wait", err);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int store_part_new(const struct store *store, struct store_part *ret_part, struct resoluto_err *err)
{
	CLEANUP(fd_close) int images = store_open_images(store, err);
	CLEANUP(fd_close) int lock = -1;
	CLEANUP(store_part_done) struct store_part part = STORE_PART_NONE;
	CLEANUP(fd_close) int dir = -1;
	char id[RANDOM_ID_SIZE], name[64];
	int r;

	if (images < 0)
		return images;
	r = random_id(id);
	if (r < 0)
		return resoluto_fail(err, r, "get random bytes");
	/* Under the lock, so that nobody sweeps it before its own lock is held. */
	lock = store_lock(store, images, err);
	if (lock < 0)
		return lock;
	snprintf(name, sizeof(name), ".part-%s", id);
	if (mkdirat(images, name, 0700) < 0)
		return resoluto_fail(err, -errno, "make a directory in %s/images", store->dir);
	snprintf(part.path, sizeof(part.path), "%s/images/%s", store->dir, name);
	dir = openat(images, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	part.lock = dir < 0 ? resoluto_fail(err, -errno, "open %s", part.path)
	                    : lock_file(store, dir, "lock", NULL, err);
	if (part.lock < 0) {
		(void) remove_tree_at(images, name);
		return part.lock;
	}
	*ret_part = part;
	part = STORE_PART_NONE;
	return 0;
}

void store_part_done(struct store_part *part)
{
	if (part->lock < 0)
		return;
	(void) remove_tree_at(AT_FDCWD, part->path);
	fd_close(&part->lock);
}

/* -- changes -- */

static json_t *describe(const struct store_entry *entry, uint64_t size)
{
	const struct oci_config *config = entry->config;
	json_t *env = json_array();
	json_t *json = json_pack("{s:i, s:s, s:I, s:f, s:o}", "schema", SCHEMA, "digest",
	                         entry->digest, "size", (json_int_t) size, "created",
	                         entry->created, "env", env);

	if (!json || !config)
		return json;
	for (size_t i = 0; i < config->env.count; i++)
		(void) json_array_append_new(env, json_string(config->env.items[i]));
	if (config->workdir)
		(void) json_object_set_new(json, "workdir", json_string(config->workdir));
	if (config->user)
		(void) json_object_set_new(json, "user", json_string(config->user));
	if (config->version_label)
		(void) json_object_set_new(json, "version_label",
		                           json_string(config->version_label));
	return json;
}

int store_publish(const struct store *store, const char *file, const struct store_entry *entry,
                  struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *json = NULL;
	CLEANUP(fd_close) int images = store_open_images(store, err);
	CLEANUP(fd_close) int lock = -1;
	char name[32 + DIGEST_HEX];
	struct stat st;
	int r;

	if (images < 0)
		return images;
	if (stat(file, &st) < 0)
		return resoluto_fail(err, -errno, "stat the new squashfs");
	json = describe(entry, (uint64_t) st.st_size);
	if (!json)
		return resoluto_fail(err, -ENOMEM, "describe the image");
	lock = store_lock(store, images, err);
	if (lock < 0)
		return lock;
	/* The description goes first and comes last: without it there is no image. */
	snprintf(name, sizeof(name), "sha256-%s.json", digest_hex(entry->digest));
	(void) unlinkat(images, name, 0);
	snprintf(name, sizeof(name), "sha256-%s.squashfs", digest_hex(entry->digest));
	if (renameat(AT_FDCWD, file, images, name) < 0)
		return resoluto_fail(err, -errno, "move the new squashfs into the cache");
	snprintf(name, sizeof(name), "sha256-%s.json", digest_hex(entry->digest));
	r = save_at(images, name, json, err);
	if (r == 0 && fsync(images) < 0)
		r = resoluto_fail(err, -errno, "flush the cache directory");
	return r;
}

int store_set_ref(const struct store *store, const char *key, const char *digest, const char *stamp,
                  struct resoluto_err *err)
{
	CLEANUP(store_json_release) json_t *refs = NULL;
	CLEANUP(fd_close) int images = store_open_images(store, err);
	CLEANUP(fd_close) int lock = -1;
	json_t *ref;
	int r;

	if (images < 0)
		return images;
	lock = store_lock(store, images, err);
	if (lock < 0)
		return lock;
	r = store_refs_load(store->dir, &refs, err);
	if (r < 0)
		return r;
	ref = json_pack("{s:s, s:s*}", "digest", digest, "stamp", stamp);
	if (!ref || json_object_set_new(refs, key, ref) < 0)
		return resoluto_fail(err, -EINVAL, "the name cannot be kept: it is no UTF-8");
	return store_refs_save(store->dir, refs, err);
}
