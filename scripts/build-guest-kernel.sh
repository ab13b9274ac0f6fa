#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the guest kernel of our own: the distribution's kernel source, our configuration and patches (guest-kernel/).
#
# OUTDIR gets vmlinux (for aarch64 an Image), config, build.log, COPYING, INPUTS (what it was made of), MACHINE,
# SHA256SUMS, an empty modules/list, and VERSION: the release and the hash of INPUTS, under which the result is kept.
# Needs no root and, but for the package with the source, no network.  docs/guest-kernel.md says more.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/say.sh
. "$here/scripts/lib/say.sh"
# shellcheck source=scripts/lib/kernel-dir.sh
. "$here/scripts/lib/kernel-dir.sh"

# Raise it when the same inputs give another kernel because of this script.
readonly recipe=1
# Lines that make prints for a whole build, about: how far it is.
readonly make_lines=1600
# Nobody's clock, name or machine gets into the kernel.
readonly build_date='2026-01-01 00:00:00 UTC'
# Most of the source is for hardware that is not there; of that only the configuration and the makefiles are needed.
readonly left_out=('*/Documentation/*/*' '*/drivers/gpu/*.[chS]' '*/drivers/net/*/*.[chS]' '*/drivers/media/*.[chS]'
	'*/drivers/scsi/*.[chS]' '*/drivers/staging/*.[chS]' '*/drivers/infiniband/*.[chS]' '*/sound/*.[chS]'
	'*/tools/testing/*' '*/tools/perf/*' '*/boot/dts/*.dts*' '*/.git/*')

usage() {
	cat <<-EOF
	usage: bash scripts/build-guest-kernel.sh OUTDIR [options]

	  --arch x86_64|aarch64   for which processor (default: this one); the other one is cross-compiled
	  --source DIR|TARBALL    the kernel's source (default: the distribution's package linux-source-*)
	  --archive FILE          also pack what a release needs: kernel, configuration, log, licence, how to rebuild
	  --force                 build although it is there
	  --check                 build nothing: exit code 0 if what OUTDIR has is whole and up to date, else 1
	  --serves                the same, but it may be of an older source or compiler
	EOF
}

outdir=
arch=$(uname -m)
source=
archive=
force=
check=
serves=

parse_arguments() {
	while [ $# -gt 0 ]; do
		case "$1" in
		--*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}"; continue ;;
		--force) force=1; shift; continue ;;
		--check) check=1; shift; continue ;;
		--serves) check=1 serves=1; shift; continue ;;
		--help | -h) usage; exit 0 ;;
		--arch | --source | --archive) [ $# -ge 2 ] || misuse "$1 needs a value" ;;
		-*) misuse "$1 is no option" ;;
		*) [ -z "$outdir" ] || misuse "one OUTDIR, not also '$1'"; outdir=$1; shift; continue ;;
		esac
		case "$1" in
		--arch) arch=$2 ;;
		--source) source=$2 ;;
		--archive) archive=$2 ;;
		esac
		shift 2
	done
	[ -n "$outdir" ] || misuse "no OUTDIR"
	# make looks for what it is told of from its own folder.
	outdir=$(realpath -m -- "$outdir")
	[ -z "$source" ] || [ -e "$source" ] || misuse "--source: $source is not there"
	case "$archive" in
	'' | *.tar.xz | *.tar.gz | *.tar.zst | *.tar) ;;
	*) misuse "--archive is a .tar, .tar.gz, .tar.xz or .tar.zst, not '$archive'" ;;
	esac
}

misuse() {
	usage >&2
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 2
}

set_architecture() {
	local host
	host=$(uname -m)
	case "$arch" in
	x86_64) kernel_arch=x86_64 target=vmlinux image=vmlinux package=x86-64-linux-gnu ;;
	aarch64) kernel_arch=arm64 target=Image image=arch/arm64/boot/Image package=aarch64-linux-gnu ;;
	*) misuse "--arch is x86_64 or aarch64, not '$arch'" ;;
	esac
	cross=
	[ "$arch" = "$host" ] || cross=$arch-linux-gnu-
	fragments=("$here/guest-kernel/common.config" "$here/guest-kernel/$arch.config")
	patches=("$here"/guest-kernel/patches/*.patch)
}

# --- what the kernel is made of ---

# The source package that the distribution means by linux-source: "linux-source-6.1".
source_package() {
	LC_ALL=C apt-cache depends linux-source 2>/dev/null | sed -n 's/^ *Depends: \(linux-source-[0-9][^ ]*\)$/\1/p' |
		sort -V | tail -1
}

package_field() { # package field
	LC_ALL=C apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n "s/^$2: //p" | head -1
}

installed_version() { # package
	dpkg-query -W -f='${Status} ${Version}' "$1" 2>/dev/null | sed -n 's/^install ok installed //p'
}

installed_tarball() { # package
	find -L /usr/src -maxdepth 1 -type f -name "$1.tar.*" -print -quit 2>/dev/null
}

hash_of_tree() { # directory
	(cd "$1" && find . -type f ! -path './.git/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum) |
		cut -d' ' -f1
}

hash_of_file() {
	sha256sum "$1" | cut -d' ' -f1
}

# Sets source_kind, source_path (for "package" its name) and source_line: name, version and what it contains.
find_source() {
	if [ -d "$source" ]; then
		source_kind=tree source_path=$source
		source_line="directory $(hash_of_tree "$source")"
		return 0
	fi
	if [ -n "$source" ]; then
		source_kind=tarball source_path=$source
		source_line="$(basename "$source") $(hash_of_file "$source")"
		return 0
	fi
	command -v apt-cache >/dev/null || return 1
	local name version
	name=$(source_package)
	[ -n "$name" ] || return 1
	version=$(installed_version "$name")
	source_path=$(installed_tarball "$name")
	if [ -n "$version" ] && [ -n "$source_path" ]; then
		source_kind=tarball
		source_line="$name $version $(hash_of_file "$source_path")"
		return 0
	fi
	source_kind=package source_path=$name
	source_line="$name $(package_field "$name" Version) $(package_field "$name" SHA256)"
}

# Everything that decides what comes out, a line each.
list_inputs() {
	local file
	printf 'recipe %s\nsource %s\narch %s\n' "$recipe" "$source_line" "$arch"
	printf 'compiler %s\n' "$(tool_version gcc || recorded compiler)"
	printf 'linker %s\n' "$(tool_version ld || recorded linker)"
	for file in "${fragments[@]}" "${patches[@]}"; do
		printf '%s %s\n' "${file#"$here/"}" "$(hash_of_file "$file")"
	done
}

tool_version() { # tool
	command -v "$cross$1" >/dev/null && LC_ALL=C "$cross$1" --version | head -1
}

# Where source or compiler are there no more, what they were the last time counts: it is in the kernel.
recorded() { # source|compiler|linker
	sed -n "s/^$1 //p" "$outdir/INPUTS" 2>/dev/null || true
}

# Says nothing, or what is wrong with what is there.
what_is_stale() {
	[ -e "$outdir/VERSION" ] || { echo "$outdir has no kernel"; return; }
	kernel_dir_is_whole "$outdir" || { echo "what $outdir has is not what was put there (SHA256SUMS)"; return; }
	# A kernel that does not say what it was made of was made of something else.
	[ "$(inputs_that_count <<<"$inputs")" = "$(inputs_that_count 2>/dev/null <"$outdir/INPUTS")" ] ||
		echo "$outdir was made of something else (INPUTS)"
}

# The distribution's parts may be older where only newer ones are there and cannot be used.
inputs_that_count() {
	if [ -n "$serves" ]; then grep -vE '^(source|compiler|linker) '; else cat; fi
}

# --- before it starts ---

missing_tools() { # prints the packages
	local tool
	for tool in make:make flex:flex bison:bison bc:bc patch:patch tar:tar xz:xz-utils perl:perl gcc:gcc \
		"${cross}gcc:gcc${cross:+-$package}" "${cross}ld:binutils${cross:+-$package}" \
		"${cross}strip:binutils${cross:+-$package}"; do
		command -v "${tool%%:*}" >/dev/null || printf '%s\n' "${tool#*:}"
	done
	! command -v gcc >/dev/null || printf '#include <gelf.h>\n' | gcc -E - >/dev/null 2>&1 || printf 'libelf-dev\n'
}

check_tools() {
	local missing
	mapfile -t missing < <(missing_tools | sort -u)
	[ "${#missing[@]}" -eq 0 ] || die "the kernel cannot be compiled, because something is missing:" \
		"apt-get install ${missing[*]}"
}

# One build at a time in one folder: what lies there of another one is of one that died.
take_lock() {
	parent=$(dirname "$outdir")
	mkdir -p "$parent" || die "cannot make $parent"
	exec 9>"$parent/.build-guest-kernel.lock" || die "cannot write to $parent"
	if ! flock -n 9; then
		say "another build is going on in $parent; waiting for it"
		flock 9
	fi
	work=$parent/.build-guest-kernel
	rm -rf "$work"
	mkdir "$work"
	trap 'stop_step; rm -rf "$work"' EXIT
	STEP_LOG=$work/build.log
	: >"$STEP_LOG"
}

free_mib() {
	df --output=avail -k "$work" | tail -1 | awk '{print int($1 / 1024)}'
}

# A build takes about as much as the whole source does unpacked.
needed_mib() {
	case "$source_kind $source_path" in
	tree*) du -sk "$source_path" | awk '{print int($1 / 1024) + 1}' ;;
	# One that is damaged is told when it is unpacked.
	*.xz) { xz --robot -l "$source_path" 2>/dev/null || true; } | awk '$1 == "totals" {print int($5 / 1048576) + 1}' ;;
	*) stat -c %s "$source_path" | awk '{print int($1 * 8 / 1048576) + 1}' ;;
	esac
}

check_space() {
	local free needed
	free=$(free_mib)
	needed=$(needed_mib)
	[ "$free" -ge "${needed:-0}" ] ||
		die "no space for the build: it takes some $needed MiB in $parent, and $free MiB are free"
}

# --- the steps ---

# try_step, and what to say when it failed.
build_step() { # label command...
	try_step "$@" && return
	if grep -q -s -e 'No space left on device' -e "don't have enough free space" "$STEP_LOG" || [ "$(free_mib)" -lt 8 ]; then
		die "$1: no space is left in $parent ($(free_mib) MiB are free)"
	fi
	keep_log
	die "$1 failed; the whole log is $outdir.log"
}

# With several compilers at work the reason is seldom on the last line.
keep_log() {
	grep -m 12 -E '(: error:|: fatal error:|undefined reference|^make.*Error )' "$STEP_LOG" >&2 || show_log_tail
	cp "$STEP_LOG" "$outdir.log"
}

download_source() { # package
	cd "$work" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1" && dpkg-deb -x "$1"_*.deb "$work/package" &&
		rm -f -- "$1"_*.deb
}

fetch_source() {
	[ "$source_kind" = package ] || return 0
	command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: name the kernel's source with --source"
	build_step "downloading the package $source_path" download_source "$source_path"
	source_path=$(find "$work/package" -type f -name 'linux-source-*.tar.*' -print -quit)
	[ -n "$source_path" ] || die "the package has no linux-source-*.tar.*: name the kernel's source with --source"
	source_kind=tarball
}

unpack_source() {
	local exclude=("${left_out[@]/#/--exclude=}")
	mkdir "$work/linux" || return
	if [ "$source_kind" = tree ]; then
		tar -C "$source_path" "${exclude[@]}" -cf - . | tar -C "$work/linux" -xf -
	else
		tar -C "$work/linux" --strip-components=1 "${exclude[@]}" -xf "$source_path"
	fi || return
	[ ! -d "$work/package" ] || rm -rf "$work/package"
}

kernel_version() {
	sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) *= *//p' "$work/linux/Makefile" 2>/dev/null | head -3 | paste -sd.
}

apply_patches() {
	local patch
	for patch in "${patches[@]}"; do
		printf '\n==== %s\n' "$patch" >>"$STEP_LOG"
		patch -d "$work/linux" -p1 --fuzz=0 --forward --no-backup-if-mismatch <"$patch" >>"$STEP_LOG" 2>&1 && continue
		keep_log
		die "guest-kernel/patches/$(basename "$patch") does not apply to Linux $(kernel_version) ($source_line):" \
			"adapt the patch, or name a source that it was made for with --source (docs/guest-kernel.md)"
	done
}

run_make() { # targets...
	# MAKEFLAGS and the like of the caller are not ours.
	exec env -i PATH="$PATH" HOME="$work" LC_ALL=C KBUILD_BUILD_TIMESTAMP="$build_date" KBUILD_BUILD_USER=resoluto \
		KBUILD_BUILD_HOST=sandbox KBUILD_BUILD_VERSION=1 KCONFIG_ALLCONFIG="$work/fragment" \
		make -C "$work/linux" ARCH="$kernel_arch" CROSS_COMPILE="$cross" "$@"
}

# The lines of a fragment that say something: FILE:LINE:CONFIG_NAME=VALUE<blank># REASON
fragment_lines() {
	(cd "$here" && grep -nHvE '^(#.*)?$' "${fragments[@]#"$here/"}")
}

readonly option_pattern='CONFIG_[A-Za-z0-9_]+=[^[:blank:]]+'

check_fragments() {
	local bad twice
	bad=$(fragment_lines | grep -vE "^[^:]+:[0-9]+:${option_pattern}[[:blank:]]+# ." || true)
	[ -z "$bad" ] || die "a line is CONFIG_NAME=VALUE, then '# ' and its reason; this is not: $bad"
	twice=$(fragment_lines | cut -d: -f3- | cut -d= -f1 | sort | uniq -d)
	[ -z "$twice" ] || die "in more than one line of the configuration: ${twice//$'\n'/ }"
}

# A line for each option that did not take.
refused_options() {
	local where option name
	while IFS=: read -r where line option; do
		option=$(grep -oE "^$option_pattern" <<<"$option")
		name=${option%%=*}
		if [ "${option#*=}" = n ]; then
			! grep -q "^$name=" "$work/linux/.config" || echo "$where:$line: $option did not take: something selects it"
		elif ! grep -qxF "$option" "$work/linux/.config"; then
			echo "$where:$line: $option did not take: the kernel has" \
				"$(grep -E "^(# )?${name}[= ]" "$work/linux/.config" || echo "no such option, or another one it needs is off")"
		fi
	done < <(fragment_lines)
}

configure() {
	local refused
	fragment_lines | cut -d: -f3- | grep -oE "^$option_pattern" >"$work/fragment"
	[ "$source_kind" != tree ] || build_step "cleaning the copy of the source" run_make mrproper
	build_step "configuring" run_make allnoconfig
	refused=$(refused_options)
	[ -z "$refused" ] || die "the configuration is not what guest-kernel/ asks for:"$'\n'"$refused"
}

compiled_percent() {
	local percent=$(($(wc -l <"$STEP_LOG") * 100 / make_lines))
	echo "$((percent > 99 ? 99 : percent))"
}

compile() {
	STEP_PROGRESS=compiled_percent
	build_step "compiling the guest kernel (some minutes)" run_make -j"$(nproc)" "$target"
	STEP_PROGRESS=
}

# What is distributed, without what only its builder needs.
copy_kernel() { # to
	if [ "$target" = vmlinux ]; then
		"${cross}strip" --strip-all -o "$1" "$work/linux/$image"
	else
		cp "$work/linux/$image" "$1"
	fi
}

# The first only names the others.
copy_licence() { # to
	local name
	for name in COPYING LICENSES/preferred/GPL-2.0 LICENSES/exceptions/Linux-syscall-note; do
		[ ! -f "$work/linux/$name" ] || cat "$work/linux/$name" || return
	done >"$1"
}

# The result as a folder of its own.
gather() {
	local out=$work/out hash release
	mkdir -p "$out/modules" && : >"$out/modules/list" &&
		copy_kernel "$out/vmlinux" && cp "$work/linux/.config" "$out/config" && copy_licence "$out/COPYING" &&
		cp "$STEP_LOG" "$out/build.log" && printf '%s\n' "$inputs" >"$out/INPUTS" &&
		printf '%s-built\n' "$arch" >"$out/MACHINE" &&
		hash=$(hash_of_file "$out/INPUTS" | cut -c 1-16) && release=$(run_make -s kernelrelease) &&
		printf '%s %s\n' "$release" "$hash" >"$out/VERSION" && kernel_dir_place "$out" "$outdir"
}

build() {
	check_tools
	fetch_source
	check_space
	build_step "unpacking the kernel's source" unpack_source
	[ -n "$(kernel_version)" ] || die "$source_path is not the source of a kernel: its Makefile names no version"
	apply_patches
	configure
	compile
	build_step "putting the kernel in place" gather
}

# --- release ---

write_readme() { # to
	cat >"$1" <<-EOF
	Guest kernel of resoluto-sandbox: Linux $(cut -d' ' -f1 "$outdir/VERSION") for $arch, hash $(cut -d' ' -f2 "$outdir/VERSION").

	Use it:      bash scripts/local-backend-up.sh --kernel vmlinux        (in a checkout of resoluto-sandbox)
	Verify it:   sha256sum --check SHA256SUMS
	Rebuild it:  bash scripts/build-guest-kernel.sh OUTDIR --arch $arch   (here, or in a checkout)

	INPUTS lists what it was made of; the same inputs give the same vmlinux.  The source is the package
	$(recorded source | cut -d' ' -f1,2) of the distribution, changed by guest-kernel/patches/ and configured
	by guest-kernel/*.config.  Linux is licensed under the GNU General Public License, version 2
	(COPYING): who passes this archive on offers that package, too.
	EOF
}

stage_archive() { # folder
	mkdir -p "$1/scripts/lib" &&
		(cd "$outdir" && cp -r vmlinux modules config build.log COPYING INPUTS MACHINE VERSION SHA256SUMS "$1/") &&
		cp -r "$here/guest-kernel" "$1/" &&
		cp "$here/scripts/build-guest-kernel.sh" "$1/scripts/" &&
		cp "$here/scripts/lib/say.sh" "$here/scripts/lib/kernel-dir.sh" "$1/scripts/lib/" &&
		write_readme "$1/README" && chmod -R u=rwX,go=rX "$1"
}

pack_archive() { # file
	local name stage=$work/archive part
	name=resoluto-guest-kernel-$(cut -d' ' -f1 "$outdir/VERSION")-$arch-$(cut -d' ' -f2 "$outdir/VERSION")
	stage_archive "$stage/$name" || return
	part=$(mktemp "$(dirname "$1")/.archive.XXXXXX") || return
	tar -C "$stage" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="$build_date" -cf - "$name" |
		case "$1" in
		*.xz) xz -T1 ;;
		*.gz) gzip -n ;;
		*.zst) zstd -q -19 ;;
		*) cat ;;
		esac >"$part" || { rm -f "$part"; return 1; }
	chmod 644 "$part" && mv "$part" "$1"
}

main() {
	local stale
	parse_arguments "$@"
	set_architecture
	check_fragments
	if ! find_source; then
		source_line=$(recorded source)
		[ -n "$source_line" ] || die "the kernel's source was not found: apt knows no package linux-source;" \
			"run apt-get update (as root), or name a source with --source"
	fi
	inputs=$(list_inputs)
	stale=$(what_is_stale)
	if [ -n "$check" ]; then
		[ -z "$stale" ] || die "$stale"
		exit 0
	fi
	take_lock
	stale=$(what_is_stale) # another one may just have built it
	if [ -z "$stale" ] && [ -z "$force" ]; then
		say "    guest kernel: $(cat "$outdir/VERSION") is there"
	else
		[ -n "${source_kind:-}" ] || die "the kernel's source was not found, and $stale"
		build
		say "    guest kernel: $(cat "$outdir/VERSION"), $(stat -c %s "$outdir/vmlinux") bytes"
	fi
	# The log of a build that failed, when what is there is good again.
	rm -f "$outdir.log"
	[ -z "$archive" ] || build_step "packing $archive" pack_archive "$archive"
}

main "$@"
