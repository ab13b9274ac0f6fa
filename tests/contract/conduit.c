/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contract/conduit.c - the promises of conduit.h, asked of every backend.
 *
 * usage: conduit memory | localfs | stdout
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "resoluto/conduit.h"

enum {
	TEXT_MAX = 1024 * 1024,
	LARGE = 3 * 1024 * 1024 + 17, /* bytes; no multiple of anything */
};

/* The backend under test; each test function has a conduit of its own, which starts empty. */
static struct {
	const char *kind;
	char dir[64];  /* localfs: where the conduits lie */
	char url[128]; /* of the present one */
	unsigned count;
	struct resoluto_conduit *conduit;
} under_test;

static void open_new(void)
{
	struct resoluto_err err = { 0 };

	resoluto_conduit_close(under_test.conduit);
	under_test.conduit = NULL;
	if (strcmp(under_test.kind, "localfs") == 0)
		snprintf(under_test.url, sizeof(under_test.url), "localfs://%s/%u", under_test.dir,
		         under_test.count++);
	else
		snprintf(under_test.url, sizeof(under_test.url), "%s://", under_test.kind);
	CHECK(resoluto_conduit_open_url(under_test.url, &under_test.conduit, &err) == 0);
}

/* A source that gives small bites, and then perhaps fails. */
struct bites {
	const char *bytes;
	size_t left, bite;
	int failure; /* at the end, instead of 0 */
};

static ssize_t bites_read(void *ctx, void *buf, size_t cap)
{
	struct bites *bites = ctx;
	size_t n = bites->left < cap ? bites->left : cap;

	if (n == 0)
		return bites->failure;
	if (n > bites->bite)
		n = bites->bite;
	memcpy(buf, bites->bytes, n);
	bites->bytes += n;
	bites->left -= n;
	return (ssize_t) n;
}

static int put_bites(const char *key, const char *bytes, size_t len, size_t bite, int failure,
                     struct resoluto_err *err)
{
	struct bites bites = { bytes, len, bite, failure };

	return resoluto_conduit_put(under_test.conduit, key,
	                            &(struct resoluto_source){ bites_read, &bites }, err);
}

/* err.h: written on failure, untouched on success. */
static void expect_told(int r, const struct resoluto_err *err)
{
	CHECK(err->code == (r < 0 ? r : 0) && (r < 0) == (err->text[0] != '\0'));
}

static int put(const char *key, const char *text)
{
	struct resoluto_err err = { 0 };
	int r = resoluto_conduit_put_bytes(under_test.conduit, key, text, strlen(text), &err);

	expect_told(r, &err);
	return r;
}

static void expect(const char *key, const char *want)
{
	CLEANUP(mem_free) char *bytes = NULL;
	struct resoluto_err err = { 0 };
	size_t len = 0;

	CHECK(resoluto_conduit_get_bytes(under_test.conduit, key, TEXT_MAX, &bytes, &len, &err) ==
	      0);
	expect_told(0, &err);
	CHECK(len == strlen(want));
	CHECK_STR(bytes, want);
}

static bool is_absent(const char *key)
{
	char *bytes = NULL;
	size_t len;
	int r = resoluto_conduit_get_bytes(under_test.conduit, key, TEXT_MAX, &bytes, &len, NULL);

	free(bytes);
	return r == -ENOENT;
}

static int note_key(void *ctx, const struct resoluto_object *object)
{
	return buf_addf(ctx, "%s:%llu ", object->key, (unsigned long long) object->size);
}

static void expect_list(const char *prefix, const char *want)
{
	CLEANUP(buf_done) struct buf keys = BUF_INIT(TEXT_MAX);
	struct resoluto_err err = { 0 };

	CHECK(resoluto_conduit_list(under_test.conduit, prefix, note_key, &keys, &err) == 0);
	expect_told(0, &err);
	CHECK_STR(keys.data ? keys.data : "", want);
}

static void stores_and_fetches(void)
{
	open_new();
	CHECK(put("dir/b", "second") == 0);
	CHECK(put("dir/a", "first") == 0);
	CHECK(put("top", "without a directory") == 0);
	CHECK(put("empty", "") == 0);
	CHECK(put("deep/er/and/deep/er", "down there") == 0);
	CHECK(put("na me/with ~%\"'\\ and \xc3\xa4\xff", "any bytes but controls") == 0);
	expect("dir/b", "second");
	expect("dir/a", "first");
	expect("top", "without a directory");
	expect("empty", "");
	expect("deep/er/and/deep/er", "down there");
	expect("na me/with ~%\"'\\ and \xc3\xa4\xff", "any bytes but controls");
	CHECK(put("dir/b", "replaced") == 0);
	expect("dir/b", "replaced");
	CHECK(put("dir/b", "") == 0);
	expect("dir/b", "");
}

static void tells_a_missing_object(void)
{
	struct resoluto_err err = { 0 };
	char *bytes = NULL;
	size_t len = 77;

	open_new();
	CHECK(put("dir/a", "x") == 0);
	CHECK(resoluto_conduit_get_bytes(under_test.conduit, "dir/none", 10, &bytes, &len, &err) ==
	      -ENOENT);
	CHECK(err.code == -ENOENT && strstr(err.text, "dir/none"));
	CHECK(!bytes && len == 77);
	CHECK(is_absent("none"));
	CHECK(is_absent("dir"));
	CHECK(is_absent("dir/a/below"));
	CHECK(is_absent("no/such/directory"));
}

static char *large_bytes(void)
{
	char *bytes = malloc(LARGE);

	CHECK(bytes);
	for (size_t i = 0; i < LARGE; i++)
		bytes[i] = (char) (i * 2654435761u >> 13);
	return bytes;
}

static void carries_any_bytes_in_any_bites(void)
{
	static const size_t bite_sizes[] = { 1000, 65536, 65537, LARGE };
	CLEANUP(mem_free) char *want = large_bytes();

	open_new();
	for (size_t i = 0; i < sizeof(bite_sizes) / sizeof(bite_sizes[0]); i++) {
		CLEANUP(mem_free) char *got = NULL;
		size_t len;

		CHECK(put_bites("large", want, LARGE, bite_sizes[i], 0, NULL) == 0);
		CHECK(resoluto_conduit_get_bytes(under_test.conduit, "large", LARGE, &got, &len,
		                                 NULL) == 0);
		CHECK(len == LARGE && memcmp(got, want, LARGE) == 0 && got[LARGE] == '\0');
	}
	CHECK(put_bites("small", "one by one\0and a NUL", 20, 1, 0, NULL) == 0);
	expect_list("small", "small:20 ");
}

static void keeps_the_old_object_when_a_source_fails(void)
{
	struct resoluto_err err = { 0 };
	CLEANUP(mem_free) char *large = large_bytes();

	open_new();
	CHECK(put("dir/a", "first") == 0);
	CHECK(put_bites("dir/a", "half of", 7, 3, -EPIPE, &err) == -EPIPE);
	CHECK(err.code == -EPIPE && strstr(err.text, "dir/a"));
	CHECK(put_bites("dir/a", "", 0, 3, -ETIMEDOUT, NULL) == -ETIMEDOUT);
	CHECK(put_bites("dir/a", large, LARGE, 5000, -EIO, NULL) == -EIO);
	expect("dir/a", "first");
	CHECK(put_bites("dir/new", large, LARGE, 5000, -EIO, NULL) == -EIO);
	CHECK(is_absent("dir/new"));
	expect_list("", "dir/a:5 ");
}

static ssize_t read_too_much(void *ctx, void *buf, size_t cap)
{
	return (ssize_t) cap + 1;
}

static void refuses_a_source_that_overruns(void)
{
	open_new();
	CHECK(resoluto_conduit_put(under_test.conduit, "a",
	                           &(struct resoluto_source){ read_too_much, NULL }, NULL) == -EIO);
}

static int full_sink(void *ctx, const void *buf, size_t len)
{
	CHECK(len > 0);
	return -ENOSPC;
}

static int never(void *ctx, const void *buf, size_t len)
{
	++*(int *) ctx;
	return 0;
}

static void returns_what_a_sink_returns(void)
{
	struct resoluto_err err = { 0 };
	int calls = 0;

	open_new();
	CHECK(put("a", "text") == 0);
	CHECK(put("empty", "") == 0);
	CHECK(resoluto_conduit_get(under_test.conduit, "a",
	                           &(struct resoluto_sink){ full_sink, NULL }, &err) == -ENOSPC);
	CHECK(err.code == -ENOSPC);
	CHECK(resoluto_conduit_get(under_test.conduit, "empty",
	                           &(struct resoluto_sink){ never, &calls }, NULL) == 0);
	CHECK(calls == 0);
}

static void bounds_what_it_fetches(void)
{
	struct resoluto_err err = { 0 };
	char *bytes = NULL;
	size_t len = 77;

	open_new();
	CHECK(put("a", "12345") == 0);
	CHECK(resoluto_conduit_get_bytes(under_test.conduit, "a", 4, &bytes, &len, &err) == -EFBIG);
	CHECK(err.code == -EFBIG && !bytes && len == 77);
	CHECK(resoluto_conduit_get_bytes(under_test.conduit, "a", 5, &bytes, &len, NULL) == 0);
	CHECK(len == 5);
	free(bytes);
}

static void lists_in_byte_order(void)
{
	open_new();
	CHECK(put("dir0", "digit") == 0);
	CHECK(put("dir/b/x", "22") == 0);
	CHECK(put("dir/a", "1") == 0);
	CHECK(put("dir.x", "dot") == 0);
	CHECK(put("dir/b0", "") == 0);
	CHECK(put("dir/b.", "") == 0);
	CHECK(put("dir/\xff", "") == 0);
	CHECK(put("Z", "") == 0);
	expect_list("", "Z:0 dir.x:3 dir/a:1 dir/b.:0 dir/b/x:2 dir/b0:0 dir/\xff:0 dir0:5 ");
}

static void lists_by_string_prefix(void)
{
	open_new();
	CHECK(put("run/run-1/a", "") == 0);
	CHECK(put("run/run-1/b/c", "") == 0);
	CHECK(put("run/run-10/a", "") == 0);
	CHECK(put("run/run-2", "") == 0);
	expect_list("run/run-1/", "run/run-1/a:0 run/run-1/b/c:0 ");
	expect_list("run/run-1", "run/run-1/a:0 run/run-1/b/c:0 run/run-10/a:0 ");
	expect_list("run/", "run/run-1/a:0 run/run-1/b/c:0 run/run-10/a:0 run/run-2:0 ");
	expect_list("run/run-2", "run/run-2:0 ");
	expect_list("run/run-2/", "");
	expect_list("run/run-1/a", "run/run-1/a:0 ");
	expect_list("run/run-1/b/", "run/run-1/b/c:0 ");
	expect_list("r", "run/run-1/a:0 run/run-1/b/c:0 run/run-10/a:0 run/run-2:0 ");
	expect_list("none", "");
	expect_list("none/at/all", "");
	expect_list("run/run-1/a/", "");
}

static int stop_at_second(void *ctx, const struct resoluto_object *object)
{
	return ++*(int *) ctx == 2;
}

static int refuse(void *ctx, const struct resoluto_object *object)
{
	return -ECANCELED;
}

static void stops_a_listing_when_asked(void)
{
	struct resoluto_err err = { 0 };
	int calls = 0;

	open_new();
	CHECK(put("a/1", "") == 0);
	CHECK(put("a/2", "") == 0);
	CHECK(put("b", "") == 0);
	CHECK(resoluto_conduit_list(under_test.conduit, "", stop_at_second, &calls, &err) == 0);
	CHECK(calls == 2 && err.code == 0);
	CHECK(resoluto_conduit_list(under_test.conduit, "", refuse, NULL, &err) == -ECANCELED);
	CHECK(err.code == -ECANCELED);
	CHECK(resoluto_conduit_list(under_test.conduit, "none", refuse, NULL, NULL) == 0);
}

static void copies_a_prefix(void)
{
	static const char *const exclude[] = { "skip", "inbox", NULL };
	struct resoluto_err err = { 0 };

	open_new();
	CHECK(put("run/1/a", "A") == 0);
	CHECK(put("run/1/b/c", "CC") == 0);
	CHECK(put("run/1/inbox/w", "") == 0);
	CHECK(put("run/1/b/skip/d", "") == 0);
	CHECK(put("run/1/b/skipped", "kept") == 0);
	CHECK(put("run/10/a", "") == 0);
	CHECK(put("run/2/a", "old") == 0);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "run/1", "run/2", exclude, &err) ==
	      3);
	CHECK(err.code == 0);
	expect_list("run/2/", "run/2/a:1 run/2/b/c:2 run/2/b/skipped:4 ");
	expect("run/2/a", "A");
	expect("run/2/b/skipped", "kept");
	expect("run/1/a", "A");
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "run/1", "x", NULL, NULL) == 5);
	expect_list("x/", "x/a:1 x/b/c:2 x/b/skip/d:0 x/b/skipped:4 x/inbox/w:0 ");
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "none", "y", NULL, NULL) == 0);
	/* The name of the prefix itself is no segment of what lies beneath. */
	CHECK(put("skip/me", "") == 0);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "skip", "z", exclude, NULL) == 1);
}

/* As the contract writes them, and every listing does. */
static void takes_prefixes_with_a_final_slash(void)
{
	open_new();
	CHECK(put("run/1/a", "A") == 0);
	CHECK(put("run/1/b/c", "CC") == 0);
	CHECK(put("run/10/a", "") == 0);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "run/1/", "bak/z/", NULL, NULL) ==
	      2);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "run/1/", "y", NULL, NULL) == 2);
	expect_list("bak/", "bak/z/a:1 bak/z/b/c:2 ");
	expect_list("y/", "y/a:1 y/b/c:2 ");
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "y/", "y", NULL, NULL) == -EINVAL);
	CHECK(resoluto_conduit_delete_prefix(under_test.conduit, "run/1/", NULL) == 2);
	expect_list("run/", "run/10/a:0 ");
}

static void refuses_prefixes_within_each_other(void)
{
	open_new();
	CHECK(put("a/b/c", "") == 0);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "a", "a", NULL, NULL) == -EINVAL);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "a", "a/b", NULL, NULL) == -EINVAL);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "a/b", "a", NULL, NULL) == -EINVAL);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "a", "ab", NULL, NULL) == 1);
}

static void deletes_a_prefix(void)
{
	struct resoluto_err err = { 0 };

	open_new();
	CHECK(put("run/1/a", "") == 0);
	CHECK(put("run/1/b/c", "") == 0);
	CHECK(put("run/10/a", "") == 0);
	CHECK(put("run/2", "an object, and no prefix") == 0);
	CHECK(resoluto_conduit_delete_prefix(under_test.conduit, "run/1", &err) == 2);
	expect_list("", "run/10/a:0 run/2:24 ");
	CHECK(resoluto_conduit_delete_prefix(under_test.conduit, "run/1", &err) == 0);
	CHECK(resoluto_conduit_delete_prefix(under_test.conduit, "run/2", &err) == 0);
	CHECK(resoluto_conduit_delete_prefix(under_test.conduit, "no/such", &err) == 0);
	CHECK(err.code == 0);
	expect_list("run/2", "run/2:24 ");
	CHECK(put("run/1/a", "again") == 0);
	expect("run/1/a", "again");
}

static const char *const bad_keys[] = {
	"",        "/",    "/a",        "a/",      "a//b",        "..",        "../a",
	"a/..",    "a/.",  ".",         "./a",     "a/../b",      "new\nline", "tab\there",
	"del\x7f", "\x01", "a/\x1b[2J", ".part-x", "a/.part-0/b",
};

static void refuses_bad_keys(void)
{
	struct resoluto_conduit *conduit;
	struct resoluto_err err = { 0 };
	char *bytes;
	size_t len;
	char key[RESOLUTO_KEY_MAX + 2];

	open_new();
	conduit = under_test.conduit;
	for (size_t i = 0; i < sizeof(bad_keys) / sizeof(bad_keys[0]); i++) {
		const char *bad = bad_keys[i];

		CHECK(put(bad, "x") == -EINVAL);
		CHECK(resoluto_conduit_get_bytes(conduit, bad, 9, &bytes, &len, &err) == -EINVAL);
		CHECK(err.code == -EINVAL && !strpbrk(err.text, "\n\x1b\x01"));
		if (strcmp(bad, "a/") == 0)
			continue; /* a good prefix */
		CHECK(resoluto_conduit_delete_prefix(conduit, bad, NULL) == -EINVAL);
		CHECK(resoluto_conduit_copy_prefix(conduit, bad, "ok", NULL, NULL) == -EINVAL);
		CHECK(resoluto_conduit_copy_prefix(conduit, "ok", bad, NULL, NULL) == -EINVAL);
		if (bad[0])
			CHECK(resoluto_conduit_list(conduit, bad, refuse, NULL, NULL) == -EINVAL);
	}
	memset(key, 'k', sizeof(key));
	for (size_t i = 200; i < sizeof(key); i += 200)
		key[i] = '/';
	key[RESOLUTO_KEY_MAX + 1] = '\0';
	CHECK(put(key, "too long") == -EINVAL);
	memset(key, 'k', 256);
	key[256] = '\0';
	CHECK(put(key, "a component too long") == -EINVAL);
}

static void takes_the_longest_key(void)
{
	char key[RESOLUTO_KEY_MAX + 1];
	CLEANUP(buf_done) struct buf want = BUF_INIT(TEXT_MAX);

	open_new();
	memset(key, 'k', sizeof(key));
	for (size_t i = 200; i < RESOLUTO_KEY_MAX; i += 201)
		key[i] = '/';
	key[RESOLUTO_KEY_MAX] = '\0';
	CHECK(put(key, "longest") == 0);
	expect(key, "longest");
	CHECK(buf_addf(&want, "%s:7 ", key) == 0);
	expect_list("", want.data);
	expect_list(key, want.data);
	memset(key, 'c', 255);
	key[255] = '\0';
	CHECK(put(key, "longest component") == 0);
	expect(key, "longest component");
}

static void does_not_copy_to_keys_too_long(void)
{
	char key[RESOLUTO_KEY_MAX + 1];
	struct resoluto_err err = { 0 };

	open_new();
	memset(key, 'k', sizeof(key));
	for (size_t i = 1; i < RESOLUTO_KEY_MAX; i += 200)
		key[i] = '/';
	key[RESOLUTO_KEY_MAX] = '\0';
	CHECK(put(key, "x") == 0);
	CHECK(resoluto_conduit_copy_prefix(under_test.conduit, "k", "longer", NULL, &err) ==
	      -EINVAL);
	CHECK(err.code == -EINVAL);
}

static void refuses_bad_urls(void)
{
	static const char *const bad[] = { "",
		                           "nonsense",
		                           "localfs:/a",
		                           "ftp://x",
		                           "localfs://rel",
		                           "localfs://",
		                           "LOCALFS:///",
		                           "memory://somewhere",
		                           "stdout://x",
		                           "://",
		                           "local:///tmp" };
	struct resoluto_conduit *conduit = NULL;
	struct resoluto_err err = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(resoluto_conduit_open_url(bad[i], &conduit, &err) == -EINVAL);
		CHECK(err.code == -EINVAL && !conduit);
	}
	CHECK(resoluto_conduit_open_url("localfs:///no/such/parent", &conduit, &err) == -ENOENT);
	CHECK(resoluto_conduit_open_url("file:///dev/null", &conduit, &err) == -ENOTDIR);
	CHECK(!conduit);
	resoluto_conduit_close(NULL);
}

static void refused_as_null(int r, struct resoluto_err *err)
{
	CHECK(r == -EINVAL && err->code == -EINVAL && strstr(err->text, "NULL"));
	*err = (struct resoluto_err){ 0 };
}

static void refuses_null(void)
{
	const struct resoluto_source source = { read_too_much, NULL }, no_source = { NULL, NULL };
	const struct resoluto_sink sink = { full_sink, NULL }, no_sink = { NULL, NULL };
	struct resoluto_conduit *conduit = NULL;
	struct resoluto_err err = { 0 };
	char *bytes = NULL;
	size_t len = 0;

	refused_as_null(resoluto_conduit_open_url(NULL, &conduit, &err), &err);
	refused_as_null(resoluto_conduit_open_url("memory://", NULL, &err), &err);
	refused_as_null(resoluto_conduit_put(NULL, "a", &source, &err), &err);
	open_new();
	conduit = under_test.conduit;
	refused_as_null(resoluto_conduit_put(conduit, NULL, &source, &err), &err);
	refused_as_null(resoluto_conduit_put(conduit, "a", NULL, &err), &err);
	refused_as_null(resoluto_conduit_put(conduit, "a", &no_source, &err), &err);
	refused_as_null(resoluto_conduit_put_bytes(conduit, NULL, "x", 1, &err), &err);
	refused_as_null(resoluto_conduit_put_bytes(conduit, "a", NULL, 1, &err), &err);
	refused_as_null(resoluto_conduit_get(conduit, NULL, &sink, &err), &err);
	refused_as_null(resoluto_conduit_get(conduit, "a", NULL, &err), &err);
	refused_as_null(resoluto_conduit_get(conduit, "a", &no_sink, &err), &err);
	refused_as_null(resoluto_conduit_get_bytes(NULL, "a", 9, &bytes, &len, &err), &err);
	refused_as_null(resoluto_conduit_get_bytes(conduit, "a", 9, NULL, &len, &err), &err);
	refused_as_null(resoluto_conduit_get_bytes(conduit, "a", 9, &bytes, NULL, &err), &err);
	refused_as_null(resoluto_conduit_list(conduit, NULL, refuse, NULL, &err), &err);
	refused_as_null(resoluto_conduit_list(conduit, "a", NULL, NULL, &err), &err);
	refused_as_null(resoluto_conduit_copy_prefix(conduit, NULL, "b", NULL, &err), &err);
	refused_as_null(resoluto_conduit_copy_prefix(conduit, "a", NULL, NULL, &err), &err);
	refused_as_null(resoluto_conduit_delete_prefix(conduit, NULL, &err), &err);
	CHECK(resoluto_conduit_put(NULL, NULL, NULL, NULL) == -EINVAL);
}

static void keeps_objects_for_the_next(void)
{
	if (strcmp(under_test.kind, "localfs") != 0)
		SKIP("this store is gone when closed");
	open_new();
	CHECK(put("dir/a", "kept") == 0);
	resoluto_conduit_close(under_test.conduit);
	under_test.conduit = NULL;
	CHECK(resoluto_conduit_open_url(under_test.url, &under_test.conduit, NULL) == 0);
	expect("dir/a", "kept");
}

/* Open a conduit whose standard output is a file, and put that file at *ret_fd. */
static void open_captured(int *ret_fd)
{
	char path[] = "/tmp/conduit-out-XXXXXX";
	int kept = dup(STDOUT_FILENO), file = mkstemp(path);

	CHECK(kept >= 0 && file >= 0 && unlink(path) == 0);
	CHECK(dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
	open_new();
	CHECK(dup2(kept, STDOUT_FILENO) == STDOUT_FILENO);
	close(kept);
	*ret_fd = file;
}

static void expect_output(int fd, const char *want)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT(TEXT_MAX);

	CHECK(lseek(fd, 0, SEEK_SET) == 0 && read_rest(fd, &got) == 0);
	CHECK_STR(got.data ? got.data : "", want);
	CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
}

static void writes_a_line_for_each_object(void)
{
	CLEANUP(fd_close) int fd = -1;

	open_captured(&fd);
	CHECK(put("a/b", "two\nlines \"quoted\" \xc3\xa4") == 0);
	expect_output(fd, "{\"key\": \"a/b\", \"size\": 21, "
	                  "\"text\": \"two\\nlines \\\"quoted\\\" \\u00E4\"}\n");
	CHECK(put("empty", "") == 0);
	expect_output(fd, "{\"key\": \"empty\", \"size\": 0, \"text\": \"\"}\n");
	CHECK(put_bites("n", "\0", 1, 1, 0, NULL) == 0);
	expect_output(fd, "{\"key\": \"n\", \"size\": 1, \"b64\": \"AA==\"}\n");
	CHECK(put("b", "\xff\xfe") == 0);
	expect_output(fd, "{\"key\": \"b\", \"size\": 2, \"b64\": \"//4=\"}\n");
	CHECK(put("b", "\xff\xfe\xfd") == 0);
	expect_output(fd, "{\"key\": \"b\", \"size\": 3, \"b64\": \"//79\"}\n");
	CHECK(put("k\xff", "x") == 0);
	expect_output(fd, "{\"key_b64\": \"a/8=\", \"size\": 1, \"text\": \"x\"}\n");
}

static void writes_nothing_when_a_source_fails(void)
{
	CLEANUP(fd_close) int fd = -1;

	open_captured(&fd);
	CHECK(put_bites("a", "half", 4, 2, -EPIPE, NULL) == -EPIPE);
	CHECK(put("../a", "x") == -EINVAL);
	expect_output(fd, "");
}

static void cannot_read(void)
{
	struct resoluto_conduit *conduit;
	char *bytes = NULL;
	size_t len;

	open_new();
	conduit = under_test.conduit;
	CHECK(resoluto_conduit_get_bytes(conduit, "a", 9, &bytes, &len, NULL) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_list(conduit, "", refuse, NULL, NULL) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_copy_prefix(conduit, "a", "b", NULL, NULL) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_copy_prefix(conduit, "a/", "b/", NULL, NULL) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_delete_prefix(conduit, "a", NULL) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_delete_prefix(conduit, "a/", NULL) == -EOPNOTSUPP);
}

static void run_write_only(void)
{
	RUN(writes_a_line_for_each_object);
	RUN(writes_nothing_when_a_source_fails);
	RUN(cannot_read);
	RUN(refuses_bad_keys);
	RUN(refuses_a_source_that_overruns);
	RUN(refuses_bad_urls);
	RUN(refuses_null);
}

static void run_all(void)
{
	RUN(stores_and_fetches);
	RUN(tells_a_missing_object);
	RUN(carries_any_bytes_in_any_bites);
	RUN(keeps_the_old_object_when_a_source_fails);
	RUN(refuses_a_source_that_overruns);
	RUN(returns_what_a_sink_returns);
	RUN(bounds_what_it_fetches);
	RUN(lists_in_byte_order);
	RUN(lists_by_string_prefix);
	RUN(stops_a_listing_when_asked);
	RUN(copies_a_prefix);
	RUN(takes_prefixes_with_a_final_slash);
	RUN(refuses_prefixes_within_each_other);
	RUN(deletes_a_prefix);
	RUN(refuses_bad_keys);
	RUN(takes_the_longest_key);
	RUN(does_not_copy_to_keys_too_long);
	RUN(refuses_bad_urls);
	RUN(refuses_null);
	RUN(keeps_objects_for_the_next);
}

int main(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "usage: conduit memory | localfs | stdout\n");
		return 2;
	}
	under_test.kind = argv[1];
	snprintf(under_test.dir, sizeof(under_test.dir), "/tmp/conduit-XXXXXX");
	if (!mkdtemp(under_test.dir))
		return 99;
	if (strcmp(under_test.kind, "stdout") == 0)
		run_write_only();
	else
		run_all();
	resoluto_conduit_close(under_test.conduit);
	if (remove_tree_at(AT_FDCWD, under_test.dir) < 0)
		return 99;
	return check_done();
}
