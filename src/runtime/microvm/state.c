/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/state.h"
#include "wire/json_read.h"

static const char *const phase_names[] = {
	[RESOLUTO_PHASE_PENDING] = "pending",
	[RESOLUTO_PHASE_RUNNING] = "running",
	[RESOLUTO_PHASE_SUCCEEDED] = "succeeded",
	[RESOLUTO_PHASE_FAILED] = "failed",
};

enum { PHASE_COUNT = sizeof(phase_names) / sizeof(phase_names[0]) };

bool is_boot_id(const char *text)
{
	for (int i = 0; i < BOOT_ID_SIZE - 1; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return false;
		} else if (!text[i] || !strchr("0123456789abcdef", text[i])) {
			return false;
		}
	}
	return text[BOOT_ID_SIZE - 1] == '\0';
}

bool is_time(double seconds)
{
	return seconds >= 0 && seconds < 253402300800.0;
}

bool run_state_is_final(const struct run_state *state)
{
	return state->phase == RESOLUTO_PHASE_SUCCEEDED || state->phase == RESOLUTO_PHASE_FAILED;
}

void run_state_tell(const struct run_state *state, struct resoluto_status *ret_status)
{
	*ret_status = (struct resoluto_status){ .phase = state->phase,
		                                .exit_code = -1,
		                                .ended = state->ended_at };
	memcpy(ret_status->reason, state->reason, sizeof(state->reason));
	memcpy(ret_status->detail, state->detail, sizeof(state->detail));
	if (run_state_is_final(state))
		ret_status->exit_code = state->phase == RESOLUTO_PHASE_SUCCEEDED ? 0 : 1;
}

void run_state_add_confinement(struct run_state *state, const char *word)
{
	for (int i = 0; i < STATE_CONFINEMENT_MAX; i++) {
		if (!state->confinement[i][0]) {
			snprintf(state->confinement[i], STATE_WORD_MAX, "%s", word);
			return;
		}
	}
}

int run_state_write(struct buf *out, const struct run_state *state)
{
	CLEANUP(json_done) json_t *list = json_array();
	CLEANUP(json_done) json_t *root = NULL;

	for (int i = 0; list && i < STATE_CONFINEMENT_MAX && state->confinement[i][0]; i++) {
		if (json_array_append_new(list, json_string(state->confinement[i])) < 0)
			return -ENOMEM;
	}
	/* The detail may quote what QEMU wrote: bytes that are not UTF-8 become '?'. */
	root = json_pack("{si ss ss so si si ss sb sf sf sO}", "schema", 1, "phase",
	                 phase_names[state->phase], "reason", state->reason, "detail",
	                 json_text(state->detail), "shim_pid", (int) state->shim_pid, "qemu_pid",
	                 (int) state->qemu_pid, "guest_boot_id", state->guest_boot_id, "own_kernel",
	                 state->own_kernel, "started_at", state->started_at, "ended_at",
	                 state->ended_at, "confinement", list);
	if (!root)
		return -ENOMEM;
	return json_write(out, root);
}

static int find_phase(const char *name, enum resoluto_phase *ret_phase)
{
	for (int i = 0; i < PHASE_COUNT; i++) {
		if (strcmp(phase_names[i], name) == 0) {
			*ret_phase = (enum resoluto_phase) i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int parse_confinement(const json_t *list, struct run_state *state)
{
	size_t i;
	json_t *word;

	if (!json_is_array(list) || json_array_size(list) > STATE_CONFINEMENT_MAX)
		return -EBADMSG;
	json_array_foreach(list, i, word)
	{
		if (!json_is_string(word) || !*json_string_value(word) ||
		    json_copy_text(state->confinement[i], STATE_WORD_MAX, json_string_value(word)) <
		            0)
			return -EBADMSG;
	}
	return 0;
}

/* What JSON cannot check by its types. */
static int check_texts(struct run_state *state, const char *phase, const char *reason,
                       const char *detail, const char *boot_id)
{
	if (find_phase(phase, &state->phase) < 0 ||
	    json_copy_text(state->reason, sizeof(state->reason), reason) < 0 ||
	    json_copy_text(state->detail, sizeof(state->detail), detail) < 0 ||
	    (*boot_id && !is_boot_id(boot_id)) ||
	    json_copy_text(state->guest_boot_id, BOOT_ID_SIZE, boot_id) < 0)
		return -EBADMSG;
	return 0;
}

int run_state_parse(const char *json, size_t len, struct run_state *ret_state,
                    struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *root = NULL;
	struct run_state state = { 0 };
	const char *phase, *reason, *detail, *boot_id;
	int schema, shim_pid, qemu_pid, own_kernel;
	json_t *confinement;

	if (json_read(json, len, 0, &root) == -ENOMEM)
		return resoluto_fail(err, -ENOMEM, "read state.json");
	if (!root ||
	    json_unpack(root, "{si ss ss ss si si ss sb sF sF so}", "schema", &schema, "phase",
	                &phase, "reason", &reason, "detail", &detail, "shim_pid", &shim_pid,
	                "qemu_pid", &qemu_pid, "guest_boot_id", &boot_id, "own_kernel", &own_kernel,
	                "started_at", &state.started_at, "ended_at", &state.ended_at, "confinement",
	                &confinement) < 0 ||
	    schema != 1)
		return resoluto_fail(err, -EBADMSG, "state.json is not what a shim writes");
	state.shim_pid = shim_pid;
	state.qemu_pid = qemu_pid;
	state.own_kernel = own_kernel != 0;
	if (check_texts(&state, phase, reason, detail, boot_id) < 0 || !is_time(state.started_at) ||
	    !is_time(state.ended_at) || parse_confinement(confinement, &state) < 0)
		return resoluto_fail(err, -EBADMSG, "state.json is not what a shim writes");
	*ret_state = state;
	return 0;
}

int run_state_reserve(int dirfd, uid_t uid, struct resoluto_err *err)
{
	static const char zeros[STATE_SPARE_SIZE];
	CLEANUP(fd_close) int fd = -1;
	int r;

	/* Of a boot before this one, perhaps as another user: then nobody but us can replace them. */
	(void) unlinkat(dirfd, STATE_SPARE, 0);
	(void) unlinkat(dirfd, "state.json", 0);
	fd = open_beneath(dirfd, STATE_SPARE, O_WRONLY | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? fd : write_all(fd, zeros, sizeof(zeros));
	if (r == 0 && uid && fchown(fd, uid, uid) < 0)
		r = -errno;
	return r < 0 ? resoluto_fail(err, r, "make room for the state of the run") : 0;
}

int run_state_use_reserve(int dirfd, const char *json, size_t len)
{
	CLEANUP(fd_close) int fd = -1;
	int r;

	if (len > STATE_SPARE_SIZE)
		return -E2BIG;
	fd = open_beneath(dirfd, STATE_SPARE, O_WRONLY, 0);
	r = fd < 0 ? fd : write_all(fd, json, len);
	if (r == 0 && ftruncate(fd, (off_t) len) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, STATE_SPARE, dirfd, "state.json") < 0)
		r = -errno;
	return r;
}
