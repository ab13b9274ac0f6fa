/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sandbox/evidence.h"
#include "wire/json_text.h"

enum {
	CANARY_PROBES_MAX = 64,
	CONFINEMENT_MAX = 64,
	BOOT_ID_MIN = 8, /* hex digits and dashes; Linux writes 36 */
};

static bool is_boot_id(const char *id)
{
	size_t n = id ? strlen(id) : 0;

	return n >= BOOT_ID_MIN && n < EVIDENCE_BOOT_ID_SIZE &&
	       strspn(id, "0123456789abcdef-") == n;
}

int evidence_host_boot_id(char ret_id[EVIDENCE_BOOT_ID_SIZE], struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	int r = read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", EVIDENCE_BOOT_ID_SIZE - 1,
	                     &text, err);

	if (r < 0)
		return resoluto_fail_in(err, r, "read the boot id of the host");
	if (text.len > 0)
		text.data[strcspn(text.data, "\n")] = '\0';
	if (!is_boot_id(text.data))
		return resoluto_fail(err, -EIO, "the boot id of the host is not readable");
	memcpy(ret_id, text.data, strlen(text.data) + 1);
	return 0;
}

static json_t *load_object(const char *text)
{
	json_t *object = NULL;

	if (text && json_is_tame(text, strlen(text)))
		object = json_loads(text, 0, NULL);
	if (json_is_object(object))
		return object;
	json_decref(object);
	return json_object();
}

static json_t *string_or_null(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && text[0] ? json_string(text) : json_null();
}

static json_t *string_or(const json_t *object, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, key));

	return json_string(text && text[0] ? text : fallback);
}

static json_t *confinement_of(const json_t *object)
{
	json_t *from = json_object_get(object, "confinement"), *to = json_array();

	for (size_t i = 0; i < json_array_size(from) && i < CONFINEMENT_MAX; i++) {
		json_t *word = json_array_get(from, i);

		if (json_is_string(word))
			(void) json_array_append(to, word);
	}
	return to;
}

/* Only in so many words: what does not say it has to prove that it is not so. */
static bool shares_kernel(const struct evidence *evidence, const json_t *runtime)
{
	return evidence->may_share && json_is_false(json_object_get(runtime, "own_kernel"));
}

/* The runtime's word first: it comes from outside the guest's result. */
static enum reason judge_ids(const struct evidence *evidence, const json_t *runtime,
                             const char **ret_id)
{
	const char *by_runtime = json_string_value(json_object_get(runtime, "guest_boot_id"));
	const char *by_guest = evidence->node ? evidence->node->guest_boot_id : NULL;
	const char *id = by_runtime && by_runtime[0] ? by_runtime : by_guest;

	*ret_id = is_boot_id(id) ? id : "";
	if (shares_kernel(evidence, runtime))
		return REASON_NONE;
	if (!is_boot_id(id))
		return evidence->ran ? REASON_OWN_KERNEL_UNPROVEN : REASON_NONE;
	if (strcmp(id, evidence->host_boot_id) == 0)
		return REASON_SHARED_KERNEL;
	if (by_guest && by_guest[0] && strcmp(id, by_guest) != 0)
		return strcmp(by_guest, evidence->host_boot_id) == 0 ? REASON_SHARED_KERNEL
		                                                     : REASON_OWN_KERNEL_UNPROVEN;
	return REASON_NONE;
}

static json_t *own_kernel(bool is_shared, const char *guest_boot_id, enum reason reason)
{
	if (is_shared)
		return json_false();
	if (!guest_boot_id[0])
		return json_null();
	return json_boolean(reason == REASON_NONE);
}

int evidence_judge(const struct evidence *evidence, char **ret_json, enum reason *ret_reason)
{
	json_t *runtime = load_object(evidence->runtime_json), *isolation;
	const char *id = "", *verdict;

	*ret_reason = judge_ids(evidence, runtime, &id);
	verdict = json_string_value(json_object_get(runtime, "verdict"));
	/* Unless the runtime knows better, the program could have written the result. */
	if (!verdict || strcmp(verdict, "protected") != 0)
		verdict = "same-uid";
	isolation = json_pack(
		"{s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "runtime",
		string_or(runtime, "runtime", evidence->runtime_name), "accel",
		string_or_null(runtime, "accel"), "kernel", string_or_null(runtime, "kernel"),
		"own_kernel", own_kernel(shares_kernel(evidence, runtime), id, *ret_reason),
		"guest_boot_id", id, "verdict", verdict, "confinement", confinement_of(runtime));
	*ret_json = isolation ? json_dumps(isolation, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(isolation);
	json_decref(runtime);
	return *ret_json ? 0 : -ENOMEM;
}

bool evidence_has_guest(const char *runtime_json)
{
	json_t *runtime = load_object(runtime_json);
	bool has_guest = is_boot_id(json_string_value(json_object_get(runtime, "guest_boot_id")));

	json_decref(runtime);
	return has_guest;
}

static json_t *probe_of(const json_t *from)
{
	const json_t *ok = json_object_get(from, "ok");

	if (!json_is_string(json_object_get(from, "probe")) || !json_is_boolean(ok))
		return NULL;
	return json_pack("{s:o, s:b, s:o}", "probe", string_or(from, "probe", ""), "ok",
	                 json_is_true(ok), "detail", string_or(from, "detail", ""));
}

char *evidence_canary(const json_t *canary)
{
	json_t *probes = json_array();
	char *text;

	for (size_t i = 0; i < json_array_size(canary) && i < CANARY_PROBES_MAX; i++) {
		json_t *probe = probe_of(json_array_get(canary, i));

		if (probe)
			(void) json_array_append_new(probes, probe);
	}
	text = json_dumps(probes, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(probes);
	return text;
}
