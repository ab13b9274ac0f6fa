#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C file is as clang-format writes it (.clang-format).  --fix rewrites what is not.
set -u
cd "$(dirname "$0")/.." || exit 1
mapfile -t files < <(find src guest include tests bench examples -name '*.[ch]' 2>/dev/null | sort)
[ "${#files[@]}" -ge 20 ] || { echo "only ${#files[@]} files found"; exit 1; }
if [ "${1:-}" = --fix ]; then
	exec clang-format -i "${files[@]}"
fi
exec clang-format --dry-run -Werror "${files[@]}"
