#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/attach.sh [ROUNDS]: attach --from in the middle of a run of 1,000,000 lines, in 4,000 and in 500,000 chunks,
# alive and ended: time to the first line, memory; what a new chunk costs behind 1,000 and 500,000 others.  No sandbox is
# started.  Last line: value V ms, the slowest median to the first line (limit 100).  TMPDIR chooses the file system, which
# holds a million small files at the most: /dev/shm does well.
exec python3 "$(dirname "$0")/attach.py" "$@"
