#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: RESOLUTO_TEST_ORIGINAL=DIR bench/events.sh [ROUNDS]: lines per second into and out of a local Conduit, against
# the Python original; the last two lines: ratio R of emitting (at least 10) and of tailing (at least 2).
exec python3 "$(dirname "$0")/events.py" "$@"
