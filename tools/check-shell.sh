#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every script as shellcheck likes it.
set -u
cd "$(dirname "$0")/.." || exit 1
mapfile -t files < <(find scripts tools bench tests .ci -type f \( -name '*.sh' -o -path '.ci/run' \) | sort)
[ "${#files[@]}" -ge 5 ] || { echo "only ${#files[@]} scripts found"; exit 1; }
exec shellcheck -x "${files[@]}"
