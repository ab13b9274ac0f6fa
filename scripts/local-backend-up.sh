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
# shellcheck source=scripts/lib/distro.sh
. "$here/scripts/lib/distro.sh"
# shellcheck source=scripts/lib/kernel-file.sh
. "$here/scripts/lib/kernel-file.sh"
# shellcheck source=scripts/lib/config.sh
. "$here/scripts/lib/config.sh"
# shellcheck source=scripts/lib/acceleration.sh
. "$here/scripts/lib/acceleration.sh"
# shellcheck source=scripts/lib/uninstall.sh
. "$here/scripts/lib/uninstall.sh"

usage() {
	cat <<-EOF
	usage: bash scripts/local-backend-up.sh [options]

	  --accel auto|kvm|tcg   auto (default): KVM where a probe boot works, else emulation, said loudly;
	                         kvm: refuse instead of falling back, and probe again where a probe has failed before
	  --kernel KIND          built: our own, built from the distribution's kernel source (minutes, once);
	                         distro: the distribution's cloud kernel;
	                         FILE: a vmlinux with all it needs built in, or an archive of build-guest-kernel.sh;
	                         without it built, and where that cannot be, distro
	  --base-image REF       the default image; without it one with python3 is made by mmdebstrap
	  --prefix DIR           where to install (root: /usr/local, else ~/.local); "none": run from the build folder
	  --build-dir DIR        where to build (default: build)
	  --skip-packages        install nothing with apt-get
	  --uninstall            remove what this script installed, provisioned and configured, and name what stays
	  --help
	EOF
}

accel=auto
kernel=
base_image=
prefix=
build_dir=$here/build
# KVM is what runs have, and --accel leaves it open: it is not given up for another kernel.
kvm_is_recorded=
# Exit code of try_kernel, see there, and of a refusal of emulation elsewhere.
no_kvm_here=3
refusal_code=1
# A kernel of the caller's is being tried in $cache/kernel/probe.
probing=
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

# What is recorded counts where the environment says nothing, so that a second call, or --uninstall, finds what the first made.
use_recorded_place() { # name
	local recorded
	[ -z "${!1:-}" ] || return 0
	recorded=$(config_value "$config" "$1")
	[ -n "$recorded" ] || return 0
	printf -v "$1" '%s' "$recorded"
	say "    $1=$recorded, as $config says"
}

absolute() { # path
	case "$1" in
	/*) printf '%s\n' "$1" ;;
	*) printf '%s/%s\n' "$PWD" "$1" ;;
	esac
}

# An emulator of the owner's own, as long as it is there.
use_recorded_qemu() {
	local recorded
	recorded=$(config_value "$config" RESOLUTO_LOCAL_QEMU)
	if [ -x "$recorded" ] && [ "$recorded" != "$(command -v "qemu-system-$machine" || true)" ]; then
		use_recorded_place RESOLUTO_LOCAL_QEMU
	fi
	case "${RESOLUTO_LOCAL_QEMU:-}" in
	*/*) RESOLUTO_LOCAL_QEMU=$(absolute "$RESOLUTO_LOCAL_QEMU") ;;
	esac
}

# Of calls that were killed.
remove_stale_trials() {
	local file
	for file in "$config".trial.*; do
		[ ! -e "$file" ] || kill -0 "${file##*.}" 2>/dev/null || rm -f -- "$file"
	done
}

# Where things go, as docs/environment.md says.
set_places() {
	if [ "$(id -u)" -eq 0 ]; then
		cache=/var/cache/resoluto-sandbox
		state=/var/lib/resoluto-sandbox
		config=/etc/resoluto-sandbox/local.env
		prefix=${prefix:-/usr/local}
	else
		cache=${XDG_CACHE_HOME:-$HOME/.cache}/resoluto-sandbox
		state=${XDG_STATE_HOME:-$HOME/.local/state}/resoluto-sandbox
		config=${XDG_CONFIG_HOME:-$HOME/.config}/resoluto-sandbox/local.env
		prefix=${prefix:-$HOME/.local}
	fi
	# The checkout's own copy is for `source`; who names another file gets that one and no other.
	copy=$here/local.env
	if [ -n "${RESOLUTO_LOCAL_ENV:-}" ]; then
		config=$RESOLUTO_LOCAL_ENV
	fi
	config=$(absolute "$config")
	[ -z "${RESOLUTO_LOCAL_ENV:-}" ] || copy=$config
	trial=$config.trial.$$
	machine=$(uname -m)
	use_recorded_place RESOLUTO_CACHE_DIR
	use_recorded_place RESOLUTO_STATE_DIR
	use_recorded_qemu
	# They are recorded, and read from other places.
	cache=$(absolute "${RESOLUTO_CACHE_DIR:-$cache}")
	state=$(absolute "${RESOLUTO_STATE_DIR:-$state}")
	build_dir=$(absolute "$build_dir")
	[ "$prefix" = none ] || prefix=$(absolute "$prefix")
	remove_stale_trials
	version=$(sed -n 's/^#define RESOLUTO_VERSION "\(.*\)"/\1/p' "$here/include/resoluto/version.h")
	umask 022
	mkdir -p "$cache/kernel" "$(dirname "$config")"
	mkdir -p "$state"
	chmod 0700 "$state"
	STEP_LOG=$cache/provision.log
	: >"$STEP_LOG"
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

as_installer() {
	if [ -w "$prefix" ]; then
		"$@"
	else
		as_root "$@"
	fi
}

# sudo asks before minutes of building, and not only then.
ready_installer() {
	[ -w "$prefix" ] || ready_root || die "only root may install to $prefix: sudo refused"
}

build_and_install() {
	install_prefix=$prefix
	if [ "$prefix" = none ]; then
		install_prefix=/usr/local
	else
		mkdir -p "$prefix" 2>/dev/null || true
		ready_installer
	fi
	try_step "building" build || build_failed "$?"
	if [ "$prefix" = none ]; then
		export RESOLUTO_LIBEXEC_DIR=$build_dir/src/shim
		cli=$build_dir/src/cli/resoluto-sandbox
		fit_initramfs
		return 0
	fi
	ready_installer
	step "installing to $prefix" as_installer meson install -C "$build_dir" --no-rebuild --quiet
	fit_initramfs
	remember_installed
	cli=$prefix/bin/resoluto-sandbox
	# The shared library of a prefix that ld.so does not know yet.
	[ "$(id -u)" -ne 0 ] || ldconfig
}

# What is recorded goes on with the new programs, whatever comes of this call.
fit_initramfs() {
	make_initramfs >>"$STEP_LOG" 2>&1 || say "    note: the kernels that are there still have an older runner; see $STEP_LOG"
}

provision_distro_kernel() {
	local package
	if [ -z "$skip_packages" ] && [ ! -f "$cache/kernel/distro/VERSION" ] &&
		package=$(distro_kernel_package "$(distro_of /etc/os-release)" "$(dpkg --print-architecture)"); then
		ensure_index "$package"
	fi
	step "guest kernel of the distribution" bash "$here/scripts/provision-kernel.sh" "$cache/kernel/distro"
	# Its last words: which one it is, and whether it could be compared with newer ones.
	sed -n 's/^provision-kernel: /    guest kernel: /p' "$STEP_LOG" | tail -n 1
}

built_kernel_is_there() {
	bash "$here/scripts/build-guest-kernel.sh" "$cache/kernel/built" --check >>"$STEP_LOG" 2>&1
}

# After a build that failed: the one that is there is ours, of an older source or compiler of the distribution.
older_kernel_serves() {
	bash "$here/scripts/build-guest-kernel.sh" "$cache/kernel/built" --serves >>"$STEP_LOG" 2>&1 || return
	say "    note: a newer one could not be built (the reason stands above), so the one that is there goes on serving"
}

# It tells by itself how far it is.  Not in the foreground, so that who stops us stops it, too.
build_kernel() {
	local rc=0
	if [ -z "$skip_packages" ] && ! built_kernel_is_there; then
		(ensure_packages "${KERNEL_PACKAGES[@]}" && ensure_index linux-source) || return
	fi
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
	# Not through a pipe: grep leaves at the first match, and who still writes a long list then fails.
	grep -q "\"$1\"" <<<"$("$cli" image ls --json 2>/dev/null)"
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

# The next call makes its own.
forget_base_image() {
	"$cli" image rm "$image_name" >>"$STEP_LOG" 2>&1 || true
	rm -f -- "$cache/base-image.key"
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
		"$cli" doctor >&2 || true
		# What is at fault may be at fault for these, too.
		[ "$accel" = tcg ] || forget_kvm_failure
		[ -z "$base_image" ] || forget_base_image
		die "the canary failed, so nothing was recorded; what was found out about this system stands above"
	fi
	say "    host boot id  $(cat /proc/sys/kernel/random/boot_id)"
}

# From a kernel that is there to a green canary on it: only then is it recorded.
bring_up() { # built|distro
	kernel_dir=$cache/kernel/$1
	step "initramfs with the runner" make_initramfs
	# The image tool needs a configuration; the acceleration follows.
	write_trial ""
	provision_image
	choose_acceleration
	canary
	record_trial
}

# A kernel of the caller's has its place only once it has booted.
bring_up_file() {
	kernel_dir=$cache/kernel/probe
	probing=1
	say "==> guest kernel from $kernel"
	import_kernel_file "$kernel" "$kernel_dir"
	step "initramfs with the runner" make_initramfs
	write_trial ""
	provision_image
	choose_acceleration_of_file "$kernel"
	canary
	kernel_dir_place "$kernel_dir" "$cache/kernel/file" || die "cannot put the kernel into $cache/kernel/file"
	kernel_dir=$cache/kernel/file
	write_trial "$chosen"
	record_trial
}

# bring_up that does not leave: returns 1, or $no_kvm_here where /dev/kvm cannot be used at all.
try_kernel() { # built|distro
	local rc=0
	(
		end_steps_with_us
		refusal_code=$no_kvm_here
		bring_up "$1"
	) || rc=$?
	kernel_dir=$cache/kernel/$1
	chosen=$(config_value "$config" RESOLUTO_LOCAL_ACCEL)
	return "$rc"
}

is_provisioned() {
	[ -n "$(config_value "$config" RESOLUTO_LOCAL_ACCEL)" ] && [ -f "$(config_value "$config" RESOLUTO_LOCAL_KERNEL)" ]
}

use_distro_kernel() {
	provision_distro_kernel
	bring_up distro
}

# The first time what is quickest, in the end the built kernel; but not at the price of KVM where the other one has it.
bring_up_best() {
	local recorded distro_is_up='' rc=0
	recorded=$(config_value "$config" RESOLUTO_LOCAL_ACCEL)
	[ "$recorded" != kvm ] || [ "$accel" != auto ] || kvm_is_recorded=1
	if ! built_kernel_is_there; then
		if ! is_provisioned; then
			use_distro_kernel
			distro_is_up=1
			[ "$chosen" != kvm ] || [ "$accel" != auto ] || kvm_is_recorded=1
		fi
		if ! build_kernel && ! older_kernel_serves; then
			[ -n "$distro_is_up" ] || use_distro_kernel
			warn_about_kernel "it could not be built"
			return 0
		fi
	fi
	try_kernel built || rc=$?
	[ "$rc" -ne 0 ] || return 0
	if [ "$rc" -ne "$no_kvm_here" ]; then
		provision_distro_kernel
		if try_kernel distro; then
			warn_about_kernel "it did not pass its canary"
			return 0
		fi
	fi
	[ -n "$kvm_is_recorded" ] || exit 1
	say "    KVM is recorded, and no kernel passed its canary with it: once more without"
	kvm_is_recorded=
	bring_up built
}

warn_about_kernel() { # why
	cat >&2 <<-EOF

	************************************************************************************
	*  WARNING: sandboxes use the distribution's kernel, not the built one:
	*  $1 (the reason stands above).
	*  Everything works, but each start takes about four times as long.
	*  Use --kernel built to have this fail, --kernel distro to choose it.
	************************************************************************************

	EOF
}

end() {
	trap '' HUP INT TERM
	stop_step
	[ ! -e "$trial" ] || rm -f -- "$trial"
	[ -z "$probing" ] || rm -rf -- "$cache/kernel/probe"
}

main() {
	parse_arguments "$@"
	set_places
	trap end EXIT
	if [ -n "$uninstall" ]; then
		remove_all
		return 0
	fi
	check_system
	build_and_install
	image_name=resoluto-sandbox-base:$version
	case "$kernel" in
	'') bring_up_best ;;
	built)
		build_kernel || older_kernel_serves || die "--kernel built: the kernel could not be built"
		bring_up built
		;;
	distro) provision_distro_kernel; bring_up distro ;;
	*) bring_up_file ;;
	esac
	say ""
	say "The local backend is up ($chosen).  Configuration: $config"
	say "Try:  ${cli} run -- echo hi"
}

main "$@"
