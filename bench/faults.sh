#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/faults.sh [REPEATS] [--seed N [--only REPEAT]] [--kinds A,B]: injured runs; last line: value N held.  Fails if a promise did not hold.
exec python3 "$(dirname "$0")/faults.py" "$@"
