#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/roundtrip.sh [LINES [ROUNDS]]: line through `run -i -- cat` and back, 1,000 times in each of 5 runs if not said
# otherwise; last line: ratio R, the worse of the median to 30 ms and the 99th percentile to 90 ms (at most 1).
exec python3 "$(dirname "$0")/roundtrip.py" "$@"
