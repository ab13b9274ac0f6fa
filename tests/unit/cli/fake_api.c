/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_api.h"
#include "resoluto/version.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"

struct fake_api fake_api;

static void record(const struct resoluto_run_options *options)
{
	fake_api.runs++;
	fake_api.options = *options;
	fake_api.argc = 0;
	for (const char *const *at = options->argv; *at && fake_api.argc < FAKE_WORDS; at++)
		snprintf(fake_api.argv[fake_api.argc++], sizeof(fake_api.argv[0]), "%s", *at);
}

static void stream(const struct resoluto_run_options *options, bool is_stderr, const char *bytes)
{
	int r;

	if (!bytes || !options->stream || fake_api.stream_code < 0)
		return;
	r = options->stream(options->ctx, is_stderr, bytes, strlen(bytes));
	if (r < 0)
		fake_api.stream_code = r;
}

int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err)
{
	record(options);
	if (options->progress)
		options->progress(options->ctx, "boot", 0, 0);
	stream(options, false, fake_api.out);
	stream(options, true, fake_api.errors);
	if (fake_api.run_code >= 0 || fake_api.is_refused)
		*ret_result = &fake_api.result;
	if (fake_api.run_code < 0)
		return resoluto_fail(err, fake_api.run_code, "%s", fake_api.run_text);
	return fake_api.run_code;
}

void resoluto_result_free(struct resoluto_result *result)
{
}

/* --- runs in parts --- */

struct resoluto_run {
	char id[64];
};

static struct resoluto_run the_run = { "run-1" };

static int part(struct resoluto_err *err)
{
	if (fake_api.part_code < 0)
		return resoluto_fail(err, fake_api.part_code, "%s", fake_api.run_text);
	return fake_api.part_code;
}

int resoluto_run_launch(const struct resoluto_run_options *options, struct resoluto_run **ret_run,
                        struct resoluto_result **ret_result, struct resoluto_err *err)
{
	int r = part(err);

	record(options);
	fake_api.launched++;
	if (fake_api.is_refused)
		*ret_result = &fake_api.result;
	if (r < 0)
		return r;
	*ret_run = fake_api.never_starts ? NULL : &the_run;
	*ret_result = &fake_api.result;
	fake_api.opened += *ret_run != NULL;
	return 0;
}

int resoluto_run_attach(const struct resoluto_attach_options *options,
                        struct resoluto_run **ret_run, struct resoluto_err *err)
{
	snprintf(fake_api.attached, sizeof(fake_api.attached), "%s", options->id);
	if (strcmp(options->id, "run-1") != 0)
		return resoluto_fail(err, -ENOENT, "there is no run '%s'", options->id);
	*ret_run = &the_run;
	fake_api.opened++;
	return 0;
}

void resoluto_run_close(struct resoluto_run *run)
{
	if (run)
		fake_api.opened--;
}

const char *resoluto_run_id(const struct resoluto_run *run)
{
	return run->id;
}

uint64_t resoluto_run_cursor(const struct resoluto_run *run)
{
	return 6;
}

int resoluto_run_drive(struct resoluto_run *run, const struct resoluto_follow_options *options,
                       struct resoluto_result **ret_result, struct resoluto_err *err)
{
	const struct resoluto_event event = { .kind = "log",
		                              .event = "log",
		                              .ts = 1.25,
		                              .bytes = "a\n",
		                              .len = 2,
		                              .is_stderr = true,
		                              .is_output = true,
		                              .seq = 5 };
	int r;

	fake_api.follow = *options;
	if (options->stream && fake_api.out)
		(void) options->stream(options->ctx, false, fake_api.out, strlen(fake_api.out));
	if (options->on_event && fake_api.plays_piece)
		(void) options->on_event(options->ctx, &event);
	r = part(err);
	if (r == 0)
		*ret_result = &fake_api.result;
	return r;
}

int resoluto_run_collect(struct resoluto_run *run, const char *output_dir,
                         struct resoluto_outputs *ret_outputs, struct resoluto_err *err)
{
	int r = part(err);

	snprintf(fake_api.directory, sizeof(fake_api.directory), "%s", output_dir);
	if (r < 0)
		return r;
	ret_outputs->artifacts = calloc(2, sizeof(char *));
	ret_outputs->artifacts[0] = strdup("out/a\033b");
	ret_outputs->result_json = strdup("{\"score\": 1}");
	return 0;
}

void resoluto_outputs_done(struct resoluto_outputs *outputs)
{
	for (char **at = outputs->artifacts; at && *at; at++)
		free(*at);
	free(outputs->artifacts);
	free(outputs->result_json);
}

int resoluto_run_signal(struct resoluto_run *run, int signo, struct resoluto_err *err)
{
	fake_api.signo = signo;
	return part(err);
}

int resoluto_run_destroy(struct resoluto_run *run, struct resoluto_err *err)
{
	fake_api.destroyed++;
	return part(err);
}

const char *resoluto_run_state_name(enum resoluto_run_state state)
{
	return state == RESOLUTO_RUN_RUNNING ? "running" : "ended";
}

int resoluto_run_look(struct resoluto_run *run, enum resoluto_run_state *ret_state,
                      struct resoluto_err *err)
{
	*ret_state = fake_api.state;
	return 0;
}

static void note_label(const char *const *labels)
{
	snprintf(fake_api.label, sizeof(fake_api.label), "%s", labels ? labels[0] : "");
}

static int tell_run(resoluto_run_info_fn *each, void *ctx)
{
	static const char *const labels[] = { "resoluto.run_id=run-1", "team=a", NULL };
	const struct resoluto_run_info info = {
		.id = "run-1",
		.state = fake_api.state,
		.program = "python3",
		.image = "base",
		.labels = labels,
		.is_kept = true,
		.exit_code = 7,
		.reason = "",
		.disposition = RESOLUTO_COMPLETED,
	};

	return each(ctx, &info);
}

int resoluto_run_list(const struct resoluto_list_options *options, resoluto_run_info_fn *each,
                      void *ctx, struct resoluto_err *err)
{
	int r = part(err);

	note_label(options->labels);
	return r < 0 ? r : tell_run(each, ctx);
}

int resoluto_run_sweep(const struct resoluto_sweep_options *options, struct resoluto_err *err)
{
	int r;

	fake_api.sweep = *options;
	note_label(options->labels);
	r = tell_run(options->removed, options->ctx);
	if (r == 0)
		r = part(err);
	return r < 0 ? r : 1;
}

char *resoluto_result_to_json(const struct resoluto_result *result)
{
	return strdup(fake_api.json);
}

const char *resoluto_disposition_name(enum resoluto_disposition disposition)
{
	return disposition == RESOLUTO_COMPLETED ? "completed" : "silent";
}

const char *resoluto_version(void)
{
	return RESOLUTO_VERSION;
}

static int image_call(const char *first, const char *second, struct resoluto_err *err)
{
	snprintf(fake_api.image_words[0], sizeof(fake_api.image_words[0]), "%s", first);
	snprintf(fake_api.image_words[1], sizeof(fake_api.image_words[1]), "%s", second);
	if (fake_api.image_code < 0)
		return resoluto_fail(err, fake_api.image_code, "no image %s", first);
	return 0;
}

static const struct resoluto_image image = {
	.ref = "mine:1",
	.digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.path = "/cache/images/sha256-0123.squashfs",
	.size_bytes = 3 << 20,
	.created = 1.0,
};

int resoluto_image_get(const char *ref, const struct resoluto_image_options *options,
                       struct resoluto_image *ret_image, struct resoluto_err *err)
{
	fake_api.pull = options->pull;
	*ret_image = image;
	return image_call(ref, "", err);
}

void resoluto_image_done(struct resoluto_image *done)
{
}

int resoluto_image_list(const struct resoluto_image_options *options,
                        int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                        struct resoluto_err *err)
{
	struct resoluto_image gone = image;
	int r = image_call("", "", err);

	gone.ref = "tar:/old.tar";
	gone.source_is_gone = true;
	if (r == 0)
		r = each(ctx, &image);
	return r < 0 ? r : each(ctx, &gone);
}

int resoluto_image_tag(const char *ref, const char *name,
                       const struct resoluto_image_options *options, struct resoluto_err *err)
{
	return image_call(ref, name, err);
}

int resoluto_image_remove(const char *ref, const struct resoluto_image_options *options,
                          struct resoluto_err *err)
{
	if (strcmp(ref, "none") == 0)
		return resoluto_fail(err, -ENOENT, "no image none");
	return image_call(ref, "", err);
}

int64_t resoluto_image_prune(const struct resoluto_image_options *options, struct resoluto_err *err)
{
	int r = image_call("", "", err);

	return r < 0 ? r : 3 << 20;
}

int rundir_sweep_dead(const char *state_dir, struct resoluto_err *err)
{
	return 0;
}

int slot_count(const char *configured, uint64_t available_bytes, unsigned *ret_count,
               struct resoluto_err *err)
{
	*ret_count = 2;
	return 0;
}

int uid_range_parse(const char *text, struct uid_range *ret_range, struct resoluto_err *err)
{
	*ret_range = (struct uid_range){ 520000, 520099 };
	return 0;
}

struct host_kvm host_kvm(void)
{
	return fake_api.kvm;
}
