#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/at_once.sh [ROUNDS]: 64 runs at once over the fake runtime, then 8 at once in microVMs with the built kernel,
# each ROUNDS times (20): exact output of each, nothing left.  Last line: value N failures.
exec python3 "$(dirname "$0")/at_once.py" "$@"
