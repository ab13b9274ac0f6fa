/* SPDX-License-Identifier: Apache-2.0 */
/* flatten.c - layers in, one stream out: the right contents under the right names, and damage refused. */
#include <errno.h>

#include "base/cleanup.h"
#include "image/bounds.h"
#include "image/flatten.h"
#include "image/layer.h"
#include "layers.h"

static int keep(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	return buf_add(ctx, bytes, len) < 0 ? resoluto_fail(err, -ENOMEM, "keep the stream") : 0;
}

static int run(const struct flatten_options *options, struct buf *ret_stream,
               struct resoluto_err *err)
{
	*ret_stream = BUF_INIT(64 * 1024 * 1024);
	return flatten(options, &(struct flatten_sink){ keep, ret_stream }, NULL, err);
}

static struct flatten_layer layer_of(const struct buf *bytes, const char *name)
{
	struct flatten_layer layer = { .fd = -1,
		                       .bytes = bytes->data,
		                       .len = bytes->len,
		                       .packed_size = bytes->len };

	snprintf(layer.name, sizeof(layer.name), "%s", name);
	return layer;
}

/* "path=contents path->target path/ path==other" and the modes and owners, sorted as they come. */
static void show(const struct buf *stream, struct buf *ret_text)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	char contents[100];

	*ret_text = BUF_INIT(64 * 1024);
	archive_read_support_format_tar(archive);
	CHECK(archive_read_open_memory(archive, stream->data, stream->len) == ARCHIVE_OK);
	while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
		la_ssize_t n = archive_read_data(archive, contents, sizeof(contents));

		CHECK(n >= 0);
		buf_addf(ret_text, "%s%s", ret_text->len ? " " : "", archive_entry_pathname(entry));
		if (archive_entry_hardlink(entry))
			buf_addf(ret_text, "==%s", archive_entry_hardlink(entry));
		else if (archive_entry_symlink(entry))
			buf_addf(ret_text, "->%s", archive_entry_symlink(entry));
		else if (archive_entry_filetype(entry) == AE_IFREG)
			buf_addf(ret_text, "=%.*s", (int) n, contents);
		if (archive_entry_perm(entry) != 0644 && !archive_entry_hardlink(entry))
			buf_addf(ret_text, ":%o", archive_entry_perm(entry));
		if (archive_entry_uid(entry))
			buf_addf(ret_text, ":u%d", (int) archive_entry_uid(entry));
		if (archive_entry_xattr_count(entry))
			buf_addf(ret_text, ":x%d", archive_entry_xattr_count(entry));
	}
	archive_read_free(archive);
}

static const struct file lower[] = {
	{ "etc", AE_IFDIR, NULL, 0755 },
	{ "etc/a", AE_IFREG, "old a", 0644 },
	{ "etc/b", AE_IFREG, "b", 04755, 5 },
	{ "etc/empty", AE_IFREG, "", 0644 },
	{ "etc/b2", 0, "etc/b" },
	{ "gone", AE_IFREG, "gone", 0644 },
	{ "etc/l", AE_IFLNK, "a", 0644 },
};

static const struct file upper[] = {
	{ "etc/a", AE_IFREG, "new a", 0600, 7, "value" },
	{ ".wh.gone", AE_IFREG, "", 0644 },
	{ "etc/a2", 0, "etc/a" },
};

static const char merged[] =
	"./:755 etc:755 etc/empty= etc/l->a etc/b=b:4755:u5 etc/a=new a:600:u7:x1 "
	"etc/b2==etc/b:u5 etc/a2==etc/a:u7";

static void layers_become_one_stream(void)
{
	static const char *const filters[] = { "none", "gzip", "zstd" };

	for (size_t i = 0; i < 3; i++) {
		CLEANUP(buf_done) struct buf one = layers_make(filters[i], lower, 7);
		CLEANUP(buf_done) struct buf two = layers_make(filters[i], upper, 3);
		CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
		CLEANUP(buf_done) struct buf text = BUF_INIT(0);
		struct flatten_layer layers[] = { layer_of(&one, "one"), layer_of(&two, "two") };
		struct resoluto_err err = { 0 };
		int r = run(&(struct flatten_options){ .layers = layers,
		                                       .layer_count = 2,
		                                       .whiteouts = true },
		            &stream, &err);

		if (r < 0)
			printf("# %s\n", err.text);
		CHECK(r == 0);
		show(&stream, &text);
		CHECK_STR(text.data, merged);
	}
}

static void the_working_directory_is_there(void)
{
	/* The last two cannot be made, which is said when a run starts there. */
	static const struct {
		const char *workdir, *added;
	} cases[] = {
		{ "/etc", "" },
		{ "/", "" },
		{ "/app/src/", " app:755 app/src:755" },
		{ "/way/deep", " etc/deep:755" },
		{ "/etc/a/b", "" },
		{ "/../x", "" },
	};
	static const struct file files[] = {
		{ "etc", AE_IFDIR, NULL, 0755 },
		{ "etc/a", AE_IFREG, "a", 0644 },
		{ "way", AE_IFLNK, "/etc", 0644 },
	};
	CLEANUP(buf_done) struct buf one = layers_make("none", files, 3);
	struct flatten_layer layer = layer_of(&one, "one");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
		CLEANUP(buf_done) struct buf text = BUF_INIT(0);
		CLEANUP(buf_done) struct buf made = BUF_INIT(0);

		CHECK(run(&(struct flatten_options){ .layers = &layer,
		                                     .layer_count = 1,
		                                     .workdir = cases[i].workdir,
		                                     .whiteouts = true },
		          &stream, NULL) == 0);
		show(&stream, &text);
		made = BUF_INIT(1024);
		for (char *word = strtok(text.data, " "); word; word = strtok(NULL, " ")) {
			if (strcmp(word, "./:755") != 0 && strcmp(word, "etc:755") != 0 &&
			    strcmp(word, "etc/a=a") != 0 && strcmp(word, "way->/etc") != 0)
				buf_addf(&made, " %s", word);
		}
		CHECK_STR(made.data ? made.data : "", cases[i].added);
	}
}

static void both_passes_may_be_compared(void)
{
	CLEANUP(buf_done) struct buf one = layers_make("gzip", lower, 7);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct flatten_layer layer = layer_of(&one, "one");

	CHECK(run(&(struct flatten_options){ .layers = &layer,
	                                     .layer_count = 1,
	                                     .may_change = true },
	          &stream, NULL) == 0);
}

/* Turns a byte of the layer after the first pass: the sink sees the first bytes of the second. */
struct saboteur {
	char *bytes;
	size_t at;
};

static int turn(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	struct saboteur *saboteur = ctx;

	saboteur->bytes[saboteur->at] = '!';
	return 0;
}

static void a_tar_that_changes_is_refused(void)
{
	CLEANUP(buf_done) struct buf one = layers_make("none", lower, 7);
	struct flatten_layer layer = layer_of(&one, "one");
	struct saboteur saboteur = { one.data, 0 };
	char *found = memmem(one.data, one.len, "old a", 5);
	struct resoluto_err err = { 0 };

	CHECK(found);
	saboteur.at = (size_t) (found - one.data);
	CHECK(flatten(&(struct flatten_options){ .layers = &layer,
	                                         .layer_count = 1,
	                                         .may_change = true },
	              &(struct flatten_sink){ turn, &saboteur }, NULL, &err) == -EBADMSG);
	CHECK(strstr(err.text, "changed"));
}

static void no_layer_is_an_empty_root(void)
{
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);

	CHECK(run(&(struct flatten_options){ .whiteouts = true }, &stream, NULL) == 0);
	show(&stream, &text);
	CHECK_STR(text.data, "./:755");
}

static void an_empty_blob_is_an_empty_layer(void)
{
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	CLEANUP(buf_done) struct buf nothing = layers_make("gzip", NULL, 0);
	struct flatten_layer layers[] = { { .fd = -1, .bytes = "", .len = 0 },
		                          layer_of(&nothing, "nothing") };

	CHECK(run(&(struct flatten_options){ .layers = layers,
	                                     .layer_count = 2,
	                                     .whiteouts = true },
	          &stream, NULL) == 0);
}

static void diff_ids_tie_contents_to_the_configuration(void)
{
	CLEANUP(buf_done) struct buf plain = layers_make("none", lower, 7);
	CLEANUP(buf_done) struct buf packed = layers_make("gzip", lower, 7);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct flatten_layer layer = layer_of(&packed, "layer 1 of 1");
	struct flatten_options options = { .layers = &layer, .layer_count = 1, .whiteouts = true };
	char digest[DIGEST_SIZE];
	struct resoluto_err err = { 0 };

	digest_of(plain.data, plain.len, digest);
	layer.diff_id = digest;
	CHECK(run(&options, &stream, NULL) == 0);
	buf_done(&stream);
	digest[20] = digest[20] == '0' ? '1' : '0';
	CHECK(run(&options, &stream, &err) == -EBADMSG);
	CHECK(strstr(err.text, "layer 1 of 1: unpacks to"));
}

static void damage_is_refused(const struct buf *bytes, size_t len, const char *says)
{
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct flatten_layer layer = layer_of(bytes, "layer 1");
	struct resoluto_err err = { 0 };
	int r;

	layer.len = len;
	r = run(&(struct flatten_options){ .layers = &layer, .layer_count = 1, .whiteouts = true },
	        &stream, &err);
	printf("# %s\n", err.text);
	CHECK(r == -EBADMSG);
	CHECK(strstr(err.text, says));
}

static void truncated_and_damaged_layers_are_refused(void)
{
	CLEANUP(buf_done) struct buf packed = layers_make("gzip", lower, 7);
	CLEANUP(buf_done) struct buf plain = layers_make("none", lower, 7);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);

	damage_is_refused(&packed, packed.len - 20, "cannot be decompressed");
	/* Found by the tar inside or by the checksum at the end, but found. */
	packed.data[packed.len / 2] ^= 0x55;
	damage_is_refused(&packed, packed.len, "layer 1: ");
	damage_is_refused(&plain, 700, "no intact tar");
	plain.data[10] ^= 1; /* the checksum is wrong now */
	damage_is_refused(&plain, plain.len, "no intact tar");
	for (int i = 0; i < 100; i++)
		buf_add_str(&text, "this is no tar at all\n");
	damage_is_refused(&text, text.len, "no intact tar");
}

static void hostile_members_are_refused(void)
{
	static const struct {
		struct file file;
		const char *says;
	} rows[] = {
		{ { "/etc/passwd", AE_IFREG, "x", 0644 }, "absolute" },
		{ { "a/../../x", AE_IFREG, "x", 0644 }, "climbs" },
		{ { "mem", AE_IFCHR, NULL, 0644 }, "outside of /dev" },
		{ { "x", 0, "../../etc/passwd" }, "climbs" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(buf_done) struct buf bytes = layers_make("none", &rows[i].file, 1);

		damage_is_refused(&bytes, bytes.len, rows[i].says);
	}
}

/* GNU.sparse 1.0: a member of 30 GiB in two blocks. */
static void a_sparse_bomb_is_refused(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(64 * 1024 * 1024);
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	char *zeros = calloc(1, 1 << 20);

	archive_write_set_format_pax(archive);
	CHECK(archive_write_open(archive, &out, NULL, layers_write, NULL) == ARCHIVE_OK);
	archive_entry_set_pathname(entry, "big");
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t) 30 << 30);
	archive_entry_sparse_add_entry(entry, ((la_int64_t) 30 << 30) - 1, 1);
	CHECK(archive_write_header(archive, entry) >= ARCHIVE_WARN);
	/* libarchive leaves out the holes of what it is given. */
	for (int i = 0; i < 30 << 10; i++)
		CHECK(archive_write_data(archive, zeros, 1 << 20) == 1 << 20);
	CHECK(archive_write_close(archive) == ARCHIVE_OK);
	archive_write_free(archive);
	archive_entry_free(entry);
	free(zeros);
	CHECK(out.len < 64 * 1024);
	damage_is_refused(&out, out.len, "IMAGE_RATIO_MAX");
}

static void a_decompression_bomb_is_refused(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(64 * 1024 * 1024);
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	size_t step = 16 << 20;
	char *zeros = calloc(1, step);
	uint64_t size = IMAGE_RATIO_FREE + step;

	archive_write_set_format_pax_restricted(archive);
	CHECK(archive_write_add_filter_zstd(archive) == ARCHIVE_OK);
	CHECK(archive_write_open(archive, &out, NULL, layers_write, NULL) == ARCHIVE_OK);
	archive_entry_set_pathname(entry, "big");
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_size(entry, (la_int64_t) size);
	CHECK(archive_write_header(archive, entry) >= ARCHIVE_WARN);
	for (uint64_t done = 0; done < size; done += step)
		CHECK(archive_write_data(archive, zeros, step) == (la_ssize_t) step);
	CHECK(archive_write_close(archive) == ARCHIVE_OK);
	archive_write_free(archive);
	archive_entry_free(entry);
	free(zeros);
	damage_is_refused(&out, out.len, "decompression bomb");
}

static void holes_are_zeros(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1024 * 1024);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	static char contents[300000], back[300001];
	struct flatten_layer layer;

	memset(contents + 100000, 'x', 10);
	archive_write_set_format_pax(archive);
	CHECK(archive_write_open(archive, &out, NULL, layers_write, NULL) == ARCHIVE_OK);
	archive_entry_set_pathname(entry, "holes");
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_size(entry, sizeof(contents));
	archive_entry_sparse_add_entry(entry, 100000, 10);
	CHECK(archive_write_header(archive, entry) >= ARCHIVE_WARN);
	CHECK(archive_write_data(archive, contents, sizeof(contents)) >= 0);
	CHECK(archive_write_close(archive) == ARCHIVE_OK);
	archive_write_free(archive);
	archive_entry_free(entry);
	CHECK(out.len < 100000);
	layer = layer_of(&out, "sparse");
	CHECK(run(&(struct flatten_options){ .layers = &layer,
	                                     .layer_count = 1,
	                                     .whiteouts = true },
	          &stream, NULL) == 0);
	archive = archive_read_new();
	archive_read_support_format_tar(archive);
	CHECK(archive_read_open_memory(archive, stream.data, stream.len) == ARCHIVE_OK);
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK); /* ./ */
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK(archive_read_data(archive, back, sizeof(back)) == sizeof(contents));
	CHECK(memcmp(back, contents, sizeof(contents)) == 0);
	archive_read_free(archive);
}

/* In a program that never called setlocale(), names are bytes all the same. */
static void names_need_no_locale(void)
{
	CLEANUP(layer_locale_end) struct layer_locale locale = layer_locale_begin();
	char name[200];
	struct file file = { name, AE_IFREG, "x", 0644 };

	snprintf(name, sizeof(name), "caf\xc3\xa9-\xe2\x82\xac-%0150d", 1);
	CLEANUP(buf_done) struct buf bytes = layers_make("none", &file, 1);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct flatten_layer layer = layer_of(&bytes, "names");

	layer_locale_end(&locale);
	CHECK(run(&(struct flatten_options){ .layers = &layer,
	                                     .layer_count = 1,
	                                     .whiteouts = true },
	          &stream, NULL) == 0);
	CHECK(memmem(stream.data, stream.len, name, strlen(name)));
}

static int full(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	return resoluto_fail(err, -ENOSPC, "full");
}

static void a_failing_sink_ends_it(void)
{
	CLEANUP(buf_done) struct buf one = layers_make("none", lower, 7);
	struct flatten_layer layer = layer_of(&one, "one");

	CHECK(flatten(&(struct flatten_options){ .layers = &layer, .layer_count = 1 },
	              &(struct flatten_sink){ full, NULL }, NULL, NULL) == -ENOSPC);
}

static void an_image_archive_is_no_root(void)
{
	static const struct file docker[] = { { "manifest.json", AE_IFREG, "[]", 0644 } };
	static const struct file oci[] = { { "oci-layout", AE_IFREG, "{}", 0644 } };
	CLEANUP(buf_done) struct buf one = layers_make("none", docker, 1);
	CLEANUP(buf_done) struct buf two = layers_make("none", oci, 1);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct flatten_layer layer = layer_of(&one, "one");
	struct flatten_options options = { .layers = &layer, .layer_count = 1 };
	struct resoluto_err err = { 0 };

	CHECK(run(&options, &stream, &err) == -EINVAL);
	CHECK(strstr(err.text, "docker-archive:"));
	buf_done(&stream);
	layer = layer_of(&two, "two");
	CHECK(run(&options, &stream, &err) == -EINVAL);
	CHECK(strstr(err.text, "oci-archive:"));
}

/* What it has looked at so far is more than it was to see. */
static bool has_seen_enough(void *ctx)
{
	unsigned *left = ctx;

	return *left == 0 || --*left == 0;
}

static void its_caller_stops_either_pass(void)
{
	CLEANUP(buf_done) struct buf one = layers_make("gzip", lower, 7);
	struct flatten_layer layer = layer_of(&one, "one");
	int first = 0, r = -ECANCELED;

	for (unsigned looks = 1; r < 0; looks++) {
		CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
		unsigned left = looks;
		const struct caller caller = { .is_stopped = has_seen_enough, .ctx = &left };

		r = run(&(struct flatten_options){ .layers = &layer,
		                                   .layer_count = 1,
		                                   .caller = &caller },
		        &stream, NULL);
		CHECK(r == 0 || r == -ECANCELED);
		CHECK(r == 0 || looks < 100);
		first += r < 0 && stream.len == 0;
		CHECK(r == 0 || looks > 1 || first == 1);
	}
	CHECK(first > 0);
}

int main(void)
{
	RUN(layers_become_one_stream);
	RUN(the_working_directory_is_there);
	RUN(both_passes_may_be_compared);
	RUN(a_tar_that_changes_is_refused);
	RUN(no_layer_is_an_empty_root);
	RUN(an_empty_blob_is_an_empty_layer);
	RUN(diff_ids_tie_contents_to_the_configuration);
	RUN(truncated_and_damaged_layers_are_refused);
	RUN(hostile_members_are_refused);
	RUN(a_sparse_bomb_is_refused);
	RUN(a_decompression_bomb_is_refused);
	RUN(holes_are_zeros);
	RUN(names_need_no_locale);
	RUN(a_failing_sink_ends_it);
	RUN(its_caller_stops_either_pass);
	RUN(an_image_archive_is_no_root);
	return check_done();
}
