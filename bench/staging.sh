#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: RESOLUTO_TEST_ORIGINAL=DIR bench/staging.sh [ROUNDS]: a 100 MiB text tree into an archive and out again,
# against the Python original, in one run; archive size against gzip -1 (at most 1.1); peak memory at 100 MiB and
# 1 GiB, and of command line plus shim while 1 GiB goes into a microVM and back (at most 32 MiB).  Works
# in memory where there is room, or beneath TMPDIR.  The last two lines: ratio R of staging in and of staging out (at
# least 4).
exec python3 "$(dirname "$0")/staging.py" "$@"
