/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the cache: names, whole images only, locks, and what killed makers left. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "image/squashfs.h"
#include "image/store.h"

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"

struct place {
	char dir[64], cache[80], system[80];
	struct store store, root;
};

static void place_make(struct place *place)
{
	*place = (struct place){ .dir = "/tmp/resoluto-store-XXXXXX" };
	CHECK(mkdtemp(place->dir));
	snprintf(place->cache, sizeof(place->cache), "%s/a/cache", place->dir);
	snprintf(place->system, sizeof(place->system), "%s/system", place->dir);
	CHECK(store_init(&place->store, place->cache, place->system, NULL) == 0);
	CHECK(store_init(&place->root, place->system, NULL, NULL) == 0);
}

static void place_done(struct place *place)
{
	if (place->dir[0])
		(void) remove_tree_at(AT_FDCWD, place->dir);
}

/* What squashfs_check() takes for one. */
static void write_squashfs(const char *path, size_t size)
{
	char *bytes = calloc(1, size);
	uint64_t used = size;
	FILE *file = fopen(path, "w");

	memcpy(bytes, "hsqs", 4);
	bytes[28] = 4;
	memcpy(bytes + 40, &used, sizeof(used));
	CHECK(file && fwrite(bytes, size, 1, file) == 1);
	fclose(file);
	free(bytes);
}

static void publish(const struct store *store, const char *digest, const struct oci_config *config)
{
	CLEANUP(store_part_done) struct store_part part = STORE_PART_NONE;
	char file[PATH_MAX + 16];
	struct resoluto_err err = { 0 };

	CHECK(store_part_new(store, &part, &err) == 0);
	snprintf(file, sizeof(file), "%s/x", part.path);
	write_squashfs(file, 5000);
	if (store_publish(store, file, &(struct store_entry){ digest, config, 1.5 }, &err) < 0)
		printf("# %s\n", err.text);
	CHECK(err.code == 0);
}

static bool has(const struct place *place, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", place->cache, name);
	return access(path, F_OK) == 0;
}

static void gives_back_what_it_was_given(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	struct oci_config config = { .workdir = (char *) "/w", .user = (char *) "u" };
	char digest[DIGEST_SIZE];

	place_make(&place);
	CHECK(strv_add(&config.env, "A=1") == 0);
	CHECK(store_find_ref(&place.store, "x:1", NULL, digest, NULL) == -ENOENT);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == -ENOENT);
	publish(&place.store, D1, &config);
	CHECK(store_set_ref(&place.store, "x:1", D1, "stamp 1", NULL) == 0);
	CHECK(store_find_ref(&place.store, "x:1", NULL, digest, NULL) == 0);
	CHECK_STR(digest, D1);
	CHECK(store_find_ref(&place.store, "x:1", "stamp 1", digest, NULL) == 0);
	CHECK(store_find_ref(&place.store, "x:1", "stamp 2", digest, NULL) == -ENOENT);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == 0);
	CHECK_STR(image.env[0], "A=1");
	CHECK(!image.env[1] && image.size_bytes == 5000 && image.created == 1.5);
	CHECK_STR(image.workdir, "/w");
	CHECK_STR(image.user, "u");
	CHECK_STR(image.digest, D1);
	CHECK(!image.version_label);
	strv_done(&config.env);
}

static void reading_makes_nothing(void)
{
	CLEANUP(place_done) struct place place;
	char digest[DIGEST_SIZE];

	place_make(&place);
	CHECK(store_find_ref(&place.store, "x:1", NULL, digest, NULL) == -ENOENT);
	CHECK(access(place.cache, F_OK) < 0);
}

static void a_truncated_image_is_none(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_image image = { 0 };
	struct resoluto_err err = { 0 };
	char path[300];

	place_make(&place);
	publish(&place.store, D1, NULL);
	snprintf(path, sizeof(path), "%s/images/sha256-%s.squashfs", place.cache, digest_hex(D1));
	CHECK(truncate(path, 4999) == 0);
	CHECK(store_find_image(&place.store, D1, &image, &err) == -EBADMSG);
	CHECK(strstr(err.text, "4999 of 5000"));
	/* Made again, it is whole. */
	publish(&place.store, D1, NULL);
	CHECK(store_find_image(&place.store, D1, &image, &err) == 0);
	resoluto_image_done(&image);
}

static void a_squashfs_is_checked(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(fd_close) int fd = -1;
	struct resoluto_err err = { 0 };
	char path[200];

	place_make(&place);
	snprintf(path, sizeof(path), "%s/s", place.dir);
	write_squashfs(path, 5000);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(squashfs_check(fd, NULL) == 0);
	CHECK(ftruncate(fd, 200) == 0);
	CHECK(squashfs_check(fd, &err) == -EBADMSG && strstr(err.text, "truncated"));
	CHECK(ftruncate(fd, 50) == 0);
	CHECK(squashfs_check(fd, &err) == -EBADMSG && strstr(err.text, "superblock"));
	CHECK(ftruncate(fd, 5000) == 0 && pwrite(fd, "xxxx", 4, 0) == 4);
	CHECK(squashfs_check(fd, &err) == -EBADMSG && strstr(err.text, "no squashfs"));
}

static void write_text(const char *dir, const char *name, const char *text)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(replace_file_at(fd, name, text, strlen(text), 0644, NULL) == 0);
}

static void damaged_names_are_refused(void)
{
	static const char *const rows[] = { "{", "[]", "{\"schema\":1}",
		                            "{\"schema\":1,\"refs\":[]}" };
	CLEANUP(place_done) struct place place;
	struct resoluto_err err = { 0 };
	char digest[DIGEST_SIZE];

	place_make(&place);
	publish(&place.store, D1, NULL);
	for (size_t i = 0; i < 4; i++) {
		write_text(place.cache, "refs.json", rows[i]);
		CHECK(store_find_ref(&place.store, "x:1", NULL, digest, &err) == -EBADMSG);
		CHECK(store_set_ref(&place.store, "x:1", D1, NULL, &err) == -EBADMSG);
		CHECK(store_prune(&place.store, &err) == -EBADMSG);
	}
	write_text(place.cache, "refs.json", "{\"schema\":2,\"refs\":{}}");
	CHECK(store_find_ref(&place.store, "x:1", NULL, digest, &err) == -EBADMSG);
	CHECK(strstr(err.text, "schema 2"));
	/* One entry that makes no sense is nothing, and harms no other. */
	write_text(place.cache, "refs.json",
	           "{\"schema\":1,\"refs\":{\"bad\":{\"digest\":\"../../"
	           "x\"},\"n\":5,\"x:1\":{\"digest\":\"" D1 "\"}}}");
	CHECK(store_find_ref(&place.store, "bad", NULL, digest, NULL) == -ENOENT);
	CHECK(store_find_ref(&place.store, "n", NULL, digest, NULL) == -ENOENT);
	CHECK(store_find_ref(&place.store, "x:1", NULL, digest, NULL) == 0);
}

static int count_images(void *ctx, const struct resoluto_image *image)
{
	struct buf *text = ctx;

	return buf_addf(text, "%s%s ", image->ref, image->source_is_gone ? "(gone)" : "");
}

static void check_list(const struct store *store, const char *want)
{
	struct buf text = BUF_INIT(4096);

	CHECK(store_list(store, count_images, &text, NULL) == 0);
	CHECK_STR(text.data ? text.data : "", want);
	buf_done(&text);
}

static void an_image_goes_with_its_last_name(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_image image = { 0 };

	place_make(&place);
	publish(&place.store, D1, NULL);
	CHECK(store_set_ref(&place.store, "b:1", D1, NULL, NULL) == 0);
	CHECK(store_set_ref(&place.store, "a:1", D1, NULL, NULL) == 0);
	check_list(&place.store, "a:1 b:1 ");
	CHECK(store_remove_ref(&place.store, "c:1", NULL) == -ENOENT);
	CHECK(store_remove_ref(&place.store, "a:1", NULL) == 0);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == 0);
	resoluto_image_done(&image);
	CHECK(store_remove_ref(&place.store, "b:1", NULL) == 0);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == -ENOENT);
	check_list(&place.store, "");
	publish(&place.store, D1, NULL);
	CHECK(store_set_ref(&place.store, "a:1", D1, NULL, NULL) == 0);
	CHECK(store_remove_digest(&place.store, D2, NULL) == -ENOENT);
	CHECK(store_remove_digest(&place.store, D1, NULL) == 0);
	check_list(&place.store, "");
	/* Without any name too. */
	publish(&place.store, D1, NULL);
	CHECK(store_remove_digest(&place.store, D1, NULL) == 0);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == -ENOENT);
}

static void the_systems_cache_is_read_and_left_alone(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	struct resoluto_err err = { 0 };
	char digest[DIGEST_SIZE];

	place_make(&place);
	publish(&place.root, D1, NULL);
	CHECK(store_set_ref(&place.root, "base:1", D1, NULL, NULL) == 0);
	CHECK(store_find_ref(&place.store, "base:1", NULL, digest, &err) == 0 && err.code == 0);
	CHECK(store_find_image(&place.store, digest, &image, &err) == 0 && err.code == 0);
	CHECK(strncmp(image.path, place.system, strlen(place.system)) == 0);
	check_list(&place.store, "base:1 ");
	CHECK(store_remove_ref(&place.store, "base:1", &err) == -EPERM);
	CHECK(strstr(err.text, "only root"));
	/* A name of ours for it, and one that hides it. */
	CHECK(store_set_ref(&place.store, "mine:1", D1, NULL, NULL) == 0);
	publish(&place.store, D2, NULL);
	CHECK(store_set_ref(&place.store, "base:1", D2, NULL, NULL) == 0);
	check_list(&place.store, "base:1 mine:1 ");
	CHECK(store_find_ref(&place.store, "base:1", NULL, digest, NULL) == 0);
	CHECK_STR(digest, D2);
	CHECK(store_remove_ref(&place.store, "base:1", NULL) == 0);
	CHECK(store_prune(&place.store, NULL) >= 0);
	CHECK(store_find_ref(&place.root, "base:1", NULL, digest, NULL) == 0);
}

static void prune_takes_what_has_no_name(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_image image = { 0 };
	char images[120];

	place_make(&place);
	publish(&place.store, D1, NULL);
	publish(&place.store, D2, NULL);
	CHECK(store_set_ref(&place.store, "a:1", D1, NULL, NULL) == 0);
	snprintf(images, sizeof(images), "%s/images", place.cache);
	write_text(images, "sha256-1.json.0123456789abcdef.part", "x");
	write_text(place.cache, "refs.json.0123456789abcdef.part", "x");
	write_text(images, "unknown", "x");
	CHECK(store_prune(&place.store, NULL) >= 5000);
	CHECK(store_find_image(&place.store, D2, &image, NULL) == -ENOENT);
	CHECK(store_find_image(&place.store, D1, &image, NULL) == 0);
	resoluto_image_done(&image);
	CHECK(!has(&place, "images/sha256-1.json.0123456789abcdef.part"));
	CHECK(!has(&place, "refs.json.0123456789abcdef.part"));
	CHECK(has(&place, "images/unknown")); /* not ours, not touched */
}

static void the_name_of_a_file_that_is_gone_is_marked_until_it_is_pruned(void)
{
	CLEANUP(place_done) struct place place;
	char file[120], gone[160], want[400];

	place_make(&place);
	publish(&place.store, D1, NULL);
	write_text(place.cache, "x.tar", "x");
	snprintf(file, sizeof(file), "tar:%s/x.tar", place.cache);
	snprintf(gone, sizeof(gone), "rootfs:%s/none", place.cache);
	CHECK(store_set_ref(&place.store, file, D1, "stamp", NULL) == 0);
	CHECK(store_set_ref(&place.store, gone, D1, "stamp", NULL) == 0);
	snprintf(want, sizeof(want), "%s(gone) %s ", gone, file);
	check_list(&place.store, want);
	CHECK(store_prune(&place.store, NULL) >= 0);
	snprintf(want, sizeof(want), "%s ", file);
	check_list(&place.store, want);
}

static void sweeping_spares_who_lives(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(store_part_done) struct store_part living = STORE_PART_NONE;
	struct store_part dead = STORE_PART_NONE;
	char file[PATH_MAX + 16];
	struct stat st;

	place_make(&place);
	CHECK(store_part_new(&place.store, &living, NULL) == 0);
	CHECK(stat(living.path, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(store_part_new(&place.store, &dead, NULL) == 0);
	snprintf(file, sizeof(file), "%s/layer", dead.path);
	write_squashfs(file, 5000);
	/* What a kill does: the lock is gone, the directory is not. */
	fd_close(&dead.lock);
	store_sweep(&place.store);
	CHECK(access(dead.path, F_OK) < 0);
	CHECK(access(living.path, F_OK) == 0);
	store_part_done(&living);
	CHECK(access(living.path, F_OK) < 0);
}

static void say_waiting(void *ctx, const char *step, uint64_t done, uint64_t total)
{
	int fd = *(int *) ctx;

	CHECK(strcmp(step, "wait") == 0 && write(fd, "w", 1) == 1);
}

static void the_second_maker_waits(void)
{
	CLEANUP(place_done) struct place place;
	int slot = -1, pipe_fds[2], status;
	char byte;
	pid_t pid;

	place_make(&place);
	CHECK(pipe(pipe_fds) == 0);
	CHECK(store_lock_slot(&place.store, D1, &slot, NULL) == 0);
	pid = fork();
	if (pid == 0) {
		int own = -1;

		const struct caller caller = { .progress = say_waiting, .ctx = &pipe_fds[1] };

		place.store.caller = &caller;
		close(slot);
		if (store_lock_slot(&place.store, D1, &own, NULL) < 0 ||
		    write(pipe_fds[1], "g", 1) != 1)
			_exit(1);
		_exit(0);
	}
	CHECK(read(pipe_fds[0], &byte, 1) == 1 && byte == 'w');
	fd_close(&slot);
	CHECK(read(pipe_fds[0], &byte, 1) == 1 && byte == 'g');
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static bool at_the_third_look(void *ctx)
{
	return ++*(int *) ctx == 3;
}

static void a_wait_for_another_maker_can_be_stopped(void)
{
	CLEANUP(place_done) struct place place;
	struct caller caller = { .is_stopped = at_the_third_look };
	int slot = -1, own = -1, looks = 0;

	place_make(&place);
	CHECK(store_lock_slot(&place.store, D1, &slot, NULL) == 0);
	caller.ctx = &looks;
	place.store.caller = &caller;
	CHECK(store_lock_slot(&place.store, D1, &own, NULL) == -ECANCELED);
	CHECK(looks == 3 && own == -1);
	fd_close(&slot);
	CHECK(store_lock_slot(&place.store, D1, &own, NULL) == 0);
	fd_close(&own);
}

static void an_unusable_place_is_said(void)
{
	CLEANUP(place_done) struct place place;
	struct store store;
	struct store_part part = STORE_PART_NONE;
	struct resoluto_err err = { 0 };
	char path[200], *long_path = malloc(PATH_MAX + 10);

	place_make(&place);
	write_text(place.dir, "file", "x");
	snprintf(path, sizeof(path), "%s/file/cache", place.dir);
	CHECK(store_init(&store, path, NULL, NULL) == 0);
	CHECK(store_part_new(&store, &part, &err) == -ENOTDIR);
	CHECK(strstr(err.text, "RESOLUTO_CACHE_DIR"));
	memset(long_path, 'x', PATH_MAX + 9);
	long_path[PATH_MAX + 9] = '\0';
	CHECK(store_init(&store, long_path, NULL, NULL) == -ENAMETOOLONG);
	CHECK(store_init(&store, "", NULL, NULL) == -ENAMETOOLONG);
	free(long_path);
}

int main(void)
{
	RUN(gives_back_what_it_was_given);
	RUN(reading_makes_nothing);
	RUN(a_truncated_image_is_none);
	RUN(a_squashfs_is_checked);
	RUN(damaged_names_are_refused);
	RUN(an_image_goes_with_its_last_name);
	RUN(the_systems_cache_is_read_and_left_alone);
	RUN(prune_takes_what_has_no_name);
	RUN(the_name_of_a_file_that_is_gone_is_marked_until_it_is_pruned);
	RUN(sweeping_spares_who_lives);
	RUN(the_second_maker_waits);
	RUN(a_wait_for_another_maker_can_be_stopped);
	RUN(an_unusable_place_is_said);
	return check_done();
}
