/* SPDX-License-Identifier: Apache-2.0 */
/* oci.c - manifests and configurations, well-formed and not. */
#include <errno.h>

#include "check.h"
#include "image/bounds.h"
#include "image/oci.h"

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"
#define CONFIG_OF(type) "\"config\":{\"mediaType\":\"" type "\",\"digest\":\"" D1 "\",\"size\":10}"
#define OCI_CONFIG CONFIG_OF("application/vnd.oci.image.config.v1+json")
#define LAYER_OF(type) "{\"mediaType\":\"" type "\",\"digest\":\"" D2 "\",\"size\":20}"
#define OCI_LAYER LAYER_OF("application/vnd.oci.image.layer.v1.tar+gzip")

static int manifest(const char *text, struct resoluto_err *err)
{
	struct oci_manifest manifest = { 0 };
	int r = oci_manifest_parse(text, strlen(text), &manifest, err);

	oci_manifest_done(&manifest);
	return r;
}

static int config(const char *text, struct resoluto_err *err)
{
	struct oci_config config = { 0 };
	int r = oci_config_parse(text, strlen(text), &config, err);

	oci_config_done(&config);
	return r;
}

static void reads_a_manifest(void)
{
	const char *text = "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[" OCI_LAYER
			   "," OCI_LAYER "]}";
	struct oci_manifest got = { 0 };

	CHECK(oci_manifest_parse(text, strlen(text), &got, NULL) == 0);
	CHECK_STR(got.config.digest, D1);
	CHECK(got.layer_count == 2 && got.layers[1].size == 20);
	CHECK_STR(got.layers[1].digest, D2);
	oci_manifest_done(&got);
}

static void reads_dockers_manifest(void)
{
	CHECK(manifest("{\"schemaVersion\":2," CONFIG_OF(
			       "application/vnd.docker.container.image.v1+json") ",\"layers\":"
	                                                                         "[" LAYER_OF(
											 "appl"
											 "icat"
											 "ion/"
											 "vnd."
											 "dock"
											 "er."
											 "imag"
											 "e."
											 "root"
											 "fs."
											 "diff"
											 ".tar"
											 ".gzi"
											 "p") "]}",
	               NULL) == 0);
}

#define ENTRY(arch, variant, digest) \
	"{\"digest\":\"" digest "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"" arch \
	"\",\"variant\":\"" variant "\"}}"

static int pick(const char *text, const char *arch, const char *variant, char digest[DIGEST_SIZE])
{
	struct platform platform = { 0 };

	snprintf(platform.arch, sizeof(platform.arch), "%s", arch);
	snprintf(platform.variant, sizeof(platform.variant), "%s", variant);
	return oci_index_pick(text, strlen(text), &platform, digest, NULL);
}

static void picks_the_platforms_manifest_of_an_index(void)
{
	static const char text[] = "{\"manifests\":[1,{\"digest\":\"" D1 "\"}," ENTRY(
		"arm", "v6", D1) "," ENTRY("arm", "v7", D2) "," ENTRY("amd64", "", "../x") "]}";
	char digest[DIGEST_SIZE] = "";

	CHECK(pick(text, "arm", "", digest) == 0);
	CHECK_STR(digest, D1);
	CHECK(pick(text, "arm", "v7", digest) == 0);
	CHECK_STR(digest, D2);
	CHECK(pick(text, "arm", "v8", digest) == -ENOENT);
	CHECK(pick(text, "amd64", "", digest) == -EBADMSG);
	CHECK(pick("{\"manifests\":[" ENTRY("amd64", "v3", D1) "," ENTRY("amd64", "", D2) "]}",
	           "amd64", "", digest) == 0);
	CHECK(pick("{\"layers\":[]}", "arm", "", digest) == -ENOENT);
	CHECK(pick("{", "arm", "", digest) == -EBADMSG);
	CHECK_STR(digest, D2);
}

static void refuses_other_manifests(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "no JSON" },
		{ "[]", "no JSON object" },
		{ "{\"a\":1,\"a\":2}", "no JSON" },
		{ "{\"schemaVersion\":1}", "old schema 1" },
		{ "{\"schemaVersion\":3}", "schemaVersion" },
		{ "{\"schemaVersion\":2}", "the configuration" },
		{ "{\"schemaVersion\":2," OCI_CONFIG "}", "no list of layers" },
		{ "{\"schemaVersion\":2," CONFIG_OF(
			  "application/vnd.cncf.helm.config.v1+json") ",\"layers\":[]}",
		  "helm" },
		{ "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[1]}", "layer 1" },
		{ "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[" LAYER_OF(
			  "application/vnd.oci.image.layer.v1.tar+gzip+encrypted") "]}",
		  "encrypted" },
		{ "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[{\"mediaType\":"
		  "\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"../../x\",\"size\":1}]}",
		  "no sha256 digest" },
		{ "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[{\"mediaType\":"
		  "\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"" D2 "\",\"size\":-1}]}",
		  "no size" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct resoluto_err err = { 0 };

		printf("# %s\n", rows[i].text);
		CHECK(manifest(rows[i].text, &err) == -EBADMSG);
		CHECK(strstr(err.text, rows[i].says));
	}
}

static void bounds_the_layers(void)
{
	struct buf text = BUF_INIT(1024 * 1024);
	struct resoluto_err err = { 0 };

	buf_add_str(&text, "{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[");
	for (int i = 0; i <= IMAGE_LAYERS_MAX; i++)
		buf_addf(&text, "%s%s", i ? "," : "", OCI_LAYER);
	buf_add_str(&text, "]}");
	CHECK(manifest(text.data, &err) == -EBADMSG);
	CHECK(strstr(err.text, "IMAGE_LAYERS_MAX"));
	buf_done(&text);
}

static void reads_a_configuration(void)
{
	const char *text =
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[\"" D1
		"\"]},"
		"\"config\":{\"Env\":[\"A=1\",\"RESOLUTO_STORE_KIND=s3\",\"B\",\"=C\",\"D=\"],"
		"\"WorkingDir\":\"app\",\"User\":\"me:1\",\"Entrypoint\":[\"x\"],"
		"\"Labels\":{\"resoluto.version\":\"0.1.2\"}}}";
	struct oci_config got = { 0 };

	CHECK(oci_config_parse(text, strlen(text), &got, NULL) == 0);
	CHECK_STR(got.arch, "amd64");
	CHECK(got.env.count == 2);
	CHECK_STR(got.env.items[0], "A=1");
	CHECK_STR(got.env.items[1], "D=");
	CHECK_STR(got.workdir, "/app");
	CHECK_STR(got.user, "me:1");
	CHECK_STR(got.version_label, "0.1.2");
	CHECK(got.diff_id_count == 1);
	oci_config_done(&got);
}

static void takes_a_configuration_that_says_nothing(void)
{
	const char *text = "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":null,\"WorkingDir\":"
			   "\"\",\"User\":null}}";
	struct oci_config got = { 0 };

	CHECK(oci_config_parse(text, strlen(text), &got, NULL) == 0);
	CHECK(got.env.count == 0 && !got.workdir && !got.user && !got.version_label);
	oci_config_done(&got);
	CHECK(config("{\"rootfs\":{\"diff_ids\":[]}}", NULL) == 0);
	CHECK(config("{\"rootfs\":{\"diff_ids\":[]},\"config\":null}", NULL) == 0);
}

static void refuses_other_configurations(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "{}", "diff_ids" },
		{ "{\"rootfs\":{\"diff_ids\":[\"x\"]}}", "diff_id 1" },
		{ "{\"rootfs\":{\"diff_ids\":[1]}}", "diff_id 1" },
		{ "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":{}}}", "Env" },
		{ "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":[1]}}", "Env" },
		{ "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"User\":5}}", "User" },
		{ "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"WorkingDir\":[]}}", "WorkingDir" },
		{ "{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":[\"A=\\u0000\"]}}",
		  "no JSON" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct resoluto_err err = { 0 };

		printf("# %s\n", rows[i].text);
		CHECK(config(rows[i].text, &err) == -EBADMSG);
		CHECK(strstr(err.text, rows[i].says));
	}
}

static void names_bytes_by_digest(void)
{
	char digest[DIGEST_SIZE];

	digest_of("abc", 3, digest);
	CHECK_STR(digest,
	          "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK(digest_is_valid(digest));
	digest[20] = 'A';
	CHECK(!digest_is_valid(digest));
	CHECK(!digest_is_valid("sha256:"));
	CHECK(!digest_is_valid(
		"sha512:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

int main(void)
{
	RUN(reads_a_manifest);
	RUN(reads_dockers_manifest);
	RUN(picks_the_platforms_manifest_of_an_index);
	RUN(refuses_other_manifests);
	RUN(bounds_the_layers);
	RUN(reads_a_configuration);
	RUN(takes_a_configuration_that_says_nothing);
	RUN(refuses_other_configurations);
	RUN(names_bytes_by_digest);
	return check_done();
}
