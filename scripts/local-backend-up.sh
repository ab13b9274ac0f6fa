#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verify, install, build and provision the local backend, and end on a green canary: a real program in a real microVM.
# Safe to call again: what is there already is kept, and a second call takes seconds.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/say.sh
. "$here/scripts/lib/say.sh"
# shellcheck source=scripts/lib/packages.sh
. "$here/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/kernel-dir.sh
. "$here/scripts/lib/kernel-dir.sh"
# shellcheck source=scripts/lib/kernel-file.sh
. "$here/scripts/lib/kernel-file.sh"

usage() {
	cat <<-EOF
	usage: bash scripts/local-backend-up.sh [options]

	  --accel auto|kvm|tcg   auto (default): KVM where a probe boot works, else emulation, said loudly;
	                         kvm: refuse instead of falling back
	  --kernel KIND          built: our own, built from the distribution's kernel source (minutes, once);
	                         distro: the distribution's cloud kernel;
	                         FILE: a vmlinux with all it needs built in, or an archive of build-guest-kernel.sh;
	                         without it built, and where that cannot be, distro
	  --base-image REF       the default image; without it one with python3 is made by mmdebstrap
	  --prefix DIR           where to install (root: /usr/local, else ~/.local); "none": run from the build folder
	  --build-dir DIR        where to build (default: build)
	  --skip-packages        install nothing with apt-get
	  --uninstall            remove what this script installed, provisioned and configured
	  --help
	EOF
}

accel=auto
kernel=
base_image=
prefix=
build_dir=$here/build
skip_packages=
uninstall=

parse_arguments() {
	while [ $# -gt 0 ]; do
		case "$1" in
		--*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}"; continue ;;
		--skip-packages) skip_packages=1; shift; continue ;;
		--uninstall) uninstall=1; shift; continue ;;
		--help | -h) usage; exit 0 ;;
		esac
		[ $# -ge 2 ] || { usage >&2; die "$1 needs a value, or is no option"; }
		case "$1" in
		--accel) accel=$2 ;;
		--kernel) kernel=$2 ;;
		--base-image) base_image=$2 ;;
		--prefix) prefix=$2 ;;
		--build-dir) build_dir=$2 ;;
		*) usage >&2; die "$1 is no option" ;;
		esac
		shift 2
	done
	case "$accel" in auto | kvm | tcg) ;; *) die "--accel is auto, kvm or tcg, not '$accel'" ;; esac
	case "$kernel" in
	'' | built | distro) ;;
	*) [ -f "$kernel" ] || die "--kernel is 'built', 'distro' or a file, and '$kernel' is none of them" ;;
	esac
}

# Where things go, as docs/environment.md says.
set_places() {
	if [ "$(id -u)" -eq 0 ]; then
		cache=${RESOLUTO_CACHE_DIR:-/var/cache/resoluto-sandbox}
		state=${RESOLUTO_STATE_DIR:-/var/lib/resoluto-sandbox}
		config=/etc/resoluto-sandbox/local.env
		prefix=${prefix:-/usr/local}
	else
		cache=${RESOLUTO_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/resoluto-sandbox}
		state=${RESOLUTO_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/resoluto-sandbox}
		config=${XDG_CONFIG_HOME:-$HOME/.config}/resoluto-sandbox/local.env
		prefix=${prefix:-$HOME/.local}
	fi
	# The checkout's own copy is for `source`; who names another file gets that one and no other.
	copy=$here/local.env
	if [ -n "${RESOLUTO_LOCAL_ENV:-}" ]; then
		config=$RESOLUTO_LOCAL_ENV
		copy=$config
	fi
	machine=$(uname -m)
	version=$(sed -n 's/^#define RESOLUTO_VERSION "\(.*\)"/\1/p' "$here/include/resoluto/version.h")
	umask 022
	mkdir -p "$cache/kernel" "$(dirname "$config")"
	mkdir -p "$state"
	chmod 0700 "$state"
	STEP_LOG=$cache/provision.log
	: >"$STEP_LOG"
}

distribution() {
	# shellcheck disable=SC1091
	(. /etc/os-release 2>/dev/null && printf '%s\n' "${ID:-unknown}") || printf 'unknown\n'
}

check_system() {
	[ "$(uname -s)" = Linux ] || die "this runs on Linux only"
	case "$machine" in
	x86_64) ;;
	aarch64) say "note: on aarch64 only emulation was run, and on x86_64 hosts: KVM on aarch64 is new ground" ;;
	*) die "$machine is not supported: x86_64 is" ;;
	esac
	if [ -n "$skip_packages" ]; then
		note_missing_packages "${BUILD_PACKAGES[@]}" "${RUN_PACKAGES[@]}"
		return 0
	fi
	if ! command -v apt-get >/dev/null; then
		explain_packages
		exit 1
	fi
	ensure_packages "${BUILD_PACKAGES[@]}" "${RUN_PACKAGES[@]}"
}

# Where ld.so and pkg-config look.  meson asks dpkg-architecture, which a small Debian has not, and then takes lib64, where
# neither does.
set_library_dir() {
	local triplet
	triplet=$(gcc -print-multiarch 2>/dev/null || true)
	library_dir=(${triplet:+"--libdir=lib/$triplet"})
}

build() {
	local where library_dir=()
	set_library_dir
	where=("--prefix=$install_prefix" "${library_dir[@]}")
	if [ -f "$build_dir/build.ninja" ]; then
		meson configure "$build_dir" "${where[@]}"
	else
		meson setup "${where[@]}" --buildtype=release -Db_ndebug=false -Dtests=false "$build_dir" "$here"
	fi && ninja -C "$build_dir"
}

# Again at the end, where it is read: the log of a compiler that lacks a header says nothing of packages.
build_failed() { # exit code
	show_log_tail
	if [ -n "$skip_packages" ]; then
		note_missing_packages "${BUILD_PACKAGES[@]}" >&2
	fi
	die "building failed (exit code $1)"
}

build_and_install() {
	install_prefix=$prefix
	[ "$prefix" != none ] || install_prefix=/usr/local
	try_step "building" build || build_failed "$?"
	if [ "$prefix" = none ]; then
		export RESOLUTO_LIBEXEC_DIR=$build_dir/src/shim
		cli=$build_dir/src/cli/resoluto-sandbox
		return 0
	fi
	mkdir -p "$prefix" 2>/dev/null || true
	if [ -w "$prefix" ]; then
		step "installing to $prefix" meson install -C "$build_dir" --no-rebuild --quiet
	else
		step "installing to $prefix" as_root meson install -C "$build_dir" --no-rebuild --quiet
	fi
	cli=$prefix/bin/resoluto-sandbox
	# The shared library of a prefix that ld.so does not know yet.
	[ "$(id -u)" -ne 0 ] || ldconfig
}

kernel_package() {
	case "$distro" in
	ubuntu) printf 'linux-image-virtual\n' ;;
	*) printf 'linux-image-cloud-%s\n' "$(dpkg --print-architecture)" ;;
	esac
}

provision_distro_kernel() {
	[ -n "$skip_packages" ] || [ -f "$cache/kernel/distro/VERSION" ] || ensure_index "$(kernel_package)"
	step "guest kernel of the distribution" bash "$here/scripts/provision-kernel.sh" "$cache/kernel/distro" \
		--distro "$distro"
}

built_kernel_is_there() {
	bash "$here/scripts/build-guest-kernel.sh" "$cache/kernel/built" --check >>"$STEP_LOG" 2>&1
}

# It tells by itself how far it is.  Not in the foreground, so that who stops us stops it, too.
build_kernel() {
	local rc=0
	[ -n "$skip_packages" ] || (ensure_packages "${KERNEL_PACKAGES[@]}" && ensure_index linux-source) || return
	bash "$here/scripts/build-guest-kernel.sh" "$cache/kernel/built" &
	STEP_PID=$!
	wait "$STEP_PID" || rc=$?
	STEP_PID=
	return "$rc"
}

# Every kernel that is there gets an initramfs with the runner of this build.
make_initramfs() {
	local kind
	for kind in built distro file probe; do
		[ ! -f "$cache/kernel/$kind/VERSION" ] || bash "$here/scripts/build-initramfs.sh" \
			"$build_dir/guest/resoluto-runner" "$cache/kernel/$kind" "$cache/kernel/$kind/initrd.img" || return
	done
}

has_image() { # name
	"$cli" image ls --json 2>/dev/null | grep -q "\"$1\""
}

# What the image of this name was made with: an earlier script's is made again; one that was given (--base-image), or came
# by itself (`image import`), is kept.
base_image_key() {
	sha256sum <"$here/scripts/build-base-image.sh" | cut -d' ' -f1
}

has_base_image() {
	has_image "$image_name" || return 1
	case "$(cat "$cache/base-image.key" 2>/dev/null)" in
	"$(base_image_key)" | given | '') return 0 ;;
	*) return 1 ;;
	esac
}

make_base_image() {
	local tar=$cache/base-$version.tar
	bash "$here/scripts/build-base-image.sh" "$tar.part" &&
		mv "$tar.part" "$tar" &&
		"$cli" image import "tar:$tar" "$image_name" &&
		"$cli" image rm "tar:$tar" >>"$STEP_LOG" &&
		base_image_key >"$cache/base-image.key" || return
	rm -f "$tar"
}

provision_image() {
	image_name=resoluto-sandbox-base:$version
	if [ -n "$base_image" ]; then
		step "base image from $base_image" "$cli" image import "$base_image" "$image_name"
		echo given >"$cache/base-image.key"
	elif has_base_image; then
		say "    base image: $image_name is in the cache"
	else
		step "base image with python3 (a minute)" make_base_image
	fi
}

qemu_path() {
	local name=qemu-system-$machine
	printf '%s\n' "${RESOLUTO_LOCAL_QEMU:-$(command -v "$name" || true)}"
}

# Root runs each microVM with a uid of its own out of a range that nobody else has.
uid_range() {
	local first=1879048192 count=256
	while cut -d: -f3 /etc/passwd | awk -v a="$first" -v n="$count" '$1 >= a && $1 < a + n {found = 1} END {exit !found}' ||
		cat /etc/subuid /etc/subgid 2>/dev/null |
		awk -F: -v a="$first" -v n="$count" '$2 < a + n && $2 + $3 > a {found = 1} END {exit !found}'; do
		first=$((first + count))
	done
	printf '%s-%s\n' "$first" "$((first + count - 1))"
}

write_config() { # acceleration; "" before it was found out, so that nothing can run by mistake
	local part=$config.part qemu
	qemu=$(qemu_path)
	[ -n "$qemu" ] || die "QEMU was not found: install qemu-system-$machine or set RESOLUTO_LOCAL_QEMU"
	{
		printf '# written by scripts/local-backend-up.sh; read by resoluto-sandbox, or: set -a; source local.env; set +a\n'
		printf 'RESOLUTO_LOCAL_RUNTIME=microvm\n'
		[ -z "$1" ] || printf 'RESOLUTO_LOCAL_ACCEL=%s\n' "$1"
		printf 'RESOLUTO_LOCAL_MACHINE=%s\n' "$(cat "$kernel_dir/MACHINE")"
		printf 'RESOLUTO_LOCAL_QEMU=%s\n' "$qemu"
		printf 'RESOLUTO_LOCAL_KERNEL=%s\n' "$kernel_dir/vmlinux"
		printf 'RESOLUTO_LOCAL_INITRD=%s\n' "$kernel_dir/initrd.img"
		printf 'RESOLUTO_SANDBOX_IMAGE=%s\n' "$image_name"
		[ "$(id -u)" -ne 0 ] || printf 'RESOLUTO_LOCAL_UIDS=%s\n' "$(uid_range)"
		[ -z "${RESOLUTO_CACHE_DIR:-}" ] || printf 'RESOLUTO_CACHE_DIR=%s\n' "$cache"
		[ -z "${RESOLUTO_STATE_DIR:-}" ] || printf 'RESOLUTO_STATE_DIR=%s\n' "$state"
		[ "$prefix" != none ] || printf 'RESOLUTO_LIBEXEC_DIR=%s\n' "$build_dir/src/shim"
	} >"$part"
	mv "$part" "$config"
	[ "$config" = "$copy" ] || cp "$config" "$copy"
	export RESOLUTO_LOCAL_ENV=$config
	unset RESOLUTO_LOCAL_ACCEL RESOLUTO_LOCAL_MACHINE RESOLUTO_LOCAL_KERNEL RESOLUTO_LOCAL_INITRD RESOLUTO_SANDBOX_IMAGE
}

# Only a boot tells: a /dev/kvm that opens may still not run a guest, or hang.  A nested one on a busy machine
# takes most of a minute.
kvm_boots() {
	[ -e /dev/kvm ] || return 1
	RESOLUTO_LOCAL_ACCEL=kvm RESOLUTO_LOCAL_BOOT_LIMIT=2m timeout -k 5 150 "$cli" run --quiet --deadline 140 -- /bin/true \
		>>"$STEP_LOG" 2>&1 </dev/null
}

warn_about_tcg() {
	cat >&2 <<-EOF

	************************************************************************************
	*  WARNING: no hardware virtualization.  A probe boot with KVM did not work here, so *
	*  sandboxes run by emulation (TCG).  Each run still has a Linux kernel of its own,  *
	*  but QEMU's emulator is not a hardened security boundary, and everything is slower *
	*  by a factor of 5 to 20.  See SECURITY.md, "What TCG does and does not give".      *
	*  Use --accel kvm to refuse this instead.                                           *
	************************************************************************************

	EOF
}

choose_acceleration() {
	if [ "$accel" = tcg ]; then
		chosen=tcg
	elif say "==> probing KVM with a real boot (two minutes at most)" && kvm_boots; then
		chosen=kvm
		say "    KVM works"
	elif [ "$accel" = kvm ]; then
		die "--accel kvm: a probe boot with KVM failed (its output is in $STEP_LOG); is virtualization" \
			"switched on in the firmware, or nested virtualization on the host of this VM, and may you open /dev/kvm?"
	else
		chosen=tcg
		warn_about_tcg
	fi
	write_config "$chosen"
}

canary() {
	local program='import os, platform, sys
print("kernel  ", platform.release())
print("boot id ", open("/proc/sys/kernel/random/boot_id").read().strip())
print("user    ", os.getuid())
print("network ", sorted(os.listdir("/sys/class/net")))
print("python  ", sys.version.split()[0])
print("hello from the sandbox")'
	say "==> canary: a real program in a real microVM ($chosen)"
	if ! "$cli" run -- python3 -c "$program" | sed 's/^/    | /'; then
		die "the canary failed; 'resoluto-sandbox doctor' tells what is missing"
	fi
	say "    host boot id  $(cat /proc/sys/kernel/random/boot_id)"
}

# From a kernel that is there to a green canary on it.
bring_up() { # built|distro|file
	kernel_dir=$cache/kernel/$1
	step "initramfs with the runner" make_initramfs
	# The image tool needs a configuration; the acceleration follows.
	write_config ""
	provision_image
	choose_acceleration
	canary
}

# A kernel of the caller's is recorded only once it has booted.
bring_up_file() {
	local config_of_all=$config copy_of_all=$copy
	kernel_dir=$cache/kernel/probe
	trap 'stop_step; rm -rf "$cache/kernel/probe"' EXIT
	say "==> guest kernel from $kernel"
	import_kernel_file "$kernel" "$kernel_dir"
	step "initramfs with the runner" make_initramfs
	config=$kernel_dir/local.env copy=$config
	write_config ""
	provision_image
	choose_acceleration
	probe_kernel_file "$cli" "$kernel"
	rm -f "$kernel_dir/initrd.img" "$config"
	kernel_dir_place "$kernel_dir" "$cache/kernel/file"
	config=$config_of_all copy=$copy_of_all accel=$chosen
	bring_up file
}

# The built kernel, but not at the price of KVM where the other one has it.
try_built() {
	[ "$recorded_accel" != kvm ] || [ "$accel" != auto ] || accel=kvm
	(bring_up built) || return
	kernel_dir=$cache/kernel/built
	chosen=$(sed -n 's/^RESOLUTO_LOCAL_ACCEL=//p' "$config")
}

# First what is quickest, in the end the built kernel.
bring_up_best() {
	local asked=$accel why="it could not be built"
	recorded_accel=$(sed -n 's/^RESOLUTO_LOCAL_ACCEL=//p' "$config" 2>/dev/null || true)
	if ! built_kernel_is_there; then
		provision_distro_kernel
		bring_up distro
		recorded_accel=$chosen
		build_kernel || { warn_about_kernel "$why"; return 0; }
	fi
	! try_built || return 0
	accel=$asked
	provision_distro_kernel
	bring_up distro
	warn_about_kernel "it did not pass its canary"
}

warn_about_kernel() { # why
	cat >&2 <<-EOF

	************************************************************************************
	*  WARNING: sandboxes use the distribution's kernel, not the built one:
	*  $1 (the reason stands above).
	*  Everything works, but each start takes about three times as long.
	*  Use --kernel built to have this fail, --kernel distro to choose it.
	************************************************************************************

	EOF
}

# By root only what is not ours already.  A folder with our name goes with the last file in it.
remove_installed() { # file
	local folder=${1%/*} by=()
	[ -e "$1" ] || [ -L "$1" ] || return 0
	[ -w "$folder" ] || by=(as_root)
	"${by[@]}" rm -f -- "$1"
	case "${folder##*/}" in
	resoluto | resoluto-sandbox) "${by[@]}" rmdir -- "$folder" 2>/dev/null || true ;;
	esac
}

remove_all() {
	if [ -f "$build_dir/meson-logs/install-log.txt" ]; then
		grep -v '^#' "$build_dir/meson-logs/install-log.txt" | while IFS= read -r file; do
			[ -d "$file" ] || remove_installed "$file"
		done
	fi
	rm -rf -- "$cache/kernel" "$cache/images" "$cache/refs.json" "$cache/templates" "$cache/provision.log" \
		"$cache/base-image.key"
	rm -rf -- "$state"
	rm -f -- "$config" "$copy"
	rmdir -- "$cache" "$(dirname "$config")" 2>/dev/null || true
	say "removed: the installed files, $cache, $state, $config; packages stay installed"
}

main() {
	parse_arguments "$@"
	set_places
	if [ -n "$uninstall" ]; then
		remove_all
		return 0
	fi
	distro=$(distribution)
	check_system
	build_and_install
	image_name=resoluto-sandbox-base:$version
	case "$kernel" in
	'') bring_up_best ;;
	built) build_kernel || die "--kernel built: the kernel could not be built"; bring_up built ;;
	distro) provision_distro_kernel; bring_up distro ;;
	*) bring_up_file ;;
	esac
	say ""
	say "The local backend is up ($chosen).  Configuration: $config"
	say "Try:  ${cli} run -- echo hi"
}

main "$@"
