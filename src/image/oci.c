/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/bounds.h"
#include "image/oci.h"

#define VERSION_LABEL \
	"resoluto.version" /* of images that carry a runner (seed 002, version guard) */

enum kind_of_blob { BLOB_OTHER, BLOB_CONFIG, BLOB_LAYER, BLOB_ENCRYPTED };

static const struct {
	const char *type;
	enum kind_of_blob kind;
} media_types[] = {
	{ "application/vnd.oci.image.config.v1+json", BLOB_CONFIG },
	{ "application/vnd.docker.container.image.v1+json", BLOB_CONFIG },
	{ "application/vnd.oci.image.layer.v1.tar", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+gzip", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+zstd", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", BLOB_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar", BLOB_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar.gzip", BLOB_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar.zstd", BLOB_LAYER },
	{ "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", BLOB_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+encrypted", BLOB_ENCRYPTED },
	{ "application/vnd.oci.image.layer.v1.tar+gzip+encrypted", BLOB_ENCRYPTED },
	{ "application/vnd.oci.image.layer.v1.tar+zstd+encrypted", BLOB_ENCRYPTED },
};

static void json_release(json_t **json)
{
	json_decref(*json);
}

static enum kind_of_blob kind_of(const char *type)
{
	for (size_t i = 0; i < sizeof(media_types) / sizeof(media_types[0]); i++) {
		if (strcmp(media_types[i].type, type) == 0)
			return media_types[i].kind;
	}
	return BLOB_OTHER;
}

static int load_object(const char *bytes, size_t len, size_t max, const char *what,
                       json_t **ret_json, struct resoluto_err *err)
{
	json_error_t where;
	json_t *json;

	if (len > max)
		return resoluto_fail(err, -EBADMSG, "the image's %s is larger than %zu bytes", what,
		                     max);
	json = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &where);
	if (!json)
		return resoluto_fail(err, -EBADMSG, "the image's %s is no JSON: line %d: %.100s",
		                     what, where.line, where.text);
	if (!json_is_object(json)) {
		json_decref(json);
		return resoluto_fail(err, -EBADMSG, "the image's %s is no JSON object", what);
	}
	*ret_json = json;
	return 0;
}

/* digest is what the descriptor of `what` must be; wanted is the kind its media type must have. */
static int parse_descriptor(const json_t *json, const char *what, enum kind_of_blob wanted,
                            struct oci_descriptor *ret_descriptor, struct resoluto_err *err)
{
	const char *type = json_string_value(json_object_get(json, "mediaType"));
	const char *digest = json_string_value(json_object_get(json, "digest"));
	const json_t *size = json_object_get(json, "size");
	enum kind_of_blob kind = type ? kind_of(type) : BLOB_OTHER;

	if (kind == BLOB_ENCRYPTED)
		return resoluto_fail(err, -EBADMSG, "%s is encrypted; decrypt the image first",
		                     what);
	if (kind != wanted)
		return resoluto_fail(
			err, -EBADMSG,
			"%s has the media type '%.100s': this is no container image we know", what,
			type ? type : "");
	if (!digest || !digest_is_valid(digest))
		return resoluto_fail(err, -EBADMSG, "%s has no sha256 digest", what);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return resoluto_fail(err, -EBADMSG, "%s has no size", what);
	memcpy(ret_descriptor->digest, digest, DIGEST_SIZE);
	ret_descriptor->size = (uint64_t) json_integer_value(size);
	return 0;
}

static int parse_layers(const json_t *layers, struct oci_manifest *manifest,
                        struct resoluto_err *err)
{
	size_t count = json_array_size(layers);
	char what[32];

	if (!json_is_array(layers))
		return resoluto_fail(err, -EBADMSG, "the image's manifest has no list of layers");
	if (count > IMAGE_LAYERS_MAX)
		return resoluto_fail(err, -EBADMSG,
		                     "the image has %zu layers, more than IMAGE_LAYERS_MAX (%d)",
		                     count, IMAGE_LAYERS_MAX);
	manifest->layers = calloc(count + 1, sizeof(*manifest->layers));
	if (!manifest->layers)
		return resoluto_fail(err, -ENOMEM, "parse the image's manifest");
	for (size_t i = 0; i < count; i++) {
		int r;

		snprintf(what, sizeof(what), "layer %zu", i + 1);
		r = parse_descriptor(json_array_get(layers, i), what, BLOB_LAYER,
		                     &manifest->layers[i], err);
		if (r < 0)
			return r;
		manifest->layer_count++;
	}
	return 0;
}

int oci_manifest_parse(const char *bytes, size_t len, struct oci_manifest *ret_manifest,
                       struct resoluto_err *err)
{
	CLEANUP(json_release) json_t *json = NULL;
	CLEANUP(oci_manifest_done) struct oci_manifest manifest = { 0 };
	const json_t *version;
	int r;

	r = load_object(bytes, len, IMAGE_MANIFEST_MAX, "manifest", &json, err);
	if (r < 0)
		return r;
	version = json_object_get(json, "schemaVersion");
	if (json_integer_value(version) == 1)
		return resoluto_fail(err, -EBADMSG,
		                     "the image's manifest is of the old schema 1; push the image "
		                     "again with a current tool");
	if (json_integer_value(version) != 2)
		return resoluto_fail(err, -EBADMSG, "the image's manifest has no schemaVersion 2");
	r = parse_descriptor(json_object_get(json, "config"), "the configuration", BLOB_CONFIG,
	                     &manifest.config, err);
	if (r == 0)
		r = parse_layers(json_object_get(json, "layers"), &manifest, err);
	if (r < 0)
		return r;
	*ret_manifest = manifest;
	manifest = (struct oci_manifest){ 0 };
	return 0;
}

void oci_manifest_done(struct oci_manifest *manifest)
{
	free(manifest->layers);
	*manifest = (struct oci_manifest){ 0 };
}

static bool member_is(const json_t *object, const char *name, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, name));

	return strcmp(text ? text : "", wanted) == 0;
}

static const json_t *manifest_for(const json_t *manifests, const char *arch, const char *variant)
{
	const json_t *manifest;
	size_t i;

	json_array_foreach(manifests, i, manifest)
	{
		const json_t *platform = json_object_get(manifest, "platform");

		if (member_is(platform, "os", "linux") &&
		    member_is(platform, "architecture", arch) &&
		    (!variant || member_is(platform, "variant", variant)))
			return manifest;
	}
	return NULL;
}

int oci_index_pick(const char *bytes, size_t len, const struct platform *platform,
                   char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	CLEANUP(json_release) json_t *json = NULL;
	const json_t *manifests, *manifest;
	const char *digest;
	int r = load_object(bytes, len, IMAGE_MANIFEST_MAX, "index", &json, err);

	if (r < 0)
		return r;
	manifests = json_object_get(json, "manifests");
	manifest = manifest_for(manifests, platform->arch, platform->variant);
	if (!manifest && !platform->variant[0])
		manifest = manifest_for(manifests, platform->arch, NULL);
	if (!manifest)
		return resoluto_fail(err, -ENOENT, "the image has no manifest for linux/%s%s%s",
		                     platform->arch, platform->variant[0] ? "/" : "",
		                     platform->variant);
	digest = json_string_value(json_object_get(manifest, "digest"));
	if (!digest || !digest_is_valid(digest))
		return resoluto_fail(err, -EBADMSG,
		                     "a manifest of the image's index has no sha256 digest");
	memcpy(ret_digest, digest, DIGEST_SIZE);
	return 0;
}

/* A string member, on the heap; *ret_text stays NULL where there is none or it is empty. */
static int take_string(const json_t *object, const char *name, const char *before, char **ret_text,
                       struct resoluto_err *err)
{
	const json_t *json = json_object_get(object, name);
	const char *text = json_string_value(json);

	if (!json || json_is_null(json) || (text && !text[0]))
		return 0;
	if (!text || json_string_length(json) > IMAGE_STRING_MAX)
		return resoluto_fail(err, -EBADMSG,
		                     "the image's configuration: %s is no string of up to %d bytes",
		                     name, IMAGE_STRING_MAX);
	if (asprintf(ret_text, "%s%s", before, text) < 0) {
		*ret_text = NULL;
		return resoluto_fail(err, -ENOMEM, "parse the image's configuration");
	}
	return 0;
}

static int parse_env(const json_t *env, struct strv *ret_env, struct resoluto_err *err)
{
	size_t total = 0;
	const json_t *item;
	size_t i;

	if (!env || json_is_null(env))
		return 0;
	if (!json_is_array(env) || json_array_size(env) > IMAGE_ENV_MAX)
		return resoluto_fail(
			err, -EBADMSG,
			"the image's configuration: Env is no list of up to %d variables",
			IMAGE_ENV_MAX);
	json_array_foreach(env, i, item)
	{
		const char *text = json_string_value(item);

		total += json_string_length(item);
		if (!text || total > IMAGE_ENV_BYTES_MAX)
			return resoluto_fail(err, -EBADMSG,
			                     "the image's configuration: Env has over %d bytes, or "
			                     "what is no string",
			                     IMAGE_ENV_BYTES_MAX);
		/* RESOLUTO_* would pass for the host's word; what has no name is no variable. */
		if (strncmp(text, "RESOLUTO_", 9) == 0 || text[0] == '=' || !strchr(text, '='))
			continue;
		if (strv_add(ret_env, text) < 0)
			return resoluto_fail(err, -ENOMEM, "parse the image's configuration");
	}
	return 0;
}

static int parse_diff_ids(const json_t *ids, struct oci_config *config, struct resoluto_err *err)
{
	size_t count = json_array_size(ids);

	if (!json_is_array(ids) || count > IMAGE_LAYERS_MAX)
		return resoluto_fail(err, -EBADMSG,
		                     "the image's configuration has no list of up to %d diff_ids",
		                     IMAGE_LAYERS_MAX);
	config->diff_ids = calloc(count + 1, sizeof(*config->diff_ids));
	if (!config->diff_ids)
		return resoluto_fail(err, -ENOMEM, "parse the image's configuration");
	for (size_t i = 0; i < count; i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		if (!id || !digest_is_valid(id))
			return resoluto_fail(
				err, -EBADMSG,
				"the image's configuration: diff_id %zu is no sha256 digest",
				i + 1);
		memcpy(config->diff_ids[i], id, DIGEST_SIZE);
		config->diff_id_count++;
	}
	return 0;
}

static void copy_word(const json_t *json, const char *name, char *ret_text, size_t cap)
{
	const char *text = json_string_value(json_object_get(json, name));

	snprintf(ret_text, cap, "%s", text ? text : "");
}

static int parse_run_part(const json_t *run, struct oci_config *config, struct resoluto_err *err)
{
	const char *dir = json_string_value(json_object_get(run, "WorkingDir"));
	int r;

	if (!run || json_is_null(run))
		return 0;
	r = parse_env(json_object_get(run, "Env"), &config->env, err);
	if (r == 0) /* relative to the root, as every runtime reads it */
		r = take_string(run, "WorkingDir", dir && dir[0] != '/' ? "/" : "",
		                &config->workdir, err);
	if (r == 0)
		r = take_string(run, "User", "", &config->user, err);
	if (r == 0)
		r = take_string(json_object_get(run, "Labels"), VERSION_LABEL, "",
		                &config->version_label, err);
	return r;
}

int oci_config_parse(const char *bytes, size_t len, struct oci_config *ret_config,
                     struct resoluto_err *err)
{
	CLEANUP(json_release) json_t *json = NULL;
	CLEANUP(oci_config_done) struct oci_config config = { 0 };
	int r;

	r = load_object(bytes, len, IMAGE_CONFIG_MAX, "configuration", &json, err);
	if (r < 0)
		return r;
	copy_word(json, "architecture", config.arch, sizeof(config.arch));
	copy_word(json, "os", config.os, sizeof(config.os));
	r = parse_diff_ids(json_object_get(json_object_get(json, "rootfs"), "diff_ids"), &config,
	                   err);
	if (r == 0)
		r = parse_run_part(json_object_get(json, "config"), &config, err);
	if (r < 0)
		return r;
	*ret_config = config;
	config = (struct oci_config){ 0 };
	return 0;
}

void oci_config_done(struct oci_config *config)
{
	free(config->diff_ids);
	strv_done(&config->env);
	free(config->workdir);
	free(config->user);
	free(config->version_label);
	*config = (struct oci_config){ 0 };
}
