/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_result.c - result.json: what parses is in range, and what is written of it parses to the same. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json_read.h"
#include "wire/json_text.h"
#include "wire/keys.h"
#include "wire/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_ranges(const struct node_result *result)
{
	uint32_t number;

	require(result->node_id && result->reason && result->detail && result->guest_boot_id);
	require(strlen(result->reason) <= RESULT_STRING_MAX);
	require(strlen(result->detail) <= RESULT_STRING_MAX);
	require(result->exit_code >= 0 && result->exit_code <= 255);
	require(result->signal >= 0 && result->signal <= 64);
	require(!result->output_archive ||
	        key_classify(result->output_archive, strlen(result->output_archive), &number) ==
	                KEY_IS_OUTBOX);
}

static void check_same(const struct node_result *a, const struct node_result *b)
{
	require(strcmp(a->node_id, b->node_id) == 0 && strcmp(a->reason, b->reason) == 0);
	require(strcmp(a->detail, b->detail) == 0 &&
	        strcmp(a->guest_boot_id, b->guest_boot_id) == 0);
	require(a->success == b->success && a->has_exit_code == b->has_exit_code);
	require(a->exit_code == b->exit_code && a->signal == b->signal && a->ran == b->ran);
	require(a->redactions == b->redactions && a->output_is_complete == b->output_is_complete);
	require(!a->output_archive == !b->output_archive);
	require(!a->output_archive || strcmp(a->output_archive, b->output_archive) == 0);
	require(!a->timings_ms == !b->timings_ms && !a->canary == !b->canary);
}

/* Without white space and in ASCII it is the same document. */
static void check_compact(const char *json, size_t len, const json_t *root)
{
	struct buf out = BUF_INIT(8 * RESULT_JSON_MAX);
	json_t *again;

	require(json_add_compact(&out, json, len) == 0);
	again = json_loadb(out.data, out.len, 0, NULL);
	require(again && json_equal(again, root));
	for (size_t i = 0; i < out.len; i++)
		require(out.data[i] >= ' ' && out.data[i] < 0x7f);
	json_decref(again);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct node_result_doc doc, again;
	struct resoluto_err err = { 0 };
	struct buf out = BUF_INIT(4 * RESULT_JSON_MAX);
	json_t *whole = NULL;
	int r = node_result_parse((const char *) data, size, &doc, &err);

	if (r < 0) {
		require(r == -EBADMSG && err.code == r && err.text[0] && !doc.root);
		return 0;
	}
	check_ranges(&doc.result);
	/* loaded once more: long texts of the document were cut */
	require(json_read((const char *) data, size, 0, &whole) == 0);
	check_compact((const char *) data, size, whole);
	json_decref(whole);
	r = node_result_write(&out, &doc.result);
	require(r == 0 || r == -E2BIG);
	if (r == 0) {
		require(node_result_parse(out.data, out.len, &again, NULL) == 0);
		check_same(&doc.result, &again.result);
		node_result_doc_done(&again);
	}
	buf_done(&out);
	node_result_doc_done(&doc);
	return 0;
}
