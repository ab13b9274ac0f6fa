#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/cold.sh [ROUNDS [4Gi|256Mi]...]: cold runs on both guest kernels against each other and against their
# bare boots; last line: ratio R, the worst figure as a part of its limit (at most 1).
exec python3 "$(dirname "$0")/cold.py" "$@"
