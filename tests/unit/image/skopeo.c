/* SPDX-License-Identifier: Apache-2.0 */
/* skopeo.c - its command lines, and what its words mean. */
#include <errno.h>

#include "base/buf.h"
#include "check.h"
#include "image/program.h"
#include "image/skopeo.h"
#include "image/text.h"

static void check_args(const struct skopeo *skopeo, enum skopeo_verb verb, const char *target,
                       const char *want)
{
	struct strv args = { 0 };
	struct buf line = BUF_INIT(4096);

	CHECK(skopeo_args(skopeo, verb, target, &args) == 0);
	for (size_t i = 0; i < args.count; i++)
		buf_addf(&line, "%s%s", i ? " " : "", args.items[i]);
	CHECK_STR(line.data, want);
	strv_done(&args);
	buf_done(&line);
}

static void command_lines(void)
{
	const struct platform amd64 = { .arch = "amd64" }, arm = { "arm", "v7" };
	struct skopeo skopeo = { .source = "docker://localhost:5000/x:1",
		                 .is_loopback = true,
		                 .has_policy = true,
		                 .platform = &amd64,
		                 .authfile = "/auth",
		                 .scratch = "/s" };

	check_args(&skopeo, SKOPEO_COPY, "/s/image",
	           "skopeo --tmpdir=/s --override-os=linux --override-arch=amd64 copy "
	           "--authfile=/auth "
	           "--src-tls-verify=false docker://localhost:5000/x:1 dir:/s/image");
	check_args(&skopeo, SKOPEO_CONFIG, NULL,
	           "skopeo --tmpdir=/s --override-os=linux --override-arch=amd64 inspect --config "
	           "--raw "
	           "--authfile=/auth --tls-verify=false docker://localhost:5000/x:1");
	skopeo = (struct skopeo){ .source = "docker://quay.io/x:1",
		                  .platform = &arm,
		                  .scratch = "/s" };
	check_args(
		&skopeo, SKOPEO_MANIFEST, NULL,
		"skopeo --tmpdir=/s --override-os=linux --override-arch=arm --override-variant=v7 "
		"--insecure-policy inspect --raw docker://quay.io/x:1");
}

static void one_of_an_index_is_named_by_its_digest(void)
{
	static const struct {
		const char *source, *at;
	} rows[] = {
		{ "docker://localhost:5000/a/x:1", "docker://localhost:5000/a/x@sha256:0" },
		{ "docker://localhost:5000/x", "docker://localhost:5000/x@sha256:0" },
		{ "docker://quay.io/x@sha256:1", "docker://quay.io/x@sha256:0" },
		{ "docker://quay.io/x:1@sha256:1", "docker://quay.io/x@sha256:0" },
	};
	char at[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(skopeo_source_at(rows[i].source, "sha256:0", at, sizeof(at)) == 0);
		CHECK_STR(at, rows[i].at);
	}
	CHECK(skopeo_source_at("oci:/x:1", "sha256:0", at, sizeof(at)) == -EINVAL);
	CHECK(skopeo_source_at(rows[0].source, "sha256:0", at, 8) == -ENAMETOOLONG);
}

/* As skopeo 1.9 and registries say it. */
static void words_have_meanings(void)
{
	static const struct {
		const char *words;
		int code;
		bool has_remedy;
	} rows[] = {
		{ "initializing source docker://localhost:5000/x:1: reading manifest 1 in "
		  "localhost:5000/x: "
		  "manifest unknown: manifest unknown",
		  -ENOENT, false },
		{ "reading manifest 1 in localhost:5000/x: name unknown: repository name not known "
		  "to registry",
		  -ENOENT, false },
		{ "unable to retrieve auth token: invalid username/password: unauthorized", -EACCES,
		  false },
		{ "reading manifest latest in docker.io/library/zzz: errors:\ndenied: requested "
		  "access to the "
		  "resource is denied\nunauthorized: authentication required",
		  -EACCES, false },
		{ "writing blob: write /x: no space left on device", -ENOSPC, false },
		{ "pinging container registry localhost:5000: Get \"http://localhost:5000/v2/\": "
		  "dial tcp "
		  "127.0.0.1:5000: connect: connection refused",
		  -EHOSTUNREACH, false },
		{ "pinging container registry reg.example: Get \"https://reg.example/v2/\": dial "
		  "tcp: lookup reg.example on 127.0.0.53:53: no such host",
		  -EHOSTUNREACH, true },
		{ "pinging container registry reg.example: Get \"https://reg.example/v2/\": dial "
		  "tcp: lookup reg.example on 10.0.0.53:53: dial udp 10.0.0.53:53: connect: "
		  "network "
		  "is unreachable",
		  -EHOSTUNREACH, true },
		{ "pinging container registry reg.example: Get \"https://reg.example/v2/\": x509: "
		  "certificate signed by unknown authority",
		  -EHOSTUNREACH, true },
		{ "Digest did not match, expected sha256:1, got sha256:2", -EBADMSG, false },
		{ "no image found in manifest list for architecture s390x, variant \"\", OS linux",
		  -ENOENT, false },
		{ "Error parsing image name \"docker-archive:/x.tar\": loading tar component "
		  "manifest.json: file does not exist",
		  -EINVAL, true },
		{ "Error parsing image name \"oci-archive:/x.tar\": open /c/oci1/index.json: no "
		  "such file or directory",
		  -EINVAL, true },
		{ "something new", -EIO, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_note(stdout, rows[i].words);
		CHECK(skopeo_failure(rows[i].words) == rows[i].code);
		CHECK((skopeo_remedy(rows[i].words)[0] == ';') == rows[i].has_remedy);
	}
}

static void the_step_and_the_image_are_not_repeated(void)
{
	CHECK_STR(skopeo_cause("Error parsing image name \"oci:/x:a\": open /x: no"),
	          "open /x: no");
	CHECK_STR(skopeo_cause("Error retrieving manifest for image: no"), "no");
	CHECK_STR(skopeo_cause("Error parsing image name \"x"), "Error parsing image name \"x");
	CHECK_STR(skopeo_cause("reading \"a\": no"), "reading \"a\": no");
}

static void last_words_are_one_clean_line(void)
{
	char text[2000];

	CHECK_STR(program_words_of("time=\"2026\" level=info msg=\"x\"\n"
	                           "time=\"2026\" level=fatal msg=\"reading \\\"a\\\": no\"\n")
	                  .text,
	          "reading \"a\": no");
	CHECK_STR(program_words_of("level=fatal msg=\"errors:\\ndenied\\n\"\n").text,
	          "errors: denied ");
	CHECK_STR(program_words_of("plain words\n\n").text, "plain words");
	CHECK_STR(program_words_of("bad \033[31mred\a").text, "bad  [31mred ");
	CHECK_STR(program_words_of("").text, "it said nothing");
	CHECK_STR(program_words_of("\n\n").text, "it said nothing");
	memset(text, 'x', sizeof(text));
	text[1999] = '\0';
	CHECK(strlen(program_words_of(text).text) == PROGRAM_WORDS_MAX - 1);
	CHECK(strlen(text_clean(text).text) == TEXT_CLEAN_MAX + 3);
	CHECK_STR(text_clean("a\tb\xff").text, "a?b?");
}

int main(void)
{
	RUN(command_lines);
	RUN(one_of_an_index_is_named_by_its_digest);
	RUN(words_have_meanings);
	RUN(the_step_and_the_image_are_not_repeated);
	RUN(last_words_are_one_clean_line);
	return check_done();
}
