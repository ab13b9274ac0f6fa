#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/cold.sh [ROUNDS]: cold run against the bare boot; last line: ratio R (at most 1.20).
exec python3 "$(dirname "$0")/cold.py" "$@"
