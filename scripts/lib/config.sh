# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# config.sh - the configuration that provisioning records: tried under another name, and put in place at once when it works.
#
# Set by the caller: $config and $copy (where it is recorded), $trial (what everything goes by until then), $cache, $state,
# $kernel_dir, $image_name, $prefix, $build_dir, $machine.
# shellcheck disable=SC2154

# As resoluto-sandbox reads a line: spaces, "export" and a pair of quotes do not count, and the last of a name does.
config_value() { # file name
	[ -f "$1" ] || return 0
	sed -n -E "s/\r\$//; s/^[[:blank:]]*(export )?$2=//p" "$1" | tail -n 1 | sed -E "s/^(['\"])(.*)\1\$/\2/"
}

# What provisioning writes; every other line of a configuration is its owner's, and stays.
readonly CONFIG_HEAD='# written by scripts/local-backend-up.sh;'
readonly CONFIG_NAMES='RESOLUTO_(LOCAL_(RUNTIME|ACCEL|MACHINE|QEMU|KERNEL|INITRD|UIDS)|SANDBOX_IMAGE|(CACHE|STATE|LIBEXEC)_DIR)'

lines_of_owner() { # file
	[ ! -f "$1" ] || LC_ALL=C grep -a -v -E "^($CONFIG_HEAD|[[:blank:]]*(export )?$CONFIG_NAMES=)" "$1" || true
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

config_text() { # acceleration qemu
	printf '%s read by resoluto-sandbox, or: set -a; source local.env; set +a\n' "$CONFIG_HEAD"
	printf 'RESOLUTO_LOCAL_RUNTIME=microvm\n'
	[ -z "$1" ] || printf 'RESOLUTO_LOCAL_ACCEL=%s\n' "$1"
	printf 'RESOLUTO_LOCAL_MACHINE=%s\n' "$(cat "$kernel_dir/MACHINE")"
	printf 'RESOLUTO_LOCAL_QEMU=%s\n' "$2"
	printf 'RESOLUTO_LOCAL_KERNEL=%s\n' "$kernel_dir/vmlinux"
	printf 'RESOLUTO_LOCAL_INITRD=%s\n' "$kernel_dir/initrd.img"
	printf 'RESOLUTO_SANDBOX_IMAGE=%s\n' "$image_name"
	[ "$(id -u)" -ne 0 ] || printf 'RESOLUTO_LOCAL_UIDS=%s\n' "$(uid_range)"
	[ -z "${RESOLUTO_CACHE_DIR:-}" ] || printf 'RESOLUTO_CACHE_DIR=%s\n' "$cache"
	[ -z "${RESOLUTO_STATE_DIR:-}" ] || printf 'RESOLUTO_STATE_DIR=%s\n' "$state"
	[ "$prefix" != none ] || printf 'RESOLUTO_LIBEXEC_DIR=%s\n' "$build_dir/src/shim"
	lines_of_owner "$config"
}

# As readable as the one that it may replace: what its owner wrote there may be a secret (a proxy's password).
make_trial() { # acceleration qemu
	rm -f -- "$trial"
	if [ -f "$config" ]; then
		(umask 077 && : >"$trial") || return
		chown --reference="$config" "$trial" 2>/dev/null || true
		chmod --reference="$config" "$trial" || return
	fi
	config_text "$1" "$2" >"$trial"
}

# From now on this script's own calls go by it; everybody else's by what is recorded.
write_trial() { # acceleration; "" before it was found out, so that nothing can run by mistake
	local qemu
	qemu=$(qemu_path)
	[ -n "$qemu" ] || die "QEMU was not found: install qemu-system-$machine or set RESOLUTO_LOCAL_QEMU"
	make_trial "$1" "$qemu" || die "cannot write $trial"
	export RESOLUTO_LOCAL_ENV=$trial
	unset RESOLUTO_LOCAL_ACCEL RESOLUTO_LOCAL_MACHINE RESOLUTO_LOCAL_KERNEL RESOLUTO_LOCAL_INITRD RESOLUTO_SANDBOX_IMAGE
}

# What was tried and works.  Nobody stops in between, so that the checkout's copy says the same.
record_trial() {
	[ "$config" = "$copy" ] || cp -p "$trial" "$copy.part" || die "cannot write $copy"
	(
		trap '' HUP INT TERM
		mv -f "$trial" "$config" && { [ "$config" = "$copy" ] || mv -f "$copy.part" "$copy"; }
	) || die "cannot write $config"
	export RESOLUTO_LOCAL_ENV=$config
}
