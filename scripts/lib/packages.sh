# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034
# packages.sh - what the product and its tests need from the distribution, and how it gets there.

# To build the product.
BUILD_PACKAGES=(gcc libc6-dev binutils make meson ninja-build pkg-config python3
	libarchive-dev libjansson-dev libisal-dev libseccomp-dev zlib1g-dev nettle-dev)
# To run it and to provision it.
case "$(uname -m)" in
aarch64) QEMU_PACKAGE=qemu-system-arm ;;
*) QEMU_PACKAGE=qemu-system-x86 ;;
esac
RUN_PACKAGES=("$QEMU_PACKAGE" squashfs-tools-ng skopeo mmdebstrap uidmap e2fsprogs lz4 zstd xz-utils util-linux)
# To test it.
TEST_PACKAGES=(g++ clang clang-format libclang-rt-14-dev docker-registry umoci squashfs-tools bzip2 python3-venv
	shellcheck strace procps lsof jq bash fish zsh man-db file)

missing_packages() { # names...
	local name
	for name in "$@"; do
		dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || printf '%s\n' "$name"
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "this needs root: run as root, or install sudo"
	fi
}

apt_install() { # names...
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
		-y -q --no-install-recommends install "$@"
}

update_and_install() { # names...
	# An old index is no reason to fail, a missing package is.
	as_root apt-get -o DPkg::Lock::Timeout=300 -q update || say "apt-get update failed, trying with the index that is there"
	apt_install "$@"
}

# What is downloaded without being installed (the guest's kernel) needs an index that knows it.
ensure_index() { # name
	apt-cache show "$1" >/dev/null 2>&1 || step "package index" as_root apt-get -o DPkg::Lock::Timeout=300 -q update
}

# Without apt: say exactly what to install, and where to point us.
explain_packages() {
	cat >&2 <<-EOF
	This system has no apt-get, so nothing was installed.  Install with your package manager:

	  to build   a C compiler, make, meson (0.63 or later), ninja, pkg-config, python3, and the development
	             files of libarchive, jansson, isa-l (optional), libseccomp, zlib and nettle; static libraries
	             (.a) of the C library, jansson and zlib for the runner in the guest
	  to run     qemu-system-x86_64 (7.2 or later), skopeo, tar2sqfs (squashfs-tools-ng), mkfs.ext4 (e2fsprogs)

	and call this script again with --skip-packages and

	  --kernel FILE      an uncompressed x86_64 kernel (vmlinux) with virtio-mmio, virtio-blk, virtio-console,
	                     squashfs, overlayfs and ext4 built in
	  --base-image REF   an image with python3: a registry reference, oci:DIR, docker-archive:FILE,
	                     tar:FILE or rootfs:DIR

	If QEMU is not in PATH, set RESOLUTO_LOCAL_QEMU=/path/to/qemu-system-x86_64.
	EOF
}

ensure_packages() { # names...
	local missing
	mapfile -t missing < <(missing_packages "$@")
	if [ "${#missing[@]}" -eq 0 ]; then
		say "    packages: all ${#} are installed"
		return 0
	fi
	step "installing ${#missing[@]} packages (${missing[*]:0:4}${missing[4]:+ ...})" update_and_install "${missing[@]}"
}
