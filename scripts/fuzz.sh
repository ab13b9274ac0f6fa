#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/fuzz.sh TARGET|all SECONDS
# Build the fuzz targets with clang's libFuzzer, ASan and UBSan, and run one or each for SECONDS, starting from its
# samples.  Build, corpus and findings stay in a cache folder outside the checkout (RESOLUTO_TEST_CACHE).
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/say.sh
. "$here/scripts/lib/say.sh"

[ $# -eq 2 ] || die "usage: scripts/fuzz.sh TARGET|all SECONDS"
target=$1
seconds=$2
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "SECONDS must be a number above 0, not '$seconds'"
command -v clang >/dev/null || die "clang is missing: apt-get install clang libclang-rt-14-dev (or your release's)"

if [ "$(id -u)" -eq 0 ]; then
	cache=${RESOLUTO_TEST_CACHE:-/var/cache/resoluto-sandbox-tests}
else
	cache=${RESOLUTO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/resoluto-sandbox-tests}
fi
build=$cache/build-fuzz
mkdir -p "$cache/fuzz"

if [ ! -f "$build/build.ninja" ]; then
	CC=clang meson setup "$build" "$here" -Dfuzz=true -Dguest=disabled -Dbuildtype=debugoptimized \
		-Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined' >/dev/null
fi

known_targets() {
	for source in "$here"/tests/fuzz/fuzz_*.c; do
		source=$(basename "$source" .c)
		printf '%s\n' "${source#fuzz_}"
	done
}

fuzz() {
	local name=$1 corpus=$cache/fuzz/$1 log=$cache/fuzz/$1.log
	mkdir -p "$corpus"
	ninja -C "$build" "tests/fuzz/libfuzzer-$name" >"$log" 2>&1 || { tail -n 30 "$log" >&2; return 1; }
	if "$build/tests/fuzz/libfuzzer-$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$cache/fuzz/$name-" "$corpus" \
		"$here/tests/fuzz/samples/$name" >"$log" 2>&1; then
		say "$name: clean after $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
	else
		tail -n 40 "$log" >&2
		say "$name: FAILED, see $log"
		return 1
	fi
}

failed=0
if [ "$target" = all ]; then
	for name in $(known_targets); do
		fuzz "$name" || failed=$((failed + 1))
	done
else
	[ -f "$here/tests/fuzz/fuzz_$target.c" ] || die "there is no target '$target', only: $(known_targets | tr '\n' ' ')"
	fuzz "$target" || failed=1
fi
[ "$failed" -eq 0 ] || die "$failed target(s) failed"
