#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, as C and as C++, and names the seed it comes from; each internal one compiles alone.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
count=0
flags=(-D_GNU_SOURCE -Iinclude -Isrc -I. -Werror -Wall -Wextra -fsyntax-only)
# Through a file of one line, so that "#pragma once in main file" is no warning.
compile() { # compiler standard language header
	printf '#include "%s"\n' "$4" | "$1" "-std=$2" "${flags[@]}" -x "$3" - || {
		echo "$4 does not compile alone as $3 with $1"
		bad=1
	}
}
for header in include/resoluto/*.h; do
	compile "${CC:-cc}" gnu11 c "${header#include/}"
	compile "${CXX:-c++}" c++17 c++ "${header#include/}"
	grep -q '\bseeds\?\b' "$header" || { echo "$header does not say which seed it comes from"; bad=1; }
	count=$((count + 1))
done
while IFS= read -r header; do
	compile "${CC:-cc}" gnu11 c "$header"
	count=$((count + 1))
done < <(find src guest -name '*.h' | sed 's|^src/||' | sort)
[ "$count" -ge 10 ] || { echo "only $count headers found"; bad=1; }
exit "$bad"
