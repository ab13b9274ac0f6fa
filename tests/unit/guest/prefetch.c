/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "guest/prefetch.h"
#include "guest/program.h"

static const char *of_text(const char *head)
{
	static char path[PREFETCH_PATH_SIZE];

	prefetch_interpreter((const uint8_t *) head, strlen(head), path);
	return path;
}

static void of_a_script_it_is_the_first_word(void)
{
	CHECK_STR(of_text("#!/bin/sh\n"), "/bin/sh");
	CHECK_STR(of_text("#! \t/usr/bin/env python3\n"), "/usr/bin/env");
	CHECK_STR(of_text("#!/bin/sh"), ""); /* cut off: who knows what follows */
	CHECK_STR(of_text("#!\n"), "");
	CHECK_STR(of_text("#"), "");
	CHECK_STR(of_text(""), "");
	CHECK_STR(of_text("echo #!/bin/sh\n"), "");
}

static void one_that_is_too_long_is_none(void)
{
	char head[PREFETCH_PATH_SIZE + 8] = "#!", path[PREFETCH_PATH_SIZE];

	memset(head + 2, 'a', PREFETCH_PATH_SIZE);
	head[2 + PREFETCH_PATH_SIZE] = '\n';
	prefetch_interpreter((const uint8_t *) head, sizeof(head), path);
	CHECK_STR(path, "");
	head[2 + PREFETCH_PATH_SIZE - 1] = '\n';
	prefetch_interpreter((const uint8_t *) head, sizeof(head), path);
	CHECK(strlen(path) == PREFETCH_PATH_SIZE - 1);
}

/* A program whose second part names its interpreter. */
struct image {
	Elf64_Ehdr file;
	Elf64_Phdr parts[2];
	char name[16];
};

static struct image make_image(void)
{
	struct image image = {
		.file = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
		          .e_phoff = offsetof(struct image, parts),
		          .e_phentsize = sizeof(Elf64_Phdr),
		          .e_phnum = 2 },
		.parts = { { .p_type = PT_PHDR },
		           { .p_type = PT_INTERP,
		             .p_offset = offsetof(struct image, name),
		             .p_filesz = sizeof("/lib/ld.so") } },
		.name = "/lib/ld.so",
	};

	return image;
}

static const char *of_image(const struct image *image, size_t len)
{
	static char path[PREFETCH_PATH_SIZE];

	prefetch_interpreter((const uint8_t *) image, len, path);
	return path;
}

static void of_a_program_it_is_its_loader(void)
{
	struct image image = make_image();

	CHECK_STR(of_image(&image, sizeof(image)), "/lib/ld.so");
	image.parts[1].p_type = PT_LOAD;
	CHECK_STR(of_image(&image, sizeof(image)), "");
}

/* Whatever is cut off or points elsewhere is not followed; sanitizers watch. */
static void hostile_heads_are_not_followed(void)
{
	const struct image good = make_image();
	struct image image = good;

	for (size_t len = 0; len < offsetof(struct image, name) + sizeof("/lib/ld.so"); len++)
		CHECK_STR(of_image(&good, len), "");
	image.file.e_phoff = UINT64_MAX;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image = good;
	image.file.e_phnum = UINT16_MAX;
	image.parts[1].p_type = PT_NULL;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image = good;
	image.file.e_phentsize = 1;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image = good;
	image.file.e_ident[EI_CLASS] = ELFCLASS32;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image = good;
	image.parts[1].p_offset = UINT64_MAX;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image = good;
	image.parts[1].p_filesz = 0;
	CHECK_STR(of_image(&image, sizeof(image)), "");
	image.parts[1].p_filesz = UINT64_MAX;
	CHECK_STR(of_image(&image, sizeof(image)), "");
}

static void candidates_come_in_the_order_of_path(void)
{
	const char *path = "/bin::/usr/bin";
	char candidate[PROGRAM_PATH_MAX];

	CHECK(program_next_candidate(&path, "ls", candidate));
	CHECK_STR(candidate, "/bin/ls");
	CHECK(program_next_candidate(&path, "ls", candidate));
	CHECK_STR(candidate, "./ls");
	CHECK(program_next_candidate(&path, "ls", candidate));
	CHECK_STR(candidate, "/usr/bin/ls");
	CHECK(!program_next_candidate(&path, "ls", candidate));
	path = "/bin";
	CHECK(!program_next_candidate(&path, "", candidate));
}

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK(replace_file_at(AT_FDCWD, path, text, strlen(text), 0700, NULL) == 0);
}

/* As an image is one: links and whole paths lead to where the root lies. */
static void make_dir_in_root(char dir[static sizeof("/tmp/prefetch-XXXXXX")])
{
	struct stat root, here;

	CHECK(mkdtemp(dir) && stat("/", &root) == 0 && stat(dir, &here) == 0);
	if (root.st_dev == here.st_dev)
		return;
	(void) rmdir(dir);
	SKIP("/tmp is a file system of its own here");
}

static unsigned count_of(const char *name, const char *path, const char *cwd)
{
	struct prefetch prefetch;
	unsigned count;
	int next = dup(0);

	close(next);
	prefetch_open(name, path, cwd, &prefetch);
	count = prefetch.count;
	prefetch_read(&prefetch);
	CHECK(prefetch.count == 0 && dup(0) == next);
	close(next);
	return count;
}

/* Real files: a script that is its own interpreter, one behind a link, and what is no file of the image's. */
static void files_are_opened_and_closed(void)
{
	char dir[] = "/tmp/prefetch-XXXXXX", link[64], far[64];

	make_dir_in_root(dir);
	write_text(dir, "self", "#!./self\n");
	write_text(dir, "one", "text");
	snprintf(far, sizeof(far), "%s/one", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	CHECK(symlink(far, link) == 0);
	/* The program, and as often its interpreter, as far as such a chain is followed; beside the last one is no library. */
	CHECK(count_of("./self", "", dir) == 1 + PREFETCH_DEPTH);
	CHECK(count_of("one", "/nowhere::/bin", dir) == 1);
	CHECK(count_of("./link", "", dir) == 1);
	CHECK(count_of("one", "/nowhere", dir) == 0);
	CHECK(count_of("./version", "", "/proc") == 0);
	CHECK(count_of("version", "", "/proc") == 0);
	CHECK(count_of("/dev/null", "", dir) == 0);
	CHECK(remove_tree_at(AT_FDCWD, dir) == 0);
}

/* Each place costs a look. */
static void so_many_places_are_looked_at(void)
{
	char dir[] = "/tmp/prefetch-XXXXXX", path[PREFETCH_TRIES * 4 + 64] = "";

	make_dir_in_root(dir);
	write_text(dir, "one", "text");
	for (int i = 0; i < PREFETCH_TRIES - 1; i++)
		strcat(path, "/x:");
	strcat(path, dir);
	CHECK(count_of("one", path, "/") == 1);
	memmove(path + 3, path, strlen(path) + 1);
	memcpy(path, "/x:", 3);
	CHECK(count_of("one", path, "/") == 0);
	CHECK(remove_tree_at(AT_FDCWD, dir) == 0);
}

int main(void)
{
	RUN(of_a_script_it_is_the_first_word);
	RUN(one_that_is_too_long_is_none);
	RUN(of_a_program_it_is_its_loader);
	RUN(hostile_heads_are_not_followed);
	RUN(candidates_come_in_the_order_of_path);
	RUN(files_are_opened_and_closed);
	RUN(so_many_places_are_looked_at);
	return check_done();
}
