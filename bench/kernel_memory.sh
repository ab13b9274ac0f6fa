#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/kernel_memory.sh [ROUNDS]: PSS of QEMU on the kernel of our own against the distribution's, 20 times if not said
# otherwise; last line: ratio R (at most 0.8).
exec python3 "$(dirname "$0")/kernel_memory.py" "$@"
