/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record.c - run.json, which a shim that was taken over may have written: whatever it says, each text is there, each label
 * is one, and no number is a process or a time that cannot be.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/launch_spec.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static size_t text_size(const char *text)
{
	require(text != NULL);
	return strlen(text);
}

static void check(const struct run_record *record, size_t size)
{
	size_t bytes = text_size(record->id) + text_size(record->image) +
	               text_size(record->boot_id) + text_size(record->accel) +
	               text_size(record->kernel) + text_size(record->objects);

	require(record->caller_pid >= 0 && record->shim_pid >= 0);
	require(is_time(record->created));
	require(record->labels != NULL);
	for (size_t i = 0; record->labels[i]; i++)
		bytes += text_size(record->labels[i]) + 1;
	require(bytes <= size); /* nothing in JSON is shorter than what it stands for */
	require(runtime_labels_match(record->labels, record->labels));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run_record_doc doc = { .root = NULL };
	struct resoluto_err err = { 0 };
	int r;

	if (size > RUN_RECORD_MAX)
		return 0;
	r = run_record_parse((const char *) data, size, &doc, &err);
	if (r == 0)
		check(&doc.record, size);
	else
		require(r == -EBADMSG && err.code == r && err.text[0] && !doc.root && !doc.words);
	run_record_doc_done(&doc);
	return 0;
}
