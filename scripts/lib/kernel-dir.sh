# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# kernel-dir.sh - a folder with a guest kernel: put in place at once or not at all, checked before it is believed.
#
# It holds vmlinux, modules/list with modules/*.ko, MACHINE (the row of src/runtime/microvm/cmdline.c), SHA256SUMS over all
# of them, and VERSION (version and hash), which is the last to come: who finds it finds all.  initrd.img, which is made
# from the folder and the runner, is not part of it.

kernel_dir_seal() { # folder: write SHA256SUMS
	local files
	files=$(cd "$1" && find . -type f ! -name SHA256SUMS ! -name initrd.img -printf '%P\n' | LC_ALL=C sort) &&
		(cd "$1" && xargs -d '\n' sha256sum <<<"$files" >SHA256SUMS)
}

# All its files are there, and they are what was put there.
kernel_dir_is_whole() { # folder
	[ -s "$1/VERSION" ] && [ -s "$1/MACHINE" ] && [ -s "$1/vmlinux" ] && [ -f "$1/modules/list" ] &&
		[ -s "$1/SHA256SUMS" ] && (cd "$1" && sha256sum --check --status --strict SHA256SUMS) 2>/dev/null || return 1
	local name
	for name in VERSION MACHINE vmlinux modules/list; do
		grep -q "  $name\$" "$1/SHA256SUMS" || return 1
	done
}

kernel_dir_place() { # new-folder outdir: seal it and let it take the place of what is there
	kernel_dir_seal "$1" && kernel_dir_is_whole "$1" || return
	chmod -R u=rwX,go=rX "$1" || return
	mkdir -p "$2" && rm -rf "$2/.new" && mkdir "$2/.new" || return
	cp -r "$1/." "$2/.new/" || { rm -rf "$2/.new"; return 1; }
	# Nobody stops in between; what a power cut leaves has no VERSION, and is made again.
	(trap '' HUP INT TERM && kernel_dir_swap "$2")
}

kernel_dir_swap() { # outdir, with what is new in .new
	local name
	rm -rf "$1/VERSION" "$1/modules"
	for name in "$1/.new"/*; do
		[ "$name" = "$1/.new/VERSION" ] || mv -f "$name" "$1/" || return
	done
	mv "$1/.new/VERSION" "$1/VERSION" && rmdir "$1/.new"
}
