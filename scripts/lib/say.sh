# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# say.sh - what the scripts tell a person: a moving line where a terminal is there, plain lines elsewhere.

# All output of the steps goes there; the caller sets it.
: "${STEP_LOG:=/dev/null}"

say() {
	printf '%s\n' "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

show_log_tail() {
	[ -f "$STEP_LOG" ] || return 0
	printf '%s\n' "---- the last lines of $STEP_LOG" >&2
	tail -n 30 "$STEP_LOG" >&2
}

# The moving line: elapsed seconds until the process ends.
watch_step() { # label pid start
	while kill -0 "$2" 2>/dev/null; do
		printf '\r\033[K==> %s ... %ds' "$1" "$(($(date +%s) - $3))" >&2
		sleep 0.5
	done
	printf '\r\033[K' >&2
}

# step LABEL COMMAND...: run it with its output in the log; a failure shows the end of the log and leaves.
step() {
	local label=$1 start pid rc=0
	shift
	start=$(date +%s)
	printf '\n==== %s: %s\n' "$label" "$*" >>"$STEP_LOG"
	"$@" >>"$STEP_LOG" 2>&1 </dev/null &
	pid=$!
	STEP_PID=$pid
	if [ -t 2 ]; then
		watch_step "$label" "$pid" "$start"
	else
		say "==> $label"
	fi
	wait "$pid" || rc=$?
	STEP_PID=
	if [ "$rc" -ne 0 ]; then
		show_log_tail
		die "$label failed (exit code $rc)"
	fi
	say "    $label: done in $(($(date +%s) - start)) s"
}

STEP_PID=
# shellcheck disable=SC2064
trap '[ -z "$STEP_PID" ] || kill "$STEP_PID" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
