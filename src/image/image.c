/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - from a reference to a squashfs in the cache: what include/resoluto/image.h promises.
 *
 *	parse -> look into the cache -> (fetch -> flatten -> squashfs -> publish) -> describe
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/io.h"
#include "base/options_copy.h"
#include "base/path.h"
#include "image/flatten.h"
#include "image/bounds.h"
#include "image/oci.h"
#include "image/platform.h"
#include "image/reference.h"
#include "image/rootdir.h"
#include "image/skopeo.h"
#include "image/squashfs.h"
#include "image/store.h"
#include "image/text.h"
#include "resoluto/image.h"

#define DEFAULT_REGISTRY "localhost:5000"
#define BASE_IMAGE "resoluto-sandbox-base:"
#define PROVISION "bash scripts/local-backend-up.sh"

#define WRITTEN_OUT "another registry's image is written out, like docker.io/library/"

enum {
	SOURCE_MAX = PATH_MAX + 640, /* bytes of what skopeo calls a source */
	CAUSE_MAX = 180,             /* bytes of a registry's words within others */
};

struct job {
	struct resoluto_image_options options;
	struct caller caller;  /* of the options */
	struct config *config; /* owned */
	struct store store;
	struct reference reference;
	struct platform platform;
	char key[STORE_KEY_MAX];     /* of the cache */
	char stamp[STORE_STAMP_MAX]; /* state of a local file; "" for registries */
	char suffix[64];             /* of keys: "", or " linux/arm64" */
};

static void job_done(struct job *job)
{
	config_free(&job->config);
}

static int set_platform(struct job *job, struct resoluto_err *err)
{
	struct platform ours;
	struct utsname machine;
	int r;

	if (uname(&machine) < 0)
		return resoluto_fail(err, -errno, "ask for this machine's name");
	r = platform_parse(job->options.platform, machine.machine, &job->platform, err);
	if (r < 0)
		return r;
	if (job->options.platform &&
	    (platform_parse(NULL, machine.machine, &ours, NULL) < 0 ||
	     strcmp(ours.arch, job->platform.arch) != 0 || job->platform.variant[0]))
		snprintf(job->suffix, sizeof(job->suffix), " linux/%s%s%s", job->platform.arch,
		         job->platform.variant[0] ? "/" : "", job->platform.variant);
	return 0;
}

static int copy_options(struct job *job, const struct resoluto_image_options *options,
                        struct resoluto_err *err)
{
	int r;

	if (!options)
		return 0;
	r = options_copy(&job->options, sizeof(job->options), options, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "image options");
	job->caller = (struct caller){ .progress = job->options.progress,
		                       .is_stopped = job->options.is_stopped,
		                       .ctx = job->options.ctx };
	return 0;
}

/* Everything but the reference. */
static int job_init(struct job *job, const struct resoluto_image_options *options,
                    struct resoluto_err *err)
{
	const char *given, *system;
	int r;

	r = copy_options(job, options, err);
	if (r == 0)
		r = config_load(&job->config, err);
	if (r < 0)
		return r;
	/* skopeo reads the variable itself, but not our configuration file. */
	given = config_get(job->config, "REGISTRY_AUTH_FILE");
	if (!job->options.authfile && given && given[0])
		job->options.authfile = given;
	/* A cache that the caller names stands alone. */
	given = job->options.cache_dir;
	system = given ? NULL : config_system_cache_dir(job->config);
	r = store_init(&job->store, given ? given : config_cache_dir(job->config), system, err);
	job->store.caller = &job->caller;
	return r < 0 ? r : set_platform(job, err);
}

static void set_key(struct job *job, const char *before, const char *name)
{
	snprintf(job->key, sizeof(job->key), "%s%s%s", before, name, job->suffix);
}

/* -- files and directories as sources -- */

/* Which state of the file this is. */
static int stamp_file(struct job *job, const char *path, struct resoluto_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return resoluto_fail(err, -errno, "%s", path);
	snprintf(job->stamp, sizeof(job->stamp), "file %llu:%llu %lld %lld.%09ld %lld.%09ld",
	         (unsigned long long) st.st_dev, (unsigned long long) st.st_ino,
	         (long long) st.st_size, (long long) st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
	         (long long) st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return 0;
}

static int stamp_directory(struct job *job, struct resoluto_err *err)
{
	char digest[DIGEST_SIZE];
	int r = rootdir_fingerprint(job->reference.path, &job->caller, digest, err);

	if (r == 0)
		snprintf(job->stamp, sizeof(job->stamp), "tree%s %s",
		         geteuid() == 0 ? "" : " as root", digest);
	return r;
}

static int stamp_layout(struct job *job, const char *index, const char *what,
                        struct resoluto_err *err)
{
	char path[PATH_MAX + 16];
	int r;

	snprintf(path, sizeof(path), "%s/%s", job->reference.path, index);
	r = stamp_file(job, path, err);
	if (r != -ENOENT)
		return r;
	return resoluto_fail(
		err, -EINVAL,
		"%.300s is no %s: it has no %s; write rootfs:DIR for a plain root directory",
		job->reference.path, what, index);
}

static int stamp_source(struct job *job, struct resoluto_err *err)
{
	const char *path = job->reference.path;

	switch (job->reference.kind) {
	case REFERENCE_ROOTFS:
		return stamp_directory(job, err);
	case REFERENCE_OCI:
		return stamp_layout(job, "index.json", "OCI layout", err);
	case REFERENCE_DIR:
		return stamp_layout(job, "manifest.json", "directory of skopeo's", err);
	case REFERENCE_NAME:
	case REFERENCE_REGISTRY:
	case REFERENCE_DIGEST:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_TAR:
	case REFERENCE_PATH:
		break;
	}
	return stamp_file(job, path, err);
}

/* Make the path absolute, tell a bare path's kind, and name it in the cache's terms. */
static int locate(struct job *job, struct resoluto_err *err)
{
	struct reference *reference = &job->reference;
	CLEANUP(mem_free) char *real = realpath(reference->path, NULL);
	struct stat st;
	char before[32];

	if (!real)
		return resoluto_fail(err, -errno, "%s", reference->path);
	if (stat(real, &st) < 0)
		return resoluto_fail(err, -errno, "%s", real);
	if (reference->kind == REFERENCE_PATH)
		reference->kind = S_ISDIR(st.st_mode) ? REFERENCE_ROOTFS : REFERENCE_TAR;
	if (reference->kind == REFERENCE_TAR && !S_ISREG(st.st_mode))
		return resoluto_fail(err, -EINVAL, "%s is no regular file", real);
	snprintf(reference->path, sizeof(reference->path), "%s", real);
	/* A plain root file system has no platform of its own. */
	if (reference->kind == REFERENCE_ROOTFS || reference->kind == REFERENCE_TAR)
		job->suffix[0] = '\0';
	snprintf(before, sizeof(before), "%s:", reference_prefix(reference->kind));
	snprintf(job->key, sizeof(job->key), "%s%s%s%s%s", before, reference->path,
	         reference->name[0] ? ":" : "", reference->name, job->suffix);
	return 0;
}

/* -- the cache -- */

static bool is_base(const struct job *job)
{
	return strncmp(job->reference.name, BASE_IMAGE, strlen(BASE_IMAGE)) == 0;
}

/* What it was made from, the cache knows of no name; a registry's is fetched again by itself. */
static int explain_damage(const struct job *job, struct resoluto_err *err)
{
	const struct resoluto_err why = err ? *err : (struct resoluto_err){ 0 };
	const char *name = job->reference.name;

	if (job->reference.kind == REFERENCE_REGISTRY)
		return resoluto_fail(err, -EBADMSG, "%.300s; image pull %.200s makes it again",
		                     why.text, name);
	if (is_base(job))
		return resoluto_fail(err, -EBADMSG, "%.300s; " PROVISION " makes it again",
		                     why.text);
	return resoluto_fail(
		err, -EBADMSG,
		"%.300s; make it again: image import REF %.100s with what it was made from",
		why.text, job->reference.kind == REFERENCE_NAME ? name : "NAME");
}

static int find_whole(struct job *job, const char *digest, struct resoluto_image *ret_image,
                      struct resoluto_err *err)
{
	int r = store_find_image(&job->store, digest, ret_image, err);

	return r == -EBADMSG ? explain_damage(job, err) : r;
}

static int find_cached(struct job *job, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	char digest[DIGEST_SIZE];
	int r = store_find_ref(&job->store, job->key, job->stamp[0] ? job->stamp : NULL, digest,
	                       err);

	return r < 0 ? r : find_whole(job, digest, ret_image, err);
}

/* Name what is in the cache under digest, and hand it out. */
static int finish(struct job *job, const char *digest, struct resoluto_image *ret_image,
                  struct resoluto_err *err)
{
	int r = store_set_ref(&job->store, job->key, digest, job->stamp[0] ? job->stamp : NULL,
	                      err);

	return r < 0 ? r : store_find_image(&job->store, digest, ret_image, err);
}

static int publish(struct job *job, const char *file, const char *digest,
                   const struct oci_config *config, struct resoluto_err *err)
{
	const struct store_entry entry = { .digest = digest,
		                           .config = config,
		                           .created = clock_wall() };

	return store_publish(&job->store, file, &entry, err);
}

/* -- plain root file systems -- */

/* The squashfs and the digest of what goes into it. */
struct hashing_sink {
	struct squashfs_writer writer;
	struct digest_state digest;
};

static int hash_and_write(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	struct hashing_sink *sink = ctx;

	digest_add(&sink->digest, bytes, len);
	return squashfs_write(&sink->writer, bytes, len, err);
}

static void hashing_sink_done(struct hashing_sink *sink)
{
	squashfs_writer_done(&sink->writer);
}

static int flatten_tar(struct job *job, const struct flatten_sink *sink, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(job->reference.path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct flatten_layer layer = { .fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "open %s", job->reference.path);
	layer.packed_size = (uint64_t) st.st_size;
	snprintf(layer.name, sizeof(layer.name), "the tar");
	return flatten(&(struct flatten_options){ .layers = &layer,
	                                          .layer_count = 1,
	                                          .any_filter = true,
	                                          .may_change = true,
	                                          .caller = &job->caller },
	               sink, NULL, err);
}

static int flatten_directory(struct job *job, const struct flatten_sink *sink,
                             struct resoluto_err *err)
{
	char before[STORE_STAMP_MAX];
	int r;

	r = rootdir_flatten(job->reference.path, sink, &job->caller, err);
	if (r < 0)
		return r;
	memcpy(before, job->stamp, sizeof(before));
	r = stamp_directory(job, err);
	if (r == 0 && strcmp(before, job->stamp) != 0)
		return resoluto_fail(err, -EBADMSG, "%s changed while it was read",
		                     job->reference.path);
	return r;
}

static int make_plain(struct job *job, char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	CLEANUP(store_part_done) struct store_part part = STORE_PART_NONE;
	CLEANUP(hashing_sink_done) struct hashing_sink hashing = { .writer = SQUASHFS_WRITER_NONE };
	const struct flatten_sink sink = { hash_and_write, &hashing };
	struct resoluto_image known = { 0 };
	char file[PATH_MAX + 32];
	int r;

	digest_begin(&hashing.digest);
	store_sweep(&job->store);
	r = store_part_new(&job->store, &part, err);
	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "%s/rootfs.squashfs", part.path);
	r = squashfs_begin(file, &job->caller, &hashing.writer, err);
	if (r == 0)
		r = job->reference.kind == REFERENCE_TAR ? flatten_tar(job, &sink, err)
		                                         : flatten_directory(job, &sink, err);
	if (r == 0)
		r = squashfs_end(&hashing.writer, err);
	if (r < 0)
		return r;
	digest_end(&hashing.digest, ret_digest);
	if (store_find_image(&job->store, ret_digest, &known, NULL) == 0) {
		resoluto_image_done(&known);
		return 0;
	}
	return publish(job, file, ret_digest, NULL, err);
}

static int get_plain(struct job *job, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	CLEANUP(fd_close) int slot = -1;
	bool again = job->options.pull == RESOLUTO_PULL_ALWAYS;
	char digest[DIGEST_SIZE];
	int r;

	if (!again && find_cached(job, ret_image, NULL) == 0)
		return 0;
	r = store_lock_slot(&job->store, job->key, &slot, err);
	if (r < 0)
		return r;
	if (!again && find_cached(job, ret_image, NULL) == 0)
		return 0; /* somebody else made it meanwhile */
	r = make_plain(job, digest, err);
	return r < 0 ? r : finish(job, digest, ret_image, err);
}

/* -- images -- */

static int check_platform(const struct job *job, const struct oci_config *config,
                          struct resoluto_err *err)
{
	if ((!config->os[0] || strcmp(config->os, "linux") == 0) &&
	    (!config->arch[0] || strcmp(config->arch, job->platform.arch) == 0))
		return 0;
	return resoluto_fail(
		err, -ENOENT, "it is for %s/%s, and linux/%s is wanted; --platform names another",
		text_clean(config->os).text, text_clean(config->arch).text, job->platform.arch);
}

static int read_config_blob(int dirfd, const struct oci_descriptor *blob,
                            struct oci_config *ret_config, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(0);
	char digest[DIGEST_SIZE];
	int r;

	r = read_file_at(dirfd, digest_hex(blob->digest), IMAGE_CONFIG_MAX, &bytes, err);
	if (r < 0)
		return r == -E2BIG ? -EBADMSG : r;
	digest_of(bytes.data ? bytes.data : "", bytes.len, digest);
	if (strcmp(digest, blob->digest) != 0)
		return resoluto_fail(err, -EBADMSG,
		                     "the image's configuration does not have the digest %.19s...",
		                     blob->digest);
	return oci_config_parse(bytes.data ? bytes.data : "", bytes.len, ret_config, err);
}

/* The opened blobs of an image, lowest first. */
struct layers {
	struct flatten_layer *items; /* owned, with the descriptors in it */
	size_t count;
};

static void layers_close(struct layers *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		fd_close(&layers->items[i].fd);
	free(layers->items);
}

static int open_layers(int dirfd, const struct oci_manifest *manifest,
                       const struct oci_config *config, struct layers *layers,
                       struct resoluto_err *err)
{
	if (manifest->layer_count != config->diff_id_count)
		return resoluto_fail(err, -EBADMSG,
		                     "the manifest has %zu layers, the configuration %zu",
		                     manifest->layer_count, config->diff_id_count);
	layers->items = calloc(manifest->layer_count + 1, sizeof(*layers->items));
	if (!layers->items)
		return resoluto_fail(err, -ENOMEM, "open the layers");
	for (size_t i = 0; i < manifest->layer_count; i++) {
		struct flatten_layer *layer = &layers->items[i];
		const char *hex = digest_hex(manifest->layers[i].digest);
		struct stat st;

		snprintf(layer->name, sizeof(layer->name), "layer %zu of %zu (sha256:%.12s...)",
		         i + 1, manifest->layer_count, hex);
		layer->diff_id = config->diff_ids[i];
		layer->fd = open_beneath(dirfd, hex, O_RDONLY | O_NOCTTY, 0);
		layers->count++;
		if (layer->fd < 0)
			return resoluto_fail(err, -EBADMSG, "%s is missing", layer->name);
		if (fstat(layer->fd, &st) < 0 || !S_ISREG(st.st_mode))
			return resoluto_fail(err, -EBADMSG, "%s is no file", layer->name);
		layer->packed_size = (uint64_t) st.st_size;
	}
	return 0;
}

static int write_squashfs(struct job *job, const struct layers *layers, const char *workdir,
                          const char *file, struct resoluto_err *err)
{
	CLEANUP(squashfs_writer_done) struct squashfs_writer writer = SQUASHFS_WRITER_NONE;
	const struct flatten_options options = { .layers = layers->items,
		                                 .layer_count = layers->count,
		                                 .workdir = workdir,
		                                 .whiteouts = true,
		                                 .caller = &job->caller };
	int r;

	r = squashfs_begin(file, &job->caller, &writer, err);
	if (r == 0)
		r = flatten(&options, &(struct flatten_sink){ squashfs_write, &writer }, NULL, err);
	return r < 0 ? r : squashfs_end(&writer, err);
}

/* From what skopeo put into dir to an image in the cache. */
static int make_from_dir(struct job *job, const struct store_part *part, const char *dir,
                         char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	CLEANUP(fd_close) int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(0);
	CLEANUP(oci_manifest_done) struct oci_manifest manifest = { 0 };
	CLEANUP(oci_config_done) struct oci_config config = { 0 };
	CLEANUP(layers_close) struct layers layers = { 0 };
	char file[PATH_MAX + 32];
	int r;

	if (dirfd < 0)
		return resoluto_fail(err, -errno, "open what skopeo fetched");
	r = read_file_at(dirfd, "manifest.json", IMAGE_MANIFEST_MAX, &bytes, err);
	if (r == 0)
		r = oci_manifest_parse(bytes.data ? bytes.data : "", bytes.len, &manifest, err);
	if (r == 0)
		r = read_config_blob(dirfd, &manifest.config, &config, err);
	if (r == 0)
		r = check_platform(job, &config, err);
	if (r == 0)
		r = open_layers(dirfd, &manifest, &config, &layers, err);
	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "%s/rootfs.squashfs", part->path);
	r = write_squashfs(job, &layers, config.workdir, file, err);
	if (r < 0)
		return r;
	memcpy(ret_digest, manifest.config.digest, DIGEST_SIZE);
	return publish(job, file, ret_digest, &config, err);
}

static int fetch_and_make(struct job *job, const struct skopeo *skopeo,
                          const struct store_part *part, char ret_digest[DIGEST_SIZE],
                          struct resoluto_err *err)
{
	char dir[PATH_MAX + 16];
	int r;

	snprintf(dir, sizeof(dir), "%s/image", part->path);
	r = skopeo_copy(skopeo, dir, err);
	return r < 0 ? r : make_from_dir(job, part, dir, ret_digest, err);
}

/* The digest of the image's configuration, which names the image, before any layer is fetched. */
static int ask_for_digest(struct job *job, const struct skopeo *skopeo,
                          char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(0);
	CLEANUP(oci_config_done) struct oci_config config = { 0 };
	int r;

	r = skopeo_config(skopeo, &bytes, err);
	if (r == 0)
		r = oci_config_parse(bytes.data ? bytes.data : "", bytes.len, &config, err);
	if (r == 0)
		r = check_platform(job, &config, err);
	if (r == 0)
		digest_of(bytes.data, bytes.len, ret_digest);
	return r;
}

/* Fetch what skopeo calls source, unless the cache has it under another name. */
static int fetch(struct job *job, const char *source, bool is_loopback,
                 struct resoluto_image *ret_image, struct resoluto_err *err)
{
	CLEANUP(fd_close) int slot = -1;
	CLEANUP(store_part_done) struct store_part part = STORE_PART_NONE;
	struct skopeo skopeo = { .source = source,
		                 .is_loopback = is_loopback,
		                 .has_policy = skopeo_policy_exists(),
		                 .platform = &job->platform,
		                 .authfile = job->options.authfile,
		                 .caller = &job->caller };
	struct resoluto_image known = { 0 };
	char digest[DIGEST_SIZE];
	int r;

	store_sweep(&job->store);
	r = store_part_new(&job->store, &part, err);
	if (r < 0)
		return r;
	skopeo.scratch = part.path;
	r = ask_for_digest(job, &skopeo, digest, err);
	if (r == 0)
		r = store_lock_slot(&job->store, digest, &slot, err);
	if (r < 0)
		return r;
	if (store_find_image(&job->store, digest, &known, NULL) == 0)
		resoluto_image_done(&known);
	else
		r = fetch_and_make(job, &skopeo, &part, digest, err);
	return r < 0 ? r : finish(job, digest, ret_image, err);
}

static int get_local_image(struct job *job, struct resoluto_image *ret_image,
                           struct resoluto_err *err)
{
	const struct reference *reference = &job->reference;
	char source[SOURCE_MAX];

	if (job->options.pull != RESOLUTO_PULL_ALWAYS && find_cached(job, ret_image, NULL) == 0)
		return 0;
	if (strchr(reference->path, ':') && reference->kind != REFERENCE_DIR)
		return resoluto_fail(err, -EINVAL, "skopeo takes no ':' in a path: %s",
		                     reference->path);
	snprintf(source, sizeof(source), "%s:%s%s%s", reference_prefix(reference->kind),
	         reference->path, reference->name[0] ? ":" : "", reference->name);
	return fetch(job, source, false, ret_image, err);
}

/* A fully qualified name; job->key is set. */
static int get_from_registry(struct job *job, const char *name, struct resoluto_image *ret_image,
                             struct resoluto_err *err)
{
	char source[SOURCE_MAX];
	struct resoluto_err why = { 0 };
	int r = -ENOENT;

	if (job->options.pull != RESOLUTO_PULL_ALWAYS)
		r = find_cached(job, ret_image, &why);
	if (r == 0)
		return 0;
	if (r == -EBADMSG && job->options.pull == RESOLUTO_PULL_NEVER)
		return resoluto_fail(err, r, "%s", why.text);
	if (job->options.pull == RESOLUTO_PULL_NEVER)
		return resoluto_fail(
			err, -ENOENT,
			"it is not in the cache, and --pull never forbids to fetch it");
	snprintf(source, sizeof(source), "docker://%s", name);
	return fetch(job, source, reference_is_loopback(name), ret_image, err);
}

/* "" when names without a registry stay in the cache. */
static const char *default_registry(const struct job *job)
{
	const char *registry = config_get(job->config, "RESOLUTO_SANDBOX_REGISTRY");

	return registry ? registry : DEFAULT_REGISTRY;
}

static int in_registry(const struct job *job, const char *registry, struct reference *ret_reference,
                       struct resoluto_err *err)
{
	char text[SOURCE_MAX];
	int r;

	snprintf(text, sizeof(text), "%.500s/%s", registry, job->reference.name);
	r = reference_parse(text, ret_reference, NULL);
	if (r < 0 || ret_reference->kind != REFERENCE_REGISTRY)
		return resoluto_fail(
			err, -EINVAL,
			"RESOLUTO_SANDBOX_REGISTRY is '%.200s', not host[:port][/path]", registry);
	return 0;
}

/* Nobody asked the registry. */
static int explain_not_cached(const struct job *job, int code, const struct resoluto_err *why,
                              struct resoluto_err *err)
{
	return resoluto_fail(err, code, "%s%s", why->text,
	                     code == -ENOENT && is_base(job) ? "; " PROVISION " makes it" : "");
}

static int explain_missing(const struct job *job, const char *registry, int code,
                           struct resoluto_err *err)
{
	struct resoluto_err why = err ? *err : (struct resoluto_err){ 0 };
	bool is_chosen = strcmp(config_origin(job->config, "RESOLUTO_SANDBOX_REGISTRY"),
	                        "default") != 0;
	size_t len = strlen(why.text);
	/* Its end tells most. */
	const char *cause = why.text + (len > CAUSE_MAX ? len - CAUSE_MAX : 0);

	/* Nobody asked for the default registry: that it does not run means that there is no such image. */
	if (code == -EHOSTUNREACH && !is_chosen)
		code = -ENOENT;
	if (code != -ENOENT)
		return code;
	return resoluto_fail(err, code, "it is not in the cache, nor in %.100s (%s%s); %s%.80s",
	                     registry, cause > why.text ? "..." : "", cause,
	                     is_base(job) ? PROVISION " makes it" : WRITTEN_OUT,
	                     is_base(job) ? "" : job->reference.name);
}

static int get_by_name(struct job *job, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	const char *registry = default_registry(job);
	struct reference full;
	struct resoluto_err why = { 0 };
	int r = -ENOENT;

	set_key(job, "", job->reference.name);
	if (job->options.pull != RESOLUTO_PULL_ALWAYS)
		r = find_cached(job, ret_image, &why);
	if (r == 0)
		return 0;
	if (r != -ENOENT)
		return resoluto_fail(err, r, "%s", why.text);
	if (!registry[0])
		return resoluto_fail(err, -ENOENT,
		                     "it is not in the cache, and RESOLUTO_SANDBOX_REGISTRY is "
		                     "empty; a registry's image is "
		                     "written out, like docker.io/library/%.80s",
		                     job->reference.name);
	r = in_registry(job, registry, &full, err);
	if (r < 0)
		return r;
	set_key(job, "", full.name);
	r = get_from_registry(job, full.name, ret_image, &why);
	if (r < 0 && job->options.pull == RESOLUTO_PULL_NEVER)
		return explain_not_cached(job, r, &why, err);
	if (r < 0 && err)
		*err = why;
	return r < 0 ? explain_missing(job, registry, r, err) : 0;
}

static int get_local(struct job *job, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	int r = locate(job, err);

	if (r == 0)
		r = stamp_source(job, err);
	if (r < 0)
		return r;
	if (job->reference.kind == REFERENCE_ROOTFS || job->reference.kind == REFERENCE_TAR)
		return get_plain(job, ret_image, err);
	return get_local_image(job, ret_image, err);
}

static int get_by_digest(struct job *job, struct resoluto_image *ret_image,
                         struct resoluto_err *err)
{
	int r = find_whole(job, job->reference.name, ret_image, err);

	if (r != -ENOENT)
		return r;
	return resoluto_fail(err, r, "there is no such image in the cache; image ls lists them");
}

static int get(struct job *job, struct resoluto_image *ret_image, struct resoluto_err *err)
{
	switch (job->reference.kind) {
	case REFERENCE_NAME:
		return get_by_name(job, ret_image, err);
	case REFERENCE_REGISTRY:
		set_key(job, "", job->reference.name);
		return get_from_registry(job, job->reference.name, ret_image, err);
	case REFERENCE_DIGEST:
		return get_by_digest(job, ret_image, err);
	case REFERENCE_OCI:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_DIR:
	case REFERENCE_ROOTFS:
	case REFERENCE_TAR:
	case REFERENCE_PATH:
		break;
	}
	return get_local(job, ret_image, err);
}

/* -- what image.h has -- */

static int explain_full(const struct job *job, int code, struct resoluto_err *err)
{
	const struct resoluto_err why = err ? *err : (struct resoluto_err){ 0 };

	if (code != -ENOSPC && code != -EDQUOT)
		return code;
	return resoluto_fail(
		err, code,
		"%.200s; free space in %.200s, or set RESOLUTO_CACHE_DIR to a place that has some",
		why.text, job->store.dir);
}

static int is_null(struct resoluto_err *err)
{
	return resoluto_fail(err, -EINVAL, "image: an argument is NULL");
}

static int get_named(struct job *job, const char *ref, const struct resoluto_image_options *options,
                     struct resoluto_image *ret_image, struct resoluto_err *err)
{
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	int r;

	r = job_init(job, options, err);
	if (r == 0)
		r = reference_parse(ref, &job->reference, err);
	if (r < 0)
		return r;
	r = get(job, &image, err);
	if (r < 0)
		return resoluto_fail_in(err, explain_full(job, r, err), "image %.200s", ref);
	image.ref = strdup(ref);
	if (!image.ref)
		return resoluto_fail(err, -ENOMEM, "image %.200s", ref);
	*ret_image = image;
	image = (struct resoluto_image){ 0 };
	return 0;
}

int resoluto_image_get(const char *ref, const struct resoluto_image_options *options,
                       struct resoluto_image *ret_image, struct resoluto_err *err)
{
	CLEANUP(job_done) struct job job = { 0 };

	if (!ref || !ret_image)
		return is_null(err);
	return get_named(&job, ref, options, ret_image, err);
}

void resoluto_image_done(struct resoluto_image *image)
{
	if (!image)
		return;
	free(image->ref);
	free(image->digest);
	free(image->path);
	for (char **env = image->env; env && *env; env++)
		free(*env);
	free(image->env);
	free(image->workdir);
	free(image->user);
	free(image->version_label);
	*image = (struct resoluto_image){ 0 };
}

int resoluto_image_list(const struct resoluto_image_options *options,
                        int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                        struct resoluto_err *err)
{
	CLEANUP(job_done) struct job job = { 0 };
	int r;

	if (!each)
		return is_null(err);
	r = job_init(&job, options, err);
	return r < 0 ? r : store_list(&job.store, each, ctx, err);
}

int resoluto_image_tag(const char *ref, const char *name,
                       const struct resoluto_image_options *options, struct resoluto_err *err)
{
	CLEANUP(job_done) struct job job = { 0 };
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	struct reference to;
	int r;

	if (!ref || !name)
		return is_null(err);
	r = reference_parse(name, &to, err);
	if (r < 0)
		return r;
	if ((to.kind != REFERENCE_NAME && to.kind != REFERENCE_REGISTRY) || strchr(to.name, '@'))
		return resoluto_fail(err, -EINVAL,
		                     "'%.200s' cannot be a name in the cache: write name:tag",
		                     name);
	r = get_named(&job, ref, options, &image, err);
	if (r < 0)
		return r;
	set_key(&job, "", to.name);
	return store_set_ref(&job.store, job.key, image.digest, NULL, err);
}

static int remove_local(struct job *job, struct resoluto_err *err)
{
	struct reference *reference = &job->reference;
	static const enum reference_kind either[] = { REFERENCE_ROOTFS, REFERENCE_TAR };
	struct resoluto_err why = { 0 };
	int r = -ENOENT;

	if (locate(job, NULL) == 0)
		return store_remove_ref(&job->store, job->key, err);
	/* The file is gone, its image need not be. */
	for (size_t i = 0; r == -ENOENT && i < 2; i++) {
		bool bare = reference->kind == REFERENCE_PATH;

		snprintf(job->key, sizeof(job->key), "%s:%s%s%s%s",
		         reference_prefix(bare ? either[i] : reference->kind), reference->path,
		         reference->name[0] ? ":" : "", reference->name, bare ? "" : job->suffix);
		r = store_remove_ref(&job->store, job->key, &why);
		if (!bare)
			break;
	}
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 0;
}

static int remove_name(struct job *job, struct resoluto_err *err)
{
	const char *registry = default_registry(job);
	struct resoluto_err why = { 0 };
	struct reference full;
	int r;

	set_key(job, "", job->reference.name);
	r = store_remove_ref(&job->store, job->key, &why);
	if (r == -ENOENT && job->reference.kind == REFERENCE_NAME && registry[0] &&
	    in_registry(job, registry, &full, NULL) == 0) {
		set_key(job, "", full.name);
		if (store_remove_ref(&job->store, job->key, NULL) == 0)
			return 0;
	}
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 0;
}

int resoluto_image_remove(const char *ref, const struct resoluto_image_options *options,
                          struct resoluto_err *err)
{
	CLEANUP(job_done) struct job job = { 0 };
	int r;

	if (!ref)
		return is_null(err);
	r = job_init(&job, options, err);
	if (r == 0)
		r = reference_parse(ref, &job.reference, err);
	if (r < 0)
		return r;
	if (job.reference.kind == REFERENCE_DIGEST)
		return store_remove_digest(&job.store, job.reference.name, err);
	return reference_is_local(job.reference.kind) ? remove_local(&job, err)
	                                              : remove_name(&job, err);
}

int64_t resoluto_image_prune(const struct resoluto_image_options *options, struct resoluto_err *err)
{
	CLEANUP(job_done) struct job job = { 0 };
	int r = job_init(&job, options, err);

	return r < 0 ? r : store_prune(&job.store, err);
}
