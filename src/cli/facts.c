/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"
#include "cli/facts.h"
#include "image/digest.h"

enum { VERSION_OUTPUT_MAX = 4096 }; /* bytes of `program --version` */

static char *program_in(const char *dir, size_t dir_len, const char *name)
{
	char *path = NULL;

	if (dir_len == 0 || asprintf(&path, "%.*s/%s", (int) dir_len, dir, name) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int fact_find_program(const char *name, char **ret_path)
{
	const char *const places[] = { getenv("PATH"), "/usr/sbin:/sbin" };

	for (size_t i = 0; i < 2; i++) {
		const char *at = places[i];

		while (at && *at) {
			size_t len = strcspn(at, ":");

			*ret_path = program_in(at, len, name);
			if (*ret_path)
				return 0;
			at += len + (at[len] == ':');
		}
	}
	return -ENOENT;
}

int fact_qemu(const struct config *config, char **ret_path)
{
	const char *given = config_get(config, "RESOLUTO_LOCAL_QEMU");
	struct utsname host;
	char name[sizeof(host.machine) + 16];

	if (given && strchr(given, '/')) {
		if (access(given, X_OK) < 0)
			return -errno;
		*ret_path = strdup(given);
		return *ret_path ? 0 : -ENOMEM;
	}
	if (uname(&host) < 0)
		return -errno;
	snprintf(name, sizeof(name), "qemu-system-%s", host.machine);
	return fact_find_program(given && given[0] ? given : name, ret_path);
}

void fact_version_in(const char *text, char ret_version[FACT_MAX])
{
	size_t len;

	ret_version[0] = '\0';
	while (*text && !isdigit((unsigned char) *text)) {
		text += strcspn(text, " \n");
		text += strspn(text, " \n");
	}
	len = strcspn(text, " \n,(");
	if (len < FACT_MAX)
		snprintf(ret_version, FACT_MAX, "%.*s", (int) len, text);
}

int fact_program_version(const char *program, char ret_version[FACT_MAX])
{
	const char *const argv[] = { program, "--version", NULL };
	CLEANUP(buf_done) struct buf output = BUF_INIT(VERSION_OUTPUT_MAX);
	int r = proc_run(argv, &output, NULL, NULL);

	if (r != 0)
		return r < 0 ? r : -EIO;
	fact_version_in(output.data ? output.data : "", ret_version);
	return ret_version[0] ? 0 : -ENODATA;
}

bool fact_qemu_keeps_old_code(const char *version)
{
	unsigned major, minor;

	return sscanf(version, "%u.%u", &major, &minor) == 2 &&
	       (major < 8 || (major == 8 && minor < 1));
}

static int banner_in(const char *bytes, size_t len, char ret_version[FACT_MAX])
{
	static const char banner[] = "Linux version ";
	const size_t n = sizeof(banner) - 1;
	const char *at = bytes, *end = bytes + len;

	/* The words also stand in messages, with a %s behind them. */
	while ((at = memmem(at, (size_t) (end - at), banner, n)) && end - at > FACT_MAX) {
		at += n;
		if (isdigit((unsigned char) *at)) {
			snprintf(ret_version, FACT_MAX, "%.*s", (int) strcspn(at, " \n"), at);
			return 0;
		}
	}
	return -ENODATA;
}

int fact_kernel_version(const char *path, char ret_version[FACT_MAX])
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENODATA;
	bytes = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	r = banner_in(bytes, (size_t) st.st_size, ret_version);
	(void) munmap(bytes, (size_t) st.st_size);
	return r;
}

void fact_kernel_name(const struct config *config, char ret_name[KERNEL_NAME_MAX])
{
	const char *path = config_get(config, "RESOLUTO_LOCAL_KERNEL");
	const struct machine_row *row;

	ret_name[0] = '\0';
	if (path && path[0] && access(path, F_OK) == 0 &&
	    kernel_row(path, config_get(config, "RESOLUTO_LOCAL_MACHINE"), &row, NULL) == 0)
		kernel_describe(path, row, ret_name);
}

/* Of the line "HEX  NAME"; NULL: there is none. */
static const char *sum_line(const char *text, const char *name)
{
	const size_t len = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *at = text + DIGEST_HEX;

		if (strspn(text, "0123456789abcdef") == DIGEST_HEX && at[0] == ' ' &&
		    strncmp(at + 2, name, len) == 0 && (at[2 + len] == '\n' || !at[2 + len]))
			return text;
	}
	return NULL;
}

static int sum_of_file(const char *path, char ret_digest[DIGEST_SIZE])
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct digest_state state;
	char bytes[64 * 1024];
	ssize_t n;

	if (fd < 0)
		return -errno;
	digest_begin(&state);
	while ((n = read_up_to(fd, bytes, sizeof(bytes))) > 0)
		digest_add(&state, bytes, (size_t) n);
	digest_end(&state, ret_digest);
	return n < 0 ? (int) n : 0;
}

int fact_kernel_sum(const char *path)
{
	CLEANUP(buf_done) struct buf sums = BUF_INIT(KERNEL_BESIDE_MAX);
	CLEANUP(mem_free) char *real = realpath(path, NULL);
	char digest[DIGEST_SIZE];
	const char *line;
	int r;

	if (!real || kernel_read_beside(path, "SHA256SUMS", &sums) < 0 || !sums.data)
		return -ENOENT;
	line = sum_line(sums.data, strrchr(real, '/') + 1);
	if (!line)
		return -ENOENT;
	r = sum_of_file(real, digest);
	if (r < 0)
		return r;
	return memcmp(line, digest_hex(digest), DIGEST_HEX) == 0 ? 0 : -EBADMSG;
}

struct magic {
	const char *name;
	size_t offset, len;
	const char *bytes;
};

static const struct magic kernel_magics[] = {
	{ "ELF", 0, 4, "\177ELF" },
	{ "bzImage", 0x202, 4, "HdrS" },
	{ "arm64 Image", 56, 4, "ARM\x64" },
	{ .name = NULL },
};

static const struct magic initrd_magics[] = {
	{ "gzip", 0, 2, "\x1f\x8b" },
	{ "zstd", 0, 4, "\x28\xb5\x2f\xfd" },
	{ "lz4", 0, 4, "\x02\x21\x4c\x18" },
	{ "xz", 0, 6,
	  "\xfd"
	  "7zXZ\0" },
	{ "cpio", 0, 6, "070701" },
	{ "cpio", 0, 6, "070702" },
	{ .name = NULL },
};

static const char *format_of(const struct magic *magics, const char *bytes, size_t len)
{
	for (; magics->name; magics++) {
		if (len >= magics->offset + magics->len &&
		    memcmp(bytes + magics->offset, magics->bytes, magics->len) == 0)
			return magics->name;
	}
	return NULL;
}

const char *fact_kernel_format(const void *bytes, size_t len)
{
	return format_of(kernel_magics, bytes, len);
}

const char *fact_initrd_format(const void *bytes, size_t len)
{
	return format_of(initrd_magics, bytes, len);
}

uint64_t fact_meminfo(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strncmp(text, name, len) == 0 && text[len] == ':')
			return strtoull(text + len + 1, NULL, 10) * 1024;
	}
	return 0;
}
