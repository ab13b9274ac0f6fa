/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - what people write as an image, and what it is taken for. */
#include <errno.h>

#include "check.h"
#include "image/platform.h"
#include "image/reference.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void takes_what_is_a_reference(void)
{
	static const struct {
		const char *text;
		enum reference_kind kind;
		const char *name, *path;
	} rows[] = {
		{ "python", REFERENCE_NAME, "python:latest", "" },
		{ "python:3.12-slim", REFERENCE_NAME, "python:3.12-slim", "" },
		{ "bitnami/nginx:1", REFERENCE_NAME, "bitnami/nginx:1", "" },
		{ "a__b-c/d.e---f", REFERENCE_NAME, "a__b-c/d.e---f:latest", "" },
		{ "localhost/x", REFERENCE_REGISTRY, "localhost/x:latest", "" },
		{ "localhost:5000/a/b:1", REFERENCE_REGISTRY, "localhost:5000/a/b:1", "" },
		{ "docker.io/library/debian:12", REFERENCE_REGISTRY, "docker.io/library/debian:12",
		  "" },
		{ "docker://quay.io/a/b", REFERENCE_REGISTRY, "quay.io/a/b:latest", "" },
		{ "[::1]:5000/x:1", REFERENCE_REGISTRY, "[::1]:5000/x:1", "" },
		{ "Registry.Example:443/x:1", REFERENCE_REGISTRY, "Registry.Example:443/x:1", "" },
		{ "quay.io/a@sha256:" HEX64, REFERENCE_REGISTRY, "quay.io/a@sha256:" HEX64, "" },
		{ "quay.io/a:1@sha256:" HEX64, REFERENCE_REGISTRY, "quay.io/a@sha256:" HEX64, "" },
		{ "a@sha256:" HEX64, REFERENCE_NAME, "a@sha256:" HEX64, "" },
		{ "sha256:" HEX64, REFERENCE_DIGEST, "sha256:" HEX64, "" },
		{ "oci:dir", REFERENCE_OCI, "", "dir" },
		{ "oci:/a/b:tag", REFERENCE_OCI, "tag", "/a/b" },
		{ "oci-archive:x.tar:t", REFERENCE_OCI_ARCHIVE, "t", "x.tar" },
		{ "docker-archive:/x.tar:a/b:1", REFERENCE_DOCKER_ARCHIVE, "a/b:1", "/x.tar" },
		{ "dir:/x:y", REFERENCE_DIR, "", "/x:y" },
		{ "rootfs:.", REFERENCE_ROOTFS, "", "." },
		{ "tar:/x:y.tar", REFERENCE_TAR, "", "/x:y.tar" },
		{ "/some/where", REFERENCE_PATH, "", "/some/where" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reference reference;
		struct resoluto_err err = { 0 };

		if (reference_parse(rows[i].text, &reference, &err) < 0)
			printf("# %s: %s\n", rows[i].text, err.text);
		CHECK(err.code == 0);
		CHECK_STR(reference.name, rows[i].name);
		CHECK_STR(reference.path, rows[i].path);
		CHECK(reference.kind == rows[i].kind);
	}
}

static void refuses_the_rest_with_advice(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "empty" },
		{ "Python", "lower-case" },
		{ "a//b", "lower-case" },
		{ "a..b", "lower-case" },
		{ "a___b", "lower-case" },
		{ "-a", "lower-case" },
		{ "a-", "lower-case" },
		{ "a b", "lower-case" },
		{ "quay.io/", "lower-case" },
		{ "a:", "a tag has" },
		{ "a:.x", "a tag has" },
		{ "a:b:c", "a tag has" },
		{ "a@sha256:12", "64 hex digits" },
		{ "a@md5:0", "64 hex digits" },
		{ "a@sha256:" HEX64 "0", "64 hex digits" },
		{ "host:port/x", "no host" },
		{ "host:123456/x", "no host" },
		{ "[::1/x", "no host" },
		{ "https://quay.io/x", "leave out https://" },
		{ "docker-daemon:x:1", "docker save" },
		{ "./rootfs", "rootfs:DIR" },
		{ "oci:", "no path" },
		{ "tar:", "no path" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reference reference;
		struct resoluto_err err = { 0 };

		printf("# %s\n", rows[i].text);
		CHECK(reference_parse(rows[i].text, &reference, &err) == -EINVAL);
		CHECK(strstr(err.text, rows[i].says));
	}
}

static void bounds_lengths(void)
{
	char *text = malloc(20000);
	struct reference reference;

	memset(text, 'a', 20000);
	text[19999] = '\0';
	CHECK(reference_parse(text, &reference, NULL) == -EINVAL);
	memcpy(text, "tar:/", 5);
	CHECK(reference_parse(text, &reference, NULL) == -EINVAL);
	text[REFERENCE_NAME_MAX - 7] = '\0';
	memcpy(text, "aaaaa", 5);
	CHECK(reference_parse(text, &reference, NULL) == 0);
	free(text);
}

static void knows_loopback_registries(void)
{
	CHECK(reference_is_loopback("localhost:5000/x:1"));
	CHECK(reference_is_loopback("localhost/x:1"));
	CHECK(reference_is_loopback("127.0.0.1:5000/x:1"));
	CHECK(reference_is_loopback("[::1]:5000/x:1"));
	CHECK(!reference_is_loopback("localhost.example/x:1"));
	CHECK(!reference_is_loopback("127.0.0.1.example/x:1"));
	CHECK(!reference_is_loopback("10.0.0.1:5000/x"));
}

static void says_platforms_in_the_words_of_oci(void)
{
	struct platform platform;

	CHECK(platform_parse(NULL, "x86_64", &platform, NULL) == 0);
	CHECK_STR(platform.arch, "amd64");
	CHECK(platform_parse("linux/arm/v7", "x86_64", &platform, NULL) == 0);
	CHECK_STR(platform.arch, "arm");
	CHECK_STR(platform.variant, "v7");
	CHECK(platform_parse(NULL, "vax", &platform, NULL) == -EINVAL);
	CHECK(platform_parse("windows/amd64", "x86_64", &platform, NULL) == -EINVAL);
	CHECK(platform_parse("linux/", "x86_64", &platform, NULL) == -EINVAL);
	CHECK(platform_parse("linux/AMD64", "x86_64", &platform, NULL) == -EINVAL);
	CHECK(platform_parse("linux/amd64/v 1", "x86_64", &platform, NULL) == -EINVAL);
	CHECK(platform_parse("linux/amd64 --x", "x86_64", &platform, NULL) == -EINVAL);
}

int main(void)
{
	RUN(takes_what_is_a_reference);
	RUN(refuses_the_rest_with_advice);
	RUN(bounds_lengths);
	RUN(knows_loopback_registries);
	RUN(says_platforms_in_the_words_of_oci);
	return check_done();
}
