#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build what the test host with KVM is made of and what does not change with the product: a Debian root with QEMU and
# pytest, and a kernel with kvm-amd.  Safe to call again: what is there already is kept.
#
#	tests/kvm/build-host.sh OUTDIR
#
# Writes OUTDIR/root.squashfs and OUTDIR/kernel/, a folder as provision-kernel.sh makes them.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 1 ] || { sed -n 's/^#\t//p' "$0" >&2; exit 2; }
out=$1

# QEMU, the libraries of the product, the programs of provisioning, and what runs and helps the tests.
readonly packages=mount,qemu-system-x86,libarchive13,libisal2,libjansson4,libseccomp2,apt,e2fsprogs,lz4,squashfs-tools-ng,python3-pytest,procps

# The recipe is the stamp: another one makes another root.
recipe() {
	printf '%s\n' "$packages"
	cat "$here/scripts/build-base-image.sh"
}

build_root() {
	bash "$here/scripts/build-base-image.sh" "$work/root.tar" --include "$packages"
	tar2sqfs -q -c lz4 -f "$work/root.squashfs" <"$work/root.tar"
	mv "$work/root.squashfs" "$out/root.squashfs"
	recipe >"$out/recipe"
}

mkdir -p "$out"
exec 9>"$out/lock"
flock 9
work=$(mktemp -d "$out/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ ! -s "$out/root.squashfs" ] || ! recipe | cmp -s - "$out/recipe"; then
	rm -f "$out/recipe"
	build_root
fi
bash "$here/scripts/provision-kernel.sh" "$out/kernel" --distro debian --module kvm-amd
