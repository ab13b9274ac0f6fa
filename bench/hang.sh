#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/hang.sh [RUNS [built|distro]]: cold runs that hang (over 30 s) or fail; last line: value V (at most 0).
exec python3 "$(dirname "$0")/hang.py" "$@"
