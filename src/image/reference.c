/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "image/digest.h"
#include "image/reference.h"

enum {
	TAG_MAX = 128, /* bytes; the distribution specification */
};

struct transport {
	const char *prefix;
	enum reference_kind kind;
	bool has_inner; /* PATH:REF */
};

/* Longest prefix first where one begins like another. */
static const struct transport transports[] = {
	{ "oci-archive:", REFERENCE_OCI_ARCHIVE, true },
	{ "oci:", REFERENCE_OCI, true },
	{ "docker-archive:", REFERENCE_DOCKER_ARCHIVE, true },
	{ "dir:", REFERENCE_DIR, false },
	{ "rootfs:", REFERENCE_ROOTFS, false },
	{ "tar:", REFERENCE_TAR, false },
	{ "/", REFERENCE_PATH, false },
};

/* What people write that is no reference here, and what to write instead. */
static const struct {
	const char *prefix, *advice;
} mistakes[] = {
	{ "http://", "leave out http://; a registry on localhost is spoken to without TLS" },
	{ "https://", "leave out https://" },
	{ "docker-daemon:", "save it first: docker save NAME -o FILE, then docker-archive:FILE" },
	{ "containers-storage:",
	  "save it first: podman save NAME -o FILE, then docker-archive:FILE" },
	{ "./", "write rootfs:DIR, tar:FILE or an absolute path" },
	{ "../", "write rootfs:DIR, tar:FILE or an absolute path" },
};

static int refuse(struct resoluto_err *err, const char *text, const char *why)
{
	return resoluto_fail(err, -EINVAL, "'%.200s' is no image reference: %s", text, why);
}

static int parse_path(const struct transport *transport, const char *text,
                      struct reference *ret_reference, struct resoluto_err *err)
{
	const char *path = transport->kind == REFERENCE_PATH ? text
	                                                     : text + strlen(transport->prefix);
	size_t n = transport->has_inner ? strcspn(path, ":") : strlen(path);

	if (n == 0)
		return refuse(err, text, "there is no path behind the ':'");
	if (n >= sizeof(ret_reference->path))
		return refuse(err, text, "the path is too long");
	if (path[n] == ':' && strlen(path + n + 1) > REFERENCE_NAME_MAX)
		return refuse(err, text, "the name behind the path is too long");
	ret_reference->kind = transport->kind;
	memcpy(ret_reference->path, path, n);
	ret_reference->path[n] = '\0';
	snprintf(ret_reference->name, sizeof(ret_reference->name), "%s",
	         path[n] == ':' ? path + n + 1 : "");
	return 0;
}

static size_t host_len(const char *text)
{
	size_t n = strcspn(text, "/");

	if (!text[n])
		return 0;
	if (memchr(text, '.', n) || memchr(text, ':', n) || text[0] == '[')
		return n;
	return n == 9 && memcmp(text, "localhost", 9) == 0 ? n : 0;
}

static bool host_is_valid(const char *host, size_t len)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	size_t n;

	if (host[0] == '[') {
		n = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
		if (n >= len || host[n] != ']')
			return false;
		n++;
	} else {
		n = strspn(host, plain);
	}
	if (n < len && host[n] == ':') {
		size_t digits = strspn(host + n + 1, "0123456789");

		return digits >= 1 && digits <= 5 && n + 1 + digits == len;
	}
	return n == len && n > 0;
}

/* Lower-case letters and digits, parted by single '/', '.', up to two '_' or any '-'; len bytes. */
static bool repository_is_valid(const char *name, size_t len)
{
	size_t i = 0;

	for (;;) {
		size_t start = i, marks;

		while (i < len && strchr("abcdefghijklmnopqrstuvwxyz0123456789", name[i]))
			i++;
		if (i == start)
			return false;
		if (i == len)
			return true;
		marks = i;
		while (i < len && name[i] == name[marks] && strchr("/._-", name[i]))
			i++;
		if (i == marks || (name[marks] == '_' && i - marks > 2) ||
		    (strchr("/.", name[marks]) && i - marks > 1))
			return false;
	}
}

static bool tag_is_valid(const char *tag, size_t len)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	if (len == 0 || len > TAG_MAX || !strchr(word, tag[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!strchr(word, tag[i]) && tag[i] != '.' && tag[i] != '-')
			return false;
	}
	return true;
}

/* repository[:tag][@digest] behind the host. */
static int parse_repository(const char *text, const char *repository,
                            struct reference *ret_reference, struct resoluto_err *err)
{
	const char *at = strchr(repository, '@');
	size_t whole = at ? (size_t) (at - repository) : strlen(repository);
	const char *colon = memchr(repository, ':', whole);
	size_t len = colon ? (size_t) (colon - repository) : whole;
	int host = (int) (repository - text), n;

	if (at && !digest_is_valid(at + 1))
		return refuse(err, text, "behind '@' stands sha256: and 64 hex digits");
	if (!repository_is_valid(repository, len))
		return refuse(err, text,
		              "a name has lower-case letters, digits and single '.', '_', '-' or "
		              "'/' between them");
	if (colon && !tag_is_valid(colon + 1, whole - len - 1))
		return refuse(err, text, "a tag has up to 128 letters, digits, '_', '.' and '-'");
	n = snprintf(ret_reference->name, sizeof(ret_reference->name), "%.*s%.*s%s", host, text,
	             (int) (at ? len : whole), repository,
	             at      ? at
	             : colon ? ""
	                     : ":latest");
	if (n < 0 || (size_t) n >= sizeof(ret_reference->name))
		return refuse(err, text, "it is too long");
	ret_reference->kind = host > 0 ? REFERENCE_REGISTRY : REFERENCE_NAME;
	ret_reference->path[0] = '\0';
	return 0;
}

static int parse_name(const char *text, struct reference *ret_reference, struct resoluto_err *err)
{
	size_t host = host_len(text);

	if (digest_is_valid(text)) {
		ret_reference->kind = REFERENCE_DIGEST;
		ret_reference->path[0] = '\0';
		snprintf(ret_reference->name, sizeof(ret_reference->name), "%s", text);
		return 0;
	}
	if (host > 0 && !host_is_valid(text, host))
		return refuse(err, text, "what stands before the first '/' is no host[:port]");
	return parse_repository(text, host > 0 ? text + host + 1 : text, ret_reference, err);
}

int reference_parse(const char *text, struct reference *ret_reference, struct resoluto_err *err)
{
	struct reference reference;
	int r = 1;

	if (!text || !text[0])
		return resoluto_fail(err, -EINVAL, "the image reference is empty");
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		if (strncmp(text, mistakes[i].prefix, strlen(mistakes[i].prefix)) == 0)
			return refuse(err, text, mistakes[i].advice);
	}
	if (strncmp(text, "docker://", 9) == 0)
		text += 9; /* skopeo's way of writing it */
	for (size_t i = 0; r > 0 && i < sizeof(transports) / sizeof(transports[0]); i++) {
		if (strncmp(text, transports[i].prefix, strlen(transports[i].prefix)) == 0)
			r = parse_path(&transports[i], text, &reference, err);
	}
	if (r > 0)
		r = parse_name(text, &reference, err);
	if (r < 0)
		return r;
	*ret_reference = reference;
	return 0;
}

bool reference_is_local(enum reference_kind kind)
{
	return kind >= REFERENCE_OCI;
}

const char *reference_prefix(enum reference_kind kind)
{
	switch (kind) {
	case REFERENCE_OCI:
		return "oci";
	case REFERENCE_OCI_ARCHIVE:
		return "oci-archive";
	case REFERENCE_DOCKER_ARCHIVE:
		return "docker-archive";
	case REFERENCE_DIR:
		return "dir";
	case REFERENCE_ROOTFS:
		return "rootfs";
	case REFERENCE_TAR:
		return "tar";
	case REFERENCE_NAME:
	case REFERENCE_REGISTRY:
	case REFERENCE_DIGEST:
	case REFERENCE_PATH:
		break;
	}
	return "";
}

bool reference_is_loopback(const char *name)
{
	static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i]);

		if (strncmp(name, hosts[i], n) == 0 && (name[n] == ':' || name[n] == '/'))
			return true;
	}
	return false;
}
