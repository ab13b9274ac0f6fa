#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# provision-kernel.sh - unpack (never install) a distribution's cloud kernel for the microVM.
#
#	scripts/provision-kernel.sh OUTDIR [--distro debian|ubuntu] [--deb FILE]... [--module NAME]... [--force]
#
# Writes OUTDIR/vmlinux (what QEMU boots by PVH; on arm64 the Image), OUTDIR/modules/*.ko with
# OUTDIR/modules/list (their names in the order in which they must be loaded), OUTDIR/MACHINE, OUTDIR/SHA256SUMS
# and OUTDIR/VERSION.  Needs apt (any user) or the package files given by --deb.  --module adds one to those of the
# guest.  The place is changed at once or not at all, and not when it already holds the same version, unharmed.  Where apt
# has nothing (no index, no network) what the place holds serves, whichever version it is, and that is said.
set -euo pipefail

# shellcheck source=scripts/lib/kernel-dir.sh
. "$(dirname "$0")/lib/kernel-dir.sh"
# shellcheck source=scripts/lib/distro.sh
. "$(dirname "$0")/lib/distro.sh"

readonly wanted_modules=(virtio_ring virtio virtio_mmio virtio_console virtio_blk squashfs overlay)
readonly vmlinux_min_bytes=4000000

say() { printf 'provision-kernel: %s\n' "$*"; }
die() { printf 'provision-kernel: %s\n' "$*" >&2; exit 1; }
usage() { sed -n 's/^#\t//p' "$0" | head -1 >&2; exit 2; }

newest_of() { # package that always means the newest kernel
	LC_ALL=C apt-cache depends --no-recommends --no-suggests "$1" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | sort -V | tail -1
}

# The name of the package behind the name that always means the newest kernel, and the packages with its modules; nothing
# where apt does not know it.
resolve_packages() { # distro meta-package
	local image
	image=$(newest_of "$2")
	if [ -z "$image" ] && [ "$(id -u)" = 0 ]; then
		apt-get -qq update >&2 || say "apt-get update failed" >&2
		image=$(newest_of "$2")
	fi
	[ -n "$image" ] || return 0
	echo "$image"
	[ "$1" = debian ] || echo "${image/linux-image-/linux-modules-}"
}

bytes_at() { # file offset count: hex digits
	od -An -v -tx1 -j "$2" -N "$3" "$1" | tr -d ' \n'
}

number_at() { # file offset: an unsigned 32 bit number, little endian
	od -An -v -tu4 --endian=little -j "$2" -N 4 "$1" | tr -d ' \n'
}

unpack_payload() { # from to
	case $(bytes_at "$1" 0 6) in
	02214c18*) lz4 -dcq "$1" ;;
	1f8b*) gzip -dc "$1" ;;
	28b52ffd*) zstd -dcq "$1" ;;
	fd377a585a00) xz -dc "$1" ;;
	5d0000*) xz -dc --format=lzma "$1" ;;
	425a68*) bzip2 -dc "$1" ;;
	7f454c46*) cat "$1" ;;
	*) die "the kernel is packed in a way that is not known: it starts with $(bytes_at "$1" 0 6)" ;;
	esac >"$2"
}

# The boot protocol (Documentation/x86/boot.rst) says where the packed kernel starts and how long it is;
# all packers but gzip are followed by its unpacked size.
extract_x86() { # bzImage to
	local file=$1 to=$2 sectors offset length
	[ "$(bytes_at "$file" 514 4)" = 48647253 ] || die "$file is not a bzImage"
	sectors=$(od -An -v -tu1 -j 497 -N 1 "$file" | tr -d ' ')
	[ "$sectors" -gt 0 ] || sectors=4
	offset=$(($(number_at "$file" 584) + (sectors + 1) * 512))
	length=$(number_at "$file" 588)
	dd if="$file" of="$to.packed" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count="$length" status=none
	[ "$(stat -c %s "$to.packed")" = "$length" ] || die "$file is cut short"
	case $(bytes_at "$to.packed" 0 2) in
	1f8b) ;;
	*)
		local size
		size=$(number_at "$to.packed" $((length - 4)))
		truncate -s $((length - 4)) "$to.packed"
		;;
	esac
	unpack_payload "$to.packed" "$to"
	rm "$to.packed"
	[ -z "${size:-}" ] || [ "$(stat -c %s "$to")" = "$size" ] ||
		die "the unpacked kernel has $(stat -c %s "$to") bytes instead of $size"
	[ "$(bytes_at "$to" 0 4)" = 7f454c46 ] || die "the unpacked kernel is not an ELF file"
}

extract_arm64() { # vmlinuz to
	case $(bytes_at "$1" 0 2) in
	1f8b) gzip -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
	[ "$(bytes_at "$2" 56 4)" = 41524d64 ] || die "$1 is not an arm64 kernel"
}

find_module() { # root name: path of its file, or nothing
	find "$1" -path '*/kernel/*' \( -name "$2.ko" -o -name "${2//_/-}.ko" -o -name "$2.ko.*" -o -name "${2//_/-}.ko.*" \) \
		-print -quit
}

is_builtin() { # root name
	cat "$1"/lib/modules/*/modules.builtin "$1"/usr/lib/modules/*/modules.builtin 2>/dev/null |
		sed 's,.*/,,; s,\.ko$,,; s,-,_,g' | grep -x "${2//-/_}" >/dev/null
}

unpack_module() { # from to
	case $1 in
	*.xz) xz -dc "$1" >"$2" ;;
	*.zst) zstd -dcq "$1" >"$2" ;;
	*.gz) gzip -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
	[ "$(bytes_at "$2" 0 4)" = 7f454c46 ] || die "the module $1 is not an ELF file"
}

# Loading is a good part of the boot, so what costs time there and is not needed goes: debug and type data, the
# signature (the initramfs as a whole is what is trusted), tables for stack traces and for tracing, and the lists by
# which a kernel patches thunks away: without these the module keeps its thunks, the safe side.
slim_module() { # file
	command -v objcopy >/dev/null || return 0
	local section options=(--strip-unneeded)
	for section in .orc_unwind .orc_unwind_ip __mcount_loc .return_sites .retpoline_sites .smp_locks \
		.ibt_endbr_seal .BTF .comment; do
		options+=(--remove-section="$section" --remove-section=".rela$section")
	done
	objcopy "${options[@]}" "$1"
	[ "$(bytes_at "$1" 0 4)" = 7f454c46 ] || die "objcopy damaged the module $1"
}

# What a module needs comes from itself; it goes before it into the list.
take_module() { # root modules name
	local from name=${3//-/_} need
	grep -qxs "$name" "$2/list" && return
	from=$(find_module "$1" "$name")
	if [ -z "$from" ]; then
		is_builtin "$1" "$name" && return
		die "the kernel package has no module $name"
	fi
	unpack_module "$from" "$2/$name.ko"
	for need in $(tr '\0' '\n' <"$2/$name.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
		take_module "$1" "$2" "$need"
	done
	slim_module "$2/$name.ko"
	echo "$name" >>"$2/list"
}

download() { # package...: into the current folder
	local arch_name
	for arch_name in "$@"; do
		apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$arch_name" >/dev/null || return
	done
}

build() { # work debs...
	local work=$1 version
	shift
	for deb in "$@"; do
		dpkg-deb -x "$deb" "$work/root"
	done
	local image
	image=$(find "$work/root/boot" -name 'vmlinuz-*' -type f -print -quit 2>/dev/null)
	[ -n "$image" ] || die "the package has no /boot/vmlinuz-*"
	version=${image##*/vmlinuz-}
	mkdir -p "$work/out/modules"
	case $arch in
	arm64) extract_arm64 "$image" "$work/out/vmlinux" ;;
	*) extract_x86 "$image" "$work/out/vmlinux" ;;
	esac
	[ "$(stat -c %s "$work/out/vmlinux")" -ge $vmlinux_min_bytes ] || die "the unpacked kernel is too small"
	: >"$work/out/modules/list"
	for name in "${wanted_modules[@]}" "${more_modules[@]}"; do
		take_module "$work/root" "$work/out/modules" "$name"
	done
	machine_row "$distro" >"$work/out/MACHINE"
	printf '%s %s\n' "$version" "$(sha256sum "$@" | sha256sum | cut -c 1-16)" >"$work/out/VERSION"
}

# The row of src/runtime/microvm/cmdline.c for this kernel.
machine_row() { # distro
	case $arch-$1 in
	arm64-*) echo aarch64-debian ;;
	*-ubuntu) echo x86_64-ubuntu ;;
	*) echo x86_64-debian ;;
	esac
}

# A whole kernel of this distribution for this machine, with the modules that are asked for.
is_usable() { # outdir
	local name
	kernel_dir_is_whole "$1" && [ "$(cat "$1/MACHINE")" = "$(machine_row "$distro")" ] || return 1
	for name in "${more_modules[@]}"; do
		grep -qxs "${name//-/_}" "$1/modules/list" || return 1
	done
}

version_of() { # outdir
	cut -d' ' -f1 "$1/VERSION"
}

# Without apt what is there must do.
serve_or_die() { # outdir why
	if [ $force = yes ] || ! is_usable "$1"; then
		die "$2: run apt-get update first (as root)"
	fi
	say "$(version_of "$1") is there, and serves; newer ones could not be looked for: $2"
	exit 0
}

outdir="" distro="" force=no debs=() more_modules=()
while [ $# -gt 0 ]; do
	case $1 in
	--distro) [ $# -gt 1 ] || usage; distro=$2; shift ;;
	--deb) [ $# -gt 1 ] || usage; debs+=("$(realpath "$2")"); shift ;;
	--module) [ $# -gt 1 ] || usage; more_modules+=("$2"); shift ;;
	--force) force=yes ;;
	-*) usage ;;
	*) [ -z "$outdir" ] || usage; outdir=$1 ;;
	esac
	shift
done
[ -n "$outdir" ] || usage
command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: this needs a Debian or Ubuntu system"
command -v lz4 >/dev/null || die "lz4 is missing: apt-get install lz4"
arch=$(dpkg --print-architecture)
readonly arch

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
distro=${distro:-$(distro_of /etc/os-release)}
if [ ${#debs[@]} -eq 0 ]; then
	meta=$(distro_kernel_package "$distro" "$arch") ||
		die "no kernel package is known for '$distro': name a kernel by --deb, or to local-backend-up.sh by --kernel FILE"
	packages=$(resolve_packages "$distro" "$meta")
	[ -n "$packages" ] || serve_or_die "$outdir" "apt does not know $meta"
	if [ $force = no ] && is_usable "$outdir" && [ "linux-image-$(version_of "$outdir")" = "$(head -1 <<<"$packages")" ]; then
		say "$(version_of "$outdir") is there"
		exit 0
	fi
	say "download $(tr '\n' ' ' <<<"$packages")"
	mkdir "$work/debs"
	# shellcheck disable=SC2086 # one word per package
	(cd "$work/debs" && download $packages) || serve_or_die "$outdir" "apt-get download ${packages//$'\n'/ } failed"
	debs=("$work"/debs/*.deb)
fi
build "$work" "${debs[@]}"
kernel_dir_place "$work/out" "$outdir" || die "cannot put the kernel into $outdir"
say "$(cut -d' ' -f1 "$outdir/VERSION"): vmlinux $(stat -c %s "$outdir/vmlinux") bytes, $(wc -l <"$outdir/modules/list") modules"
