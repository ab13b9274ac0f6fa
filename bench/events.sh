#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: RESOLUTO_TEST_ORIGINAL=DIR bench/events.sh [ROUNDS]: lines per second into and out of a local Conduit, against
# the Python original; the last two lines: ratio R of emitting and of tailing (each at least 10).  TMPDIR chooses the
# file system.
exec python3 "$(dirname "$0")/events.py" "$@"
