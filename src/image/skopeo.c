/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "image/bounds.h"
#include "image/oci.h"
#include "image/program.h"
#include "image/skopeo.h"

/* How skopeo begins whatever goes wrong with a registry's name. */
#define NAME_LOOKUP "dial tcp: lookup "
#define UNKNOWN_AUTHORITY "certificate signed by unknown authority"
/* A tar, but of something else: a layout's own index is looked for before skopeo is asked. */
#define NO_DOCKER_ARCHIVE "manifest.json: file does not exist"
#define NO_OCI_ARCHIVE "/index.json: no such file or directory"

/* First match wins: more telling words stand above those that appear beside them. */
static const struct {
	const char *words;
	int code;
} failures[] = {
	{ "no space left on device", -ENOSPC },
	{ NO_DOCKER_ARCHIVE, -EINVAL },
	{ NO_OCI_ARCHIVE, -EINVAL },
	{ "unauthorized", -EACCES },
	{ "authentication required", -EACCES },
	{ "invalid username/password", -EACCES },
	{ "access to the resource is denied", -EACCES },
	{ "StatusCode: 401", -EACCES },
	{ "StatusCode: 403", -EACCES },
	{ "403 (Forbidden)", -EACCES },
	{ "manifest unknown", -ENOENT },
	{ "name unknown", -ENOENT },
	{ "repository name not known", -ENOENT },
	{ "404 (Not Found)", -ENOENT },
	{ "no image found in manifest list", -ENOENT },
	{ "no image found in image index", -ENOENT },
	{ "no descriptor found", -ENOENT },
	{ "no such file or directory", -ENOENT },
	{ "not found in archive", -ENOENT },
	{ "not found", -ENOENT },
	{ "permission denied", -EACCES },
	{ "igest did not match", -EBADMSG },
	{ "does not match digest", -EBADMSG },
	{ "does not match expected digest", -EBADMSG },
	{ "corrupt", -EBADMSG },
	{ "unexpected EOF", -EBADMSG },
	{ "invalid tar header", -EBADMSG },
	{ "invalid character", -EBADMSG },
	{ "rejected by policy", -EACCES },
	{ NAME_LOOKUP, -EHOSTUNREACH },
	{ "connection refused", -EHOSTUNREACH },
	{ "no such host", -EHOSTUNREACH },
	{ "i/o timeout", -EHOSTUNREACH },
	{ "network is unreachable", -EHOSTUNREACH },
	{ "no route to host", -EHOSTUNREACH },
	{ "server misbehaving", -EHOSTUNREACH },
	{ "x509:", -EHOSTUNREACH },
	{ "server gave HTTP response to HTTPS client", -EHOSTUNREACH },
};

int skopeo_failure(const char *words)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (strcasestr(words, failures[i].words))
			return failures[i].code;
	}
	return -EIO;
}

const char *skopeo_remedy(const char *words)
{
	static const struct {
		const char *words, *remedy;
	} remedies[] = {
		{ NAME_LOOKUP,
		  "; check how the registry's name is written, and this machine's DNS" },
		{ UNKNOWN_AUTHORITY,
		  "; if it is the right registry, name its authority by SSL_CERT_FILE" },
		{ NO_DOCKER_ARCHIVE,
		  "; it is no archive of docker save: write tar:FILE for a plain root "
		  "file system" },
		{ NO_OCI_ARCHIVE,
		  "; it is no archive of an OCI layout: write tar:FILE for a plain root "
		  "file system" },
	};

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		if (strstr(words, remedies[i].words))
			return remedies[i].remedy;
	}
	return "";
}

const char *skopeo_cause(const char *words)
{
	static const char *const steps[] = { "Error parsing image name \"",
		                             "Error retrieving manifest for image: " };
	const char *end = strstr(words, "\": ");

	if (strncmp(words, steps[0], strlen(steps[0])) == 0 && end)
		return end + 3;
	return strncmp(words, steps[1], strlen(steps[1])) == 0 ? words + strlen(steps[1]) : words;
}

bool skopeo_policy_exists(void)
{
	const char *home = getenv("HOME");
	char path[PATH_MAX];

	if (access("/etc/containers/policy.json", F_OK) == 0)
		return true;
	snprintf(path, sizeof(path), "%s/.config/containers/policy.json", home ? home : "");
	return access(path, F_OK) == 0;
}

int skopeo_source_at(const char *source, const char *digest, char *ret_source, size_t size)
{
	static const char transport[] = "docker://";
	const char *name;
	size_t len;

	if (strncmp(source, transport, strlen(transport)) != 0)
		return -EINVAL;
	name = source + strlen(transport);
	len = strcspn(name, "@");
	for (size_t i = len; i-- > 0 && name[i] != '/';) {
		if (name[i] == ':')
			len = i;
	}
	return snprintf(ret_source, size, "%s%.*s@%s", transport, (int) len, name, digest) <
	                       (int) size
	               ? 0
	               : -ENAMETOOLONG;
}

static int add_flags(const struct skopeo *skopeo, enum skopeo_verb verb, struct strv *args)
{
	int r = 0;

	if (skopeo->platform->variant[0])
		r = strv_addf(args, "--override-variant=%s", skopeo->platform->variant);
	if (r == 0 && !skopeo->has_policy)
		r = strv_add(args, "--insecure-policy");
	if (r == 0)
		r = strv_add(args, verb == SKOPEO_COPY ? "copy" : "inspect");
	if (r == 0 && verb == SKOPEO_CONFIG)
		r = strv_add_all(args, (const char *const[]){ "--config", "--raw", NULL });
	if (r == 0 && verb == SKOPEO_MANIFEST)
		r = strv_add(args, "--raw");
	if (r == 0 && skopeo->authfile)
		r = strv_addf(args, "--authfile=%s", skopeo->authfile);
	if (r == 0 && skopeo->is_loopback)
		r = strv_add(args,
		             verb == SKOPEO_COPY ? "--src-tls-verify=false" : "--tls-verify=false");
	return r;
}

int skopeo_args(const struct skopeo *skopeo, enum skopeo_verb verb, const char *target,
                struct strv *ret_args)
{
	struct strv args = { 0 };
	int r;

	r = strv_addf(&args, "skopeo");
	if (r == 0)
		r = strv_addf(&args, "--tmpdir=%s", skopeo->scratch);
	if (r == 0)
		r = strv_add(&args, "--override-os=linux");
	if (r == 0)
		r = strv_addf(&args, "--override-arch=%s", skopeo->platform->arch);
	if (r == 0)
		r = add_flags(skopeo, verb, &args);
	if (r == 0)
		r = strv_addf(&args, "%s", skopeo->source);
	if (r == 0 && target)
		r = strv_addf(&args, "dir:%s", target);
	if (r < 0) {
		strv_done(&args);
		return r;
	}
	*ret_args = args;
	return 0;
}

/* How many bytes a copy has written: the sizes of the files in its scratch directory and beneath. */
static uint64_t bytes_in(int dirfd, unsigned depth)
{
	CLEANUP(dir_close) DIR *dir = NULL;
	struct dirent *entry;
	uint64_t total = 0;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		CLEANUP(fd_close) int sub = -1;
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			total += (uint64_t) st.st_size;
		if (!S_ISDIR(st.st_mode) || depth == 0)
			continue;
		sub = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		total += sub < 0 ? 0 : bytes_in(sub, depth - 1);
	}
	return total;
}

static void tell_copied(const struct skopeo *skopeo, uint64_t total)
{
	CLEANUP(fd_close) int fd = -1;
	uint64_t done;

	if (!caller_looks(skopeo->caller))
		return;
	fd = open(skopeo->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Of configuration and manifest the total knows nothing. */
	done = bytes_in(fd, 2);
	caller_tell(skopeo->caller, "fetch", total && done > total ? total : done, total);
}

static int wait_for(const struct skopeo *skopeo, struct proc *proc, bool tell, uint64_t total,
                    int log, struct resoluto_err *err)
{
	struct program_words words;
	int status = 0, r;

	while ((r = program_wait("skopeo", proc, skopeo->caller, &status, err)) == 0) {
		if (tell)
			tell_copied(skopeo, total);
	}
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return resoluto_fail(err, -EIO, "skopeo was killed by signal %d", WTERMSIG(status));
	words = program_last_words(log);
	return resoluto_fail(err, skopeo_failure(words.text), "%s%s", skopeo_cause(words.text),
	                     skopeo_remedy(words.text));
}

/* Its standard output goes to out, a file. */
static int run(const struct skopeo *skopeo, enum skopeo_verb verb, const char *target, int out,
               uint64_t total, struct resoluto_err *err)
{
	CLEANUP(strv_done) struct strv args = { 0 };
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	CLEANUP(fd_close) int log = memfd_create("skopeo-log", MFD_CLOEXEC);
	int r;

	if (log < 0 || skopeo_args(skopeo, verb, target, &args) < 0)
		return resoluto_fail(err, -ENOMEM, "start skopeo");
	r = program_start("skopeo", (const char *const *) args.items,
	                  (struct proc_fd[]){ { out >= 0 ? out : log, 1 }, { log, 2 } }, 2, &proc,
	                  err);
	if (r < 0)
		return r;
	return wait_for(skopeo, &proc, verb == SKOPEO_COPY, total, log, err);
}

static int run_for_output(const struct skopeo *skopeo, enum skopeo_verb verb, size_t max,
                          struct buf *ret_output, struct resoluto_err *err)
{
	CLEANUP(fd_close) int out = memfd_create("skopeo-out", MFD_CLOEXEC);
	int r;

	if (out < 0)
		return resoluto_fail(err, -errno, "make a file in memory");
	r = run(skopeo, verb, NULL, out, 0, err);
	if (r < 0)
		return r;
	if (lseek(out, 0, SEEK_SET) < 0)
		return resoluto_fail(err, -errno, "seek");
	*ret_output = BUF_INIT(max);
	r = read_rest(out, ret_output);
	return r < 0 ? resoluto_fail(err, -EBADMSG,
	                             "the registry's answer is larger than %zu bytes", max)
	             : 0;
}

int skopeo_config(const struct skopeo *skopeo, struct buf *ret_config, struct resoluto_err *err)
{
	return run_for_output(skopeo, SKOPEO_CONFIG, IMAGE_CONFIG_MAX, ret_config, err);
}

/* The manifest of one image, also where the source is an index of several. */
static int ask_for_manifest(const struct skopeo *skopeo, struct buf *ret_manifest)
{
	char digest[DIGEST_SIZE], source[PATH_MAX];
	struct skopeo one = *skopeo;
	int r = run_for_output(skopeo, SKOPEO_MANIFEST, IMAGE_MANIFEST_MAX, ret_manifest, NULL);

	if (r < 0 || oci_index_pick(ret_manifest->data ? ret_manifest->data : "", ret_manifest->len,
	                            skopeo->platform, digest, NULL) < 0)
		return r;
	r = skopeo_source_at(skopeo->source, digest, source, sizeof(source));
	if (r < 0)
		return r;
	one.source = source;
	buf_done(ret_manifest);
	return run_for_output(&one, SKOPEO_MANIFEST, IMAGE_MANIFEST_MAX, ret_manifest, NULL);
}

/* Only for people who watch: 0 when it cannot be told, as of an index that is no registry's.  (A summary with sizes comes
 * with skopeo 1.10.) */
static uint64_t total_size(const struct skopeo *skopeo)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(0);
	CLEANUP(oci_manifest_done) struct oci_manifest manifest = { 0 };
	uint64_t total = 0;

	if (ask_for_manifest(skopeo, &bytes) < 0 ||
	    oci_manifest_parse(bytes.data ? bytes.data : "", bytes.len, &manifest, NULL) < 0)
		return 0;
	for (size_t i = 0; i < manifest.layer_count; i++) {
		if (manifest.layers[i].size <= IMAGE_BYTES_MAX)
			total += manifest.layers[i].size;
	}
	return total;
}

int skopeo_copy(const struct skopeo *skopeo, const char *target, struct resoluto_err *err)
{
	uint64_t total = caller_looks(skopeo->caller) ? total_size(skopeo) : 0;
	int r;

	caller_tell(skopeo->caller, "fetch", 0, total);
	r = run(skopeo, SKOPEO_COPY, target, -1, total, err);
	if (r == 0)
		caller_tell(skopeo->caller, "fetch", total, total);
	return r;
}
