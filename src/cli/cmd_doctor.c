/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_doctor.c - `doctor`: what is there, what is missing, what to do. */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/failure.h"
#include "resoluto/image.h"
#include "resoluto/version.h"

enum {
	EXIT_UNHEALTHY = 1, /* a critical check fails (seed 002) */
	AMOUNT_MAX = 32,    /* bytes of "12.0 MiB" */
};

struct doctor_args {
	bool fix, json;
};

static const struct option options[] = {
	{ OPTION_FLAG, .name = "fix", .offset = offsetof(struct doctor_args, fix),
	  .help = "do what is safe: make the directories, remove what dead runs left, prune the "
	          "cache; "
	          "packages are never installed, only named" },
	{ OPTION_FLAG, .name = "json", .offset = offsetof(struct doctor_args, json),
	  .help = "print a JSON object" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

/* One examination of this machine. */
struct doctor {
	const struct config *config;
	const struct doctor_args *args;
	json_t *rows;    /* owned, with --json */
	unsigned failed; /* critical checks */
};

static const char *const status_words[] = { "OK", "MISSING", "absent" };
static const char *const status_json[] = { "ok", "missing", "absent" };

static void print_row(const struct check *check, const struct finding *finding, bool is_fixed)
{
	printf("[%s] %s (%s%s)\n", status_words[finding->status], check->label,
	       text_string(&finding->note), is_fixed ? "; fixed" : "");
	if (finding->remedy.buf.len)
		printf("    -> %s\n", text_string(&finding->remedy));
}

static void add_row(struct doctor *doctor, const struct check *check, const struct finding *finding,
                    bool is_fixed)
{
	json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "id", check->id, "label",
	                        check->label, "status", status_json[finding->status], "note",
	                        text_string(&finding->note), "remedy",
	                        text_string(&finding->remedy), "fixed", is_fixed);

	(void) json_array_append_new(doctor->rows, row);
}

/* Returns whether it was changed. */
static bool try_fix(struct doctor *doctor, const struct check *check)
{
	struct resoluto_err err = { 0 };

	if (!doctor->args->fix || !check->fix)
		return false;
	if (check->fix(doctor->config, &err) == 0)
		return true;
	failure_print(stderr, "doctor", &err);
	return false;
}

static void report(struct doctor *doctor, const struct check *check, const struct finding *finding,
                   bool is_fixed)
{
	if (finding->status == CHECK_MISSING)
		doctor->failed++;
	if (doctor->args->json)
		add_row(doctor, check, finding, is_fixed);
	else
		print_row(check, finding, is_fixed);
}

/* Nothing else can be looked at, then: all of it asks the configuration. */
static void report_unreadable(struct doctor *doctor, const struct resoluto_err *err)
{
	CLEANUP(finding_done) struct finding finding = { CHECK_OK, TEXT_INIT, TEXT_INIT };

	text_addf(&finding.note, "%s: %s", err->text, strerror(-err->code));
	finding_fail(
		&finding, CHECK_MISSING,
		"correct it; RESOLUTO_LOCAL_ENV names the file, and where it is not set the usual "
		"places are looked at");
	report(doctor, &doctor_checks[0], &finding, false);
}

static void examine(struct doctor *doctor, const struct check *check)
{
	CLEANUP(finding_done) struct finding finding = { CHECK_OK, TEXT_INIT, TEXT_INIT };
	bool is_fixed = false;

	check->look(doctor->config, &finding);
	if (finding.status != CHECK_OK && try_fix(doctor, check)) {
		finding_done(&finding);
		finding = (struct finding){ CHECK_OK, TEXT_INIT, TEXT_INIT };
		check->look(doctor->config, &finding);
		is_fixed = finding.status == CHECK_OK;
	}
	report(doctor, check, &finding, is_fixed);
}

/* What no check can see: files in the cache that no name refers to. */
static void prune(const struct doctor *doctor)
{
	struct resoluto_err err = { 0 };
	char amount[AMOUNT_MAX];
	int64_t freed;

	if (access(config_cache_dir(doctor->config), W_OK) < 0)
		return; /* not there, or somebody else's: check_cache_dir has told */
	freed = resoluto_image_prune(NULL, &err);
	if (freed < 0) {
		failure_print(stderr, "doctor", &err);
	} else if (freed > 0 && !doctor->args->json) {
		quantity_format_bytes((uint64_t) freed, amount, sizeof(amount));
		printf("pruned %s from the cache of images\n", amount);
	}
}

static void print_json(struct doctor *doctor)
{
	json_t *root = json_pack("{s:i, s:s, s:b, s:O}", "schema", 1, "version", resoluto_version(),
	                         "ok", doctor->failed == 0, "checks", doctor->rows);

	(void) json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static void examine_all(struct doctor *doctor)
{
	for (const struct check *check = doctor_checks; check->id; check++)
		examine(doctor, check);
	if (doctor->args->fix)
		prune(doctor);
}

static int run(const struct invocation *invocation, void *args)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct doctor doctor = { .args = args, .rows = json_array() };
	struct resoluto_err err = { 0 };
	int code;

	if (config_load(&config, &err) < 0) {
		report_unreadable(&doctor, &err);
	} else {
		doctor.config = config;
		examine_all(&doctor);
	}
	if (doctor.args->json)
		print_json(&doctor);
	json_decref(doctor.rows);
	code = command_finish_output(invocation);
	return code == 0 && doctor.failed ? EXIT_UNHEALTHY : code;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "Look at what is installed here and say what is missing",
	.synopsis = "[OPTION]...",
	.description =
		"One line per check: [OK]; [MISSING], without which nothing runs; [absent], which "
		"only "
		"some runs need. Below what is not OK stands what to do. The exit status is 1 if "
		"anything is MISSING.",
	.options = options,
	.args_size = sizeof(struct doctor_args),
	.run = run,
};
