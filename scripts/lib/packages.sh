# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034
# packages.sh - what the product and its tests need from the distribution, and how it gets there.

# To build the product.
BUILD_PACKAGES=(gcc libc6-dev binutils make meson ninja-build pkg-config python3
	libarchive-dev libjansson-dev libisal-dev libseccomp-dev zlib1g-dev nettle-dev libc-ares-dev)
# To run it and to provision it.
case "$(uname -m)" in
aarch64) QEMU_PACKAGE=qemu-system-arm ;;
*) QEMU_PACKAGE=qemu-system-x86 ;;
esac
RUN_PACKAGES=("$QEMU_PACKAGE" squashfs-tools-ng skopeo mmdebstrap uidmap e2fsprogs lz4 zstd xz-utils util-linux)
# To build the guest's kernel; its source is downloaded without being installed.
KERNEL_PACKAGES=(gcc make flex bison bc patch tar xz-utils perl binutils libelf-dev)
# To test it.
TEST_PACKAGES=(g++ clang clang-format libclang-rt-14-dev docker-registry umoci squashfs-tools bzip2 python3-venv
	shellcheck strace procps lsof jq bash fish zsh man-db file git curl wget iproute2 nftables dnsmasq-base nginx-light openssl)
# To build and boot the guest of the other architecture.
FULL_PACKAGES=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm)

missing_packages() { # names...
	local name
	for name in "$@"; do
		dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || printf '%s\n' "$name"
	done
}

# Behind a moving line nobody would see the question for a password: ready_root has asked before.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo ${STEP_MOVES:+-n} "$@"
	else
		die "this needs root: run as root, or install sudo"
	fi
}

# sudo asks for a password now, on the terminal, if it needs one, and not within the step that comes next.
ready_root() {
	if [ "$(id -u)" -eq 0 ] || [ -n "$STEP_PLAIN" ] || ! command -v sudo >/dev/null || sudo -n true 2>/dev/null; then
		return 0
	fi
	sudo -v || return
	# One that remembers no password asks again, within the step.
	sudo -n true 2>/dev/null || STEP_PLAIN=1
}

POLICY=/usr/sbin/policy-rc.d
POLICY_LINE='# of resoluto-sandbox: services that are being installed are not started'

# Nothing that is installed is started (nginx would take port 80): tests start what they need, where they need it.
# A policy that is there already is somebody's; one of ours that was left behind is taken away.
hold_services() {
	[ ! -e "$POLICY" ] || return 0
	printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_LINE" | as_root tee "$POLICY" >/dev/null
	as_root chmod 0755 "$POLICY"
}

release_services() {
	if grep -qxF "$POLICY_LINE" "$POLICY" 2>/dev/null; then
		as_root rm -f "$POLICY"
	fi
}

apt_install() { # names...
	local rc=0
	hold_services
	env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
		-y -q --no-install-recommends install "$@" || rc=$?
	release_services
	return "$rc"
}

# By root.
update_and_install_as_root() { # names...
	# Also when it is stopped: services would not start for ever.
	trap 'stop_step; release_services' EXIT
	# An old index is no reason to fail, a missing package is.
	apt-get -o DPkg::Lock::Timeout=300 -q update || say "apt-get update failed, trying with the index that is there"
	apt_install "$@"
}

# In one process of root's: a password that is forgotten while packages are being installed is not asked for in the middle.
update_and_install() { # names...
	# shellcheck disable=SC2016
	as_root bash -c 'set -eu; . "$1/say.sh"; . "$1/packages.sh"; shift; update_and_install_as_root "$@"' "$0" \
		"$(dirname "${BASH_SOURCE[0]}")" "$@"
}

# What is downloaded without being installed (the guest's kernel) needs an index that knows it.  Without one (no network)
# what is there already may do; who needs more says so itself.
ensure_index() { # name
	! apt-cache show "$1" >/dev/null 2>&1 || return 0
	if ! ready_root || ! try_step "package index" as_root apt-get -o DPkg::Lock::Timeout=300 -q update; then
		say "    note: the package index, which does not know $1, could not be renewed"
	fi
}

# Without apt: say exactly what to install, and where to point us.
explain_packages() {
	cat >&2 <<-EOF
	This system has no apt-get, so nothing was installed.  Install with your package manager:

	  to build   a C compiler, make, meson (0.63 or later), ninja, pkg-config, python3, and the development
	             files of libarchive, jansson, isa-l (optional), libseccomp, zlib, nettle and c-ares; static libraries
	             (.a) of the C library, jansson and zlib for the runner in the guest
	  to run     qemu-system-x86_64 (7.2 or later), skopeo, tar2sqfs (squashfs-tools-ng), mkfs.ext4 (e2fsprogs)
	  for a guest kernel of our own   flex, bison, bc, patch, xz, perl, libelf's development files, and the
	             source of Linux 6.1: scripts/build-guest-kernel.sh DIR --source linux-6.1.tar.xz

	and call this script again with --skip-packages and

	  --kernel FILE      DIR/vmlinux of that script, or an uncompressed x86_64 kernel (vmlinux) with virtio-mmio,
	                     virtio-blk, virtio-console, squashfs, overlayfs and ext4 built in
	  --base-image REF   an image with python3: a registry reference, oci:DIR, docker-archive:FILE,
	                     tar:FILE or rootfs:DIR

	If QEMU is not in PATH, set RESOLUTO_LOCAL_QEMU=/path/to/qemu-system-x86_64.
	EOF
}

# (Without process substitution: a small system has no /dev/fd.)
ensure_packages() { # names...
	local missing
	read -r -a missing <<<"$(missing_packages "$@" | tr '\n' ' ')"
	if [ "${#missing[@]}" -eq 0 ]; then
		say "    packages: all ${#} are installed"
		return 0
	fi
	ready_root || die "packages are installed by root: sudo refused"
	step "installing ${#missing[@]} packages (${missing[*]:0:4}${missing[4]:+ ...})" update_and_install "${missing[@]}"
}

# Where nothing may be installed: what is not there is named before anything is tried, and with all of it what to do.
# A note only: the same things may have come another way than by dpkg.
note_missing_packages() { # names...
	local missing
	command -v dpkg-query >/dev/null || return 0
	read -r -a missing <<<"$(missing_packages "$@" | tr '\n' ' ')"
	[ "${#missing[@]}" -eq 0 ] ||
		say "    note: packages are missing; unless you have their like:  apt-get install ${missing[*]}"
}
