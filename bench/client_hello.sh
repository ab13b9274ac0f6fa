#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/client_hello.sh [ROUNDS]: how many recorded ClientHellos the parser of the gateway reads on one core, whole
# and in segments of 100 bytes; last line: value V hellos/s, the median over ROUNDS (5) of whole ones (at
# least 1,000,000).
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
build=${RESOLUTO_BUILD_DIR:-$here/build}
ninja -C "$build" bench/client_hello_bench >/dev/null
exec "$build/bench/client_hello_bench" "$here/tests/fuzz/samples/client_hello" "${1:-5}"
