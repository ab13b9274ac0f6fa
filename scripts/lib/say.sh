# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# say.sh - what the scripts tell a person: a moving line where a terminal is there, plain lines elsewhere.

# All output of the steps goes there; the caller sets it.
: "${STEP_LOG:=/dev/null}"

say() {
	printf '%s\n' "$*"
}

die_with() { # exit-code words...
	local code=$1
	shift
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit "$code"
}

die() {
	die_with 1 "$@"
}

show_log_tail() {
	[ -f "$STEP_LOG" ] || return 0
	printf '%s\n' "---- the last lines of $STEP_LOG" >&2
	tail -n 30 "$STEP_LOG" >&2
}

# How far a step is, if it can tell: the name of a function that prints a percentage.
STEP_PROGRESS=

# Set: no moving line also on a terminal, since a step may have a question to ask there.
STEP_PLAIN=

line_moves() {
	[ -t 2 ] && [ -z "$STEP_PLAIN" ]
}

# Until the process ends: a moving line with the seconds and how far it is, or a line at every ten per cent.
watch_step() { # label pid start
	local now='' shown=0
	while kill -0 "$2" 2>/dev/null; do
		[ -z "$STEP_PROGRESS" ] || now=$("$STEP_PROGRESS")
		if line_moves; then
			printf '\r\033[K==> %s ... %ds%s' "$1" "$(($(date +%s) - $3))" "${now:+, $now %}" >&2
		elif [ -n "$now" ] && [ "$((now / 10))" -gt "$shown" ]; then
			shown=$((now / 10))
			say "    $now %"
		fi
		sleep 0.5
	done
	! line_moves || printf '\r\033[K' >&2
}

# try_step LABEL COMMAND...: run it with its output in the log; returns its exit code.  In a function that is run so `set -e`
# does nothing, as always where an exit code is asked for: it says itself where it ends.
try_step() {
	local label=$1 start pid rc=0 moves=
	shift
	! line_moves || moves=1
	start=$(date +%s)
	printf '\n==== %s: %s\n' "$label" "$*" >>"$STEP_LOG"
	STEP_MOVES=$moves "$@" >>"$STEP_LOG" 2>&1 </dev/null &
	pid=$!
	STEP_PID=$pid
	[ -n "$moves" ] || say "==> $label"
	if [ -n "$moves" ] || [ -n "$STEP_PROGRESS" ]; then
		watch_step "$label" "$pid" "$start"
	fi
	wait "$pid" || rc=$?
	STEP_PID=
	[ "$rc" -ne 0 ] || say "    $label: done in $(($(date +%s) - start)) s"
	return "$rc"
}

# The same; a failure shows the end of the log and leaves.
step() {
	local rc=0
	try_step "$@" || rc=$?
	if [ "$rc" -ne 0 ]; then
		show_log_tail
		die "$1 failed (exit code $rc)"
	fi
}

# A process stands still before its children are looked for: it starts no more of them.  The package manager goes on to its
# end: one that is cut off has to be repaired by hand.
stop_all() { # pid
	local child children=()
	case $(cat "/proc/$1/comm" 2>/dev/null) in
	apt-get | dpkg) return 0 ;;
	esac
	# It has ended meanwhile, or is not ours, as sudo.
	kill -STOP "$1" 2>/dev/null || return 0
	# No such file: a thread has ended meanwhile, or the kernel keeps no such list.
	read -ra children <<<"$(cat "/proc/$1/task/"*/children 2>/dev/null)" || true
	for child in "${children[@]}"; do
		stop_all "$child"
	done
	kill "$1" 2>/dev/null || true
	kill -CONT "$1" 2>/dev/null || true
}

# A step ends with who started it, and before what it works on is removed: all of it, down to a tar that holds a lock.
stop_step() {
	[ -n "$STEP_PID" ] || return 0
	# A second signal would leave standing what is stopped.
	trap '' HUP INT TERM
	stop_all "$STEP_PID"
	wait "$STEP_PID" 2>/dev/null || true
	STEP_PID=
}

# Also for a subshell, which does not inherit it.
end_steps_with_us() {
	STEP_PID=
	trap stop_step EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

end_steps_with_us
