#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the guest of the other architecture needs, made on this one: the kernel and the runner, cross-compiled, and an
# image with python3 out of the distribution's packages.  Safe to call again: what is there already is kept.
#
#	tests/aarch64/prepare.sh FOLDER CLI
#
# FOLDER gets kernel/ (as build-guest-kernel.sh makes it, with initrd.img) and the name of the image in the file "image".
set -euo pipefail

[ $# -eq 2 ] || { sed -n 's/^#\t/usage: /p' "$0" >&2; exit 2; }
folder=$1
cli=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
readonly arch=aarch64 name=resoluto-aarch64:test
# To link the runner against (meson asks for all of the project's libraries), and to run in the guest.
readonly packages=libc6-dev,libarchive-dev,libjansson-dev,zlib1g-dev,libseccomp-dev,nettle-dev,libc-ares-dev,python3-minimal,dash,coreutils

# Unpacked, not installed: no program of that architecture has to run here.
unpack_packages() {
	local mode=root suite
	[ "$(id -u)" -eq 0 ] || mode=unshare
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && printf '%s\n' "$VERSION_CODENAME")
	mmdebstrap --quiet --mode=$mode --variant=extract --arch=arm64 --include="$packages" --format=tar \
		"$suite" "$folder/root.tar.part"
	rm -rf "$folder/sysroot"
	mkdir "$folder/sysroot"
	tar -C "$folder/sysroot" --no-same-owner --exclude='./dev/*' -xf "$folder/root.tar.part"
	mv "$folder/root.tar.part" "$folder/root.tar"
}

write_cross_file() {
	cat >"$folder/cross.ini" <<-END
	[binaries]
	c = ['$arch-linux-gnu-gcc', '--sysroot=$folder/sysroot']
	ar = '$arch-linux-gnu-ar'
	strip = '$arch-linux-gnu-strip'
	pkgconfig = 'pkg-config'
	[properties]
	sys_root = '$folder/sysroot'
	pkg_config_libdir = '$folder/sysroot/usr/lib/$arch-linux-gnu/pkgconfig'
	[host_machine]
	system = 'linux'
	cpu_family = '$arch'
	cpu = '$arch'
	endian = 'little'
	END
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
bash "$root/scripts/build-guest-kernel.sh" "$folder/kernel" --arch $arch
[ -s "$folder/root.tar" ] || unpack_packages
if [ ! -f "$folder/build/build.ninja" ]; then
	write_cross_file
	meson setup "$folder/build" "$root" --cross-file "$folder/cross.ini" -Dtests=false --buildtype=release
fi
ninja -C "$folder/build" guest/resoluto-runner
bash "$root/scripts/build-initramfs.sh" "$folder/build/guest/resoluto-runner" "$folder/kernel" "$folder/kernel/initrd.img"
"$cli" image import "tar:$folder/root.tar" $name
printf '%s\n' $name >"$folder/image"
