#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/concurrency.sh [ROUNDS]: 2 and 8 runs at once against one after another; last line: ratio R (at most 1.1).
exec python3 "$(dirname "$0")/concurrency.py" "$@"
