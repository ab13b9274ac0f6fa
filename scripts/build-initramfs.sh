#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build-initramfs.sh - the runner and the kernel's modules as the microVM's initramfs.
#
#	scripts/build-initramfs.sh RUNNER KERNELDIR OUT
#
# KERNELDIR is what provision-kernel.sh or build-guest-kernel.sh made (no modules are no files).  OUT is a plain newc archive: unpacked at boot by the
# kernel, which under emulation takes longer the more it is packed.  The same inputs give the same
# bytes.  OUT is replaced at once or not at all.
set -euo pipefail

die() { printf 'build-initramfs: %s\n' "$*" >&2; exit 1; }

[ $# -eq 3 ] || { sed -n 's/^#\t//p' "$0" | head -1 >&2; exit 2; }
readonly runner=$1 kernel=$2 out=$3
[ -s "$runner" ] || die "$runner is missing"
[ -f "$kernel/modules/list" ] || die "$kernel/modules/list is missing: run local-backend-up.sh"

readonly directory_mode=$((040755)) program_mode=$((0100755)) file_mode=$((0100644)) link_mode=$((0120777))
inode=0

readonly zeros=('' '\0' '\0\0' '\0\0\0')
pad() { # size: up to the next multiple of 4
	# shellcheck disable=SC2059 # printf itself, since a program for each name and file takes seconds on a slow host
	printf "${zeros[$(((4 - $1 % 4) % 4))]}"
}

# Each entry: thirteen numbers of eight hex digits, the name with its 0, padding, the content, padding.
entry() { # name mode [file]
	local size=0
	[ $# -lt 3 ] || size=$(stat -c %s "$3")
	inode=$((inode + 1))
	printf '070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X' \
		$inode "$2" 0 0 1 0 "$size" 0 0 0 0 $((${#1} + 1)) 0
	printf '%s\0' "$1"
	pad $((110 + ${#1} + 1))
	[ $# -lt 3 ] || { cat "$3" && pad "$size"; }
}

archive() {
	local name
	for name in dev newroot proc rootfs scratch sys upper views views/dev views/proc views/sys; do
		entry "$name" $directory_mode
	done
	# A kernel without modules needs no place for them, and the runner does not look.
	[ ! -s "$kernel/modules/list" ] || entry modules $directory_mode
	entry init $program_mode "$work/init"
	# What our own kernel starts before it; the same program (guest/early.h).
	printf /init >"$work/early"
	entry early $link_mode "$work/early"
	# Modules bear their place in the order of loading as their name.
	local number=0
	while read -r name; do
		entry "$(printf 'modules/%02d-%s.ko' $number "$name")" $file_mode "$kernel/modules/$name.ko"
		number=$((number + 1))
	done <"$kernel/modules/list"
	entry 'TRAILER!!!' 0
}

mkdir -p "$(dirname "$out")"
part=$(mktemp "$out.XXXXXX")
work=$(mktemp -d)
trap 'rm -rf "$part" "$work"' EXIT
# Every byte is copied at boot, and nobody debugs in there.  (One of another architecture stays as it is.)
strip --strip-all -o "$work/init" "$runner" 2>/dev/null || cp "$runner" "$work/init"
archive >"$part"
chmod 644 "$part"
mv "$part" "$out"
