/* SPDX-License-Identifier: Apache-2.0 */
/* In an image that has /d with files a, b, c and a directory sub with x in it, all the program's: changes
 * them in the ways in which an overlay must keep the image's own from coming back, and prints what is there
 * then.  test_image_files.py knows what that must be. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 32, TEXT_MAX = 64 };

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	printf("%s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static void append(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0644);

	must(fd, path);
	must((int) write(fd, text, strlen(text)), path);
	must(close(fd), path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static void show_file(const char *path)
{
	char text[TEXT_MAX + 1] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd, path);
	must((int) read(fd, text, TEXT_MAX), path);
	must(close(fd), path);
	printf("%s: %s\n", path, text);
}

/* Sorted, with the types that the directory tells: of whiteouts nothing may be seen. */
static void show(const char *path)
{
	DIR *dir = opendir(path);
	char *names[NAMES_MAX];
	size_t count = 0;

	must(dir ? 0 : -1, path);
	for (struct dirent *entry; (entry = readdir(dir)) && count < NAMES_MAX;) {
		const char *mark = entry->d_type == DT_DIR   ? "/"
		                   : entry->d_type == DT_REG ? ""
		                                             : "?";

		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			must(asprintf(&names[count++], "%s%s", entry->d_name, mark), path);
	}
	(void) closedir(dir);
	qsort(names, count, sizeof(names[0]), by_name);
	printf("%s:", path);
	for (size_t i = 0; i < count; i++) {
		printf(" %s", names[i]);
		free(names[i]);
	}
	printf("\n");
}

static void change_files(void)
{
	must(unlink("/d/a"), "remove a");
	printf("a is %s\n", access("/d/a", F_OK) < 0 ? strerrorname_np(errno) : "there");
	append("/d/a", "new", O_EXCL);
	append("/d/b", " and more", 0);
	must(chmod("/d/b", 0600), "chmod b");
	must(link("/d/b", "/d/link"), "link b");
	must(rename("/d/b", "/d/moved"), "move b");
	must(unlink("/d/c"), "remove c");
	must(rename("/d/moved", "/d/c"), "move over a whiteout");
}

static void change_directories(void)
{
	printf("sub is %s\n", rmdir("/d/sub") < 0 ? strerrorname_np(errno) : "gone");
	must(unlink("/d/sub/x"), "remove x");
	must(rmdir("/d/sub"), "remove sub");
	must(mkdir("/d/sub", 0755), "make sub");
	show("/d/sub");
	append("/d/sub/y", "y", O_EXCL);
	must(rename("/d/sub", "/d/other"), "move a new directory");
}

int main(void)
{
	change_files();
	change_directories();
	show("/d");
	show("/d/other");
	show_file("/d/a");
	show_file("/d/c");
	return 0;
}
