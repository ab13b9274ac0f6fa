/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_state.c - state.json of a run: bounded texts and known words, which come back the same when written again. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/microvm/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_ranges(const struct run_state *state)
{
	require(state->phase != RESOLUTO_PHASE_UNKNOWN && state->phase <= RESOLUTO_PHASE_UNKNOWN);
	require(strnlen(state->reason, sizeof(state->reason)) < sizeof(state->reason));
	require(strnlen(state->detail, sizeof(state->detail)) < sizeof(state->detail));
	require(!state->guest_boot_id[0] || is_boot_id(state->guest_boot_id));
	require(isfinite(state->started_at) && isfinite(state->ended_at));
	for (int i = 0; i < STATE_CONFINEMENT_MAX; i++)
		require(strnlen(state->confinement[i], STATE_WORD_MAX) < STATE_WORD_MAX);
}

static void check_same(const struct run_state *a, const struct run_state *b)
{
	require(a->phase == b->phase && strcmp(a->reason, b->reason) == 0);
	require(strcmp(a->detail, b->detail) == 0);
	require(a->shim_pid == b->shim_pid && a->qemu_pid == b->qemu_pid);
	require(strcmp(a->guest_boot_id, b->guest_boot_id) == 0);
	require(a->own_kernel == b->own_kernel);
	require(a->started_at == b->started_at && a->ended_at == b->ended_at);
	for (int i = 0; i < STATE_CONFINEMENT_MAX; i++)
		require(strcmp(a->confinement[i], b->confinement[i]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(8 * STATE_JSON_MAX);
	struct run_state state = { 0 }, again = { 0 };
	struct resoluto_err err = { 0 };
	int r = size > STATE_JSON_MAX ? -E2BIG
	                              : run_state_parse((const char *) data, size, &state, &err);

	if (r == 0) {
		check_ranges(&state);
		require(run_state_write(&out, &state) == 0);
		require(run_state_parse(out.data, out.len, &again, NULL) == 0);
		check_same(&state, &again);
	} else {
		require(r == -E2BIG || (r == -EBADMSG && err.code == r && err.text[0]));
	}
	buf_done(&out);
	return 0;
}
