#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/roundtrip.sh [LINES]: line through `run -i -- cat` and back; last line: value MEDIAN ms (at most 30).
exec python3 "$(dirname "$0")/roundtrip.py" "$@"
