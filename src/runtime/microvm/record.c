/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/state.h"
#include "wire/json_read.h"

enum { RECORD_SCHEMA = 1 };

static json_t *text_of(const char *text)
{
	return json_text(text ? text : "");
}

static json_t *record_to_json(const struct run_record *record)
{
	CLEANUP(json_done) json_t *labels = json_array();

	for (size_t i = 0; labels && record->labels && record->labels[i]; i++) {
		if (json_array_append_new(labels, json_text(record->labels[i])) < 0)
			return NULL;
	}
	return json_pack("{si ss sO so sf s{si sI} s{si sI} so so so so sb}", "schema",
	                 RECORD_SCHEMA, "id", record->id, "labels", labels, "image",
	                 text_of(record->image), "created", record->created, "caller", "pid",
	                 (int) record->caller_pid, "start", (json_int_t) record->caller_start,
	                 "shim", "pid", (int) record->shim_pid, "start",
	                 (json_int_t) record->shim_start, "boot_id", text_of(record->boot_id),
	                 "accel", text_of(record->accel), "kernel", text_of(record->kernel),
	                 "objects", text_of(record->objects), "keep", record->keep);
}

static int put_record(int dirfd, const json_t *json, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RUN_RECORD_MAX);
	int r = json ? json_write(&text, json) : -ENOMEM;

	if (r < 0)
		return resoluto_fail(err, r, "write run.json");
	return replace_file_at(dirfd, "run.json", text.data, text.len, 0600, err);
}

int run_record_write(int dirfd, const struct run_record *record, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *json = record_to_json(record);

	return put_record(dirfd, json, err);
}

static int parse(const char *json, size_t len, json_t **ret_root, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *root = NULL;

	if (json_read(json, len, 0, &root) == -ENOMEM)
		return resoluto_fail(err, -ENOMEM, "read run.json");
	if (!json_is_object(root))
		return resoluto_fail(err, -EBADMSG, "run.json is no JSON object");
	if (json_integer_value(json_object_get(root, "schema")) != RECORD_SCHEMA)
		return resoluto_fail(err, -EBADMSG, "run.json is not of this version");
	*ret_root = mem_take(&root);
	return 0;
}

static int load(int dirfd, json_t **ret_root, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RUN_RECORD_MAX);
	int r = rundir_read(dirfd, "run.json", true, &text, err);

	return r < 0 ? r : parse(text.data, text.len, ret_root, err);
}

int run_record_keep(int dirfd, const char *id, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *json = NULL;
	int r;

	if (load(dirfd, &json, NULL) < 0)
		json = record_to_json(&(struct run_record){ .id = id });
	if (!json || json_object_set_new(json, "keep", json_true()) < 0)
		return resoluto_fail(err, -ENOMEM, "write run.json");
	r = put_record(dirfd, json, err);
	/* A power cut that forgot it would leave a run that the next command removes. */
	if (r == 0 && fsync(dirfd) < 0)
		r = resoluto_fail(err, -errno, "flush the run directory");
	return r;
}

static const char *get_text(const json_t *root, const char *key)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text ? text : "";
}

static json_int_t get_number(const json_t *root, const char *object, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(root, object), key));
}

/* 0 where no clock can have said that. */
static double get_time(const json_t *root, const char *key)
{
	double time = json_number_value(json_object_get(root, key));

	return is_time(time) ? time : 0;
}

/* 0, which is no process of anybody's, where it cannot be one. */
static pid_t get_pid(const json_t *root, const char *object)
{
	json_int_t pid = get_number(root, object, "pid");

	return pid > 0 && pid <= INT_MAX ? (pid_t) pid : 0;
}

static int take_labels(struct run_record_doc *doc)
{
	const json_t *list = json_object_get(doc->root, "labels");
	size_t count = 0;

	doc->words = calloc(json_array_size(list) + 1, sizeof(*doc->words));
	if (!doc->words)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *label = json_string_value(json_array_get(list, i));

		if (label)
			doc->words[count++] = label;
	}
	doc->record.labels = doc->words;
	return 0;
}

/* Takes root, also when it fails. */
static int take_root(json_t *root, struct run_record_doc *ret_doc, struct resoluto_err *err)
{
	struct run_record_doc doc = { .root = root };
	int r;

	doc.record = (struct run_record){
		.id = get_text(doc.root, "id"),
		.image = get_text(doc.root, "image"),
		.created = get_time(doc.root, "created"),
		.caller_pid = get_pid(doc.root, "caller"),
		.caller_start = (uint64_t) get_number(doc.root, "caller", "start"),
		.shim_pid = get_pid(doc.root, "shim"),
		.shim_start = (uint64_t) get_number(doc.root, "shim", "start"),
		.boot_id = get_text(doc.root, "boot_id"),
		.accel = get_text(doc.root, "accel"),
		.kernel = get_text(doc.root, "kernel"),
		.objects = get_text(doc.root, "objects"),
		.keep = json_is_true(json_object_get(doc.root, "keep")),
	};
	r = take_labels(&doc);
	if (r < 0) {
		run_record_doc_done(&doc);
		return resoluto_fail(err, r, "read run.json");
	}
	*ret_doc = doc;
	return 0;
}

int run_record_parse(const char *json, size_t len, struct run_record_doc *ret_doc,
                     struct resoluto_err *err)
{
	json_t *root = NULL;
	int r = parse(json, len, &root, err);

	return r < 0 ? r : take_root(root, ret_doc, err);
}

int run_record_read(int dirfd, struct run_record_doc *ret_doc, struct resoluto_err *err)
{
	json_t *root = NULL;
	int r = load(dirfd, &root, err);

	return r < 0 ? r : take_root(root, ret_doc, err);
}

void run_record_doc_done(struct run_record_doc *doc)
{
	json_decref(doc->root);
	free(doc->words);
	*doc = (struct run_record_doc){ .root = NULL };
}

int run_record_open_shim(const struct run_record *record)
{
	char path[64], exe[PATH_MAX];
	const char *name;
	uint64_t start;
	ssize_t n;
	int pidfd;

	if (record->shim_pid <= 1)
		return -ESRCH;
	pidfd = (int) syscall(SYS_pidfd_open, record->shim_pid, 0);
	if (pidfd < 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int) record->shim_pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	name = strrchr(exe, '/');
	/* Looked at after the pidfd was taken, so what was seen is what the pidfd names. */
	if (!name || strncmp(name + 1, "resoluto-shim", 13) != 0 ||
	    proc_start_time(record->shim_pid, &start) < 0 || start != record->shim_start) {
		fd_close(&pidfd);
		return -ESRCH;
	}
	return pidfd;
}
