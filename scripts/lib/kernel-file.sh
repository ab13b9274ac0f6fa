# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# kernel-file.sh - a guest kernel that somebody brings as a file: taken in, and found out whether it can do it.
#
# Only a boot tells what a kernel can do.  The runner says on the console what it misses and which option that is; what
# went wrong before the runner is told by the words of the kernel and of QEMU.  $machine is set by the caller.
# shellcheck disable=SC2154

kernel_file_bytes() { # file offset count: hex digits
	od -An -v -tx1 -j "$2" -N "$3" "$1" | tr -d ' \n'
}

# Leaves with the reason unless it is what QEMU can start as it is.
check_kernel_format() { # file
	local advice="give the unpacked vmlinux, as scripts/extract-vmlinux of the kernel's source makes it"
	case "$machine" in
	aarch64)
		[ "$(kernel_file_bytes "$1" 56 4)" = 41524d64 ] || die "--kernel $1 is not a kernel for aarch64 (an Image)"
		return 0
		;;
	esac
	[ "$(kernel_file_bytes "$1" 514 4)" != 48647253 ] || die "--kernel $1 is a packed kernel (bzImage): $advice"
	[ "$(kernel_file_bytes "$1" 0 4)" = 7f454c46 ] ||
		die "--kernel $1 is not an uncompressed kernel (vmlinux, an ELF file): $advice"
}

# "6.1.192-resoluto" of the banner that every kernel has.
kernel_file_version() { # file
	grep -a -m 1 -o 'Linux version [0-9][^ ]*' "$1" | head -1 | cut -d' ' -f3
}

# Ours says so in its banner.  Of any other nobody knows the clock rate: the row of Ubuntu is for those.  A guess:
# probe_kernel_file tries the other one.
kernel_file_row() { # file
	case "$machine $(kernel_file_version "$1")" in
	*-resoluto) printf '%s-built\n' "$machine" ;;
	aarch64*) printf 'aarch64-debian\n' ;;
	*) printf 'x86_64-ubuntu\n' ;;
	esac
}

# The folder of a release archive, from which only what a kernel's folder has is taken.
unpack_kernel_archive() { # file to
	local name all=$2/all
	mkdir "$all"
	tar -C "$all" --strip-components=1 --no-same-owner -xf "$1" || die "--kernel $1 is not an archive"
	for name in vmlinux config build.log COPYING INPUTS MACHINE VERSION SHA256SUMS modules/list; do
		if [ ! -f "$all/$name" ] || [ -L "$all/$name" ]; then
			die "--kernel $1 is not an archive of build-guest-kernel.sh: it has no $name"
		fi
		mkdir -p "$(dirname "$2/$name")"
		mv "$all/$name" "$2/$name"
	done
	rm -rf "$all"
	kernel_dir_is_whole "$2" || die "--kernel $1 is damaged: its files are not what SHA256SUMS says"
	[ "$(cat "$2/MACHINE")" = "$machine-built" ] ||
		die "--kernel $1 is a kernel for $(cut -d- -f1 "$2/MACHINE"), and this is $machine"
}

# A folder as kernel-dir.sh describes it, out of what the caller gave.
import_kernel_file() { # file to
	rm -rf "$2"
	mkdir -p "$2/modules"
	case "$1" in
	*.tar | *.tar.gz | *.tar.xz | *.tar.zst)
		unpack_kernel_archive "$1" "$2"
		return 0
		;;
	esac
	check_kernel_format "$1"
	cp "$1" "$2/vmlinux"
	: >"$2/modules/list"
	kernel_file_row "$1" >"$2/MACHINE"
	printf '%s %s\n' "$(kernel_file_version "$1" || echo unknown)" "$(sha256sum "$1" | cut -c 1-16)" >"$2/VERSION"
	kernel_dir_seal "$2"
}

readonly NO_REASON="it did not get as far as the runner"
readonly NO_WORDS="nothing came from it"

# What the words of the runner, of the kernel or of QEMU mean.
explain_kernel_failure() { # file with the words
	local lacks packer
	lacks=$(sed -n 's/.*this kernel lacks \(CONFIG_[^:]*\).*/\1/p' "$1" | head -1)
	packer=$(sed -n 's/.*Filesystem uses "\([a-z0-9]*\)" compression.*/\1/p' "$1" | head -1)
	if [ -n "$lacks" ]; then
		printf 'it lacks %s' "$lacks"
	elif grep -q 'without PVH ELF Note' "$1"; then
		printf 'it is no kernel of Linux, or lacks CONFIG_PVH'
	elif grep -q 'Unable to mount root fs' "$1"; then
		printf 'it lacks CONFIG_BLK_DEV_INITRD'
	elif grep -q -e 'No working init found' -e 'Failed to execute /init' "$1"; then
		printf 'it lacks CONFIG_BINFMT_ELF or CONFIG_64BIT'
	elif [ -n "$packer" ]; then
		printf 'it lacks CONFIG_SQUASHFS_%s' "${packer^^}"
	elif grep -q '  | ' "$1"; then
		printf '%s; its last words stand above' "$NO_REASON"
	else
		printf '%s: it is no kernel, is damaged, or lacks CONFIG_SERIAL_8250_CONSOLE' "$NO_WORDS"
	fi
}

# A boot by emulation with the configuration that RESOLUTO_LOCAL_ENV names and this row of the machine table.
kernel_file_boots() { # command line program, row, file for what it says
	local rc=0
	RESOLUTO_LOCAL_ACCEL=tcg RESOLUTO_LOCAL_MACHINE=$2 "$1" run --quiet -- /bin/true >"$3" 2>&1 </dev/null || rc=$?
	cat "$3" >>"$STEP_LOG"
	return "$rc"
}

# On x86_64 the devices are named by tables of ACPI or by words of the command line, as the row has it, and a kernel may know
# only one of them.  Prints the other row where that may be why it did not boot; an archive says itself which is its own.
other_kernel_row() { # folder, why it did not boot
	local row
	row=$(cat "$1/MACHINE")
	[ ! -e "$1/INPUTS" ] || return 0
	case "$2" in
	*CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES* | "$NO_REASON"* | "$NO_WORDS"*) ;;
	*) return 0 ;;
	esac
	case "$row" in
	x86_64-built) printf 'x86_64-ubuntu\n' ;;
	x86_64-*) printf 'x86_64-built\n' ;;
	esac
}

# Sets explanation, unless it boots, and tells the folder the row with which it does.
try_rows() { # command line program, folder of the kernel, folder for what it says
	local row other
	row=$(cat "$2/MACHINE")
	explanation=
	! kernel_file_boots "$1" "$row" "$3/1" || return 0
	explanation=$(explain_kernel_failure "$3/1")
	other=$(other_kernel_row "$2" "$explanation")
	[ -n "$other" ] || return 0
	say "==> probing it as $other: it did not boot as $row"
	if kernel_file_boots "$1" "$other" "$3/2"; then
		say "    it boots as $other"
		explanation=
		printf '%s\n' "$other" >"$2/MACHINE"
		kernel_dir_seal "$2"
	else
		explanation=$(better_explanation "$explanation" "$(explain_kernel_failure "$3/2")")
	fi
}

# Of two rows the kernel came further with the one that found something else than that there are no devices.
better_explanation() { # of the first row, of the second
	case "$2" in
	*CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES* | "$NO_REASON"* | "$NO_WORDS"*) printf '%s' "$1" ;;
	*) printf '%s' "$2" ;;
	esac
}

# By emulation, so that what fails is the kernel's fault.
probe_kernel_file() { # command line program, file, its folder
	local words explanation
	words=$(mktemp -d)
	say "==> probing $2 with a real boot"
	try_rows "$1" "$3" "$words"
	[ -z "$explanation" ] || cat "$words"/* >&2
	rm -rf "$words"
	[ -z "$explanation" ] || die "--kernel $2: $explanation.  What a guest kernel needs is in guest-kernel/common.config," \
		"built in, not as modules; --kernel built and --kernel distro make one that has it"
}
