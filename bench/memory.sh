#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/memory.sh [ROUNDS]: PSS of command line plus shim during a run; last line: value V MiB (at most 12).
exec python3 "$(dirname "$0")/memory.py" "$@"
