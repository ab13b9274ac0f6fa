# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# uninstall.sh - what local-backend-up.sh installed is written down where no `make clean` comes, and removed again.
#
# Set by the caller: $state, $cache, $config, $copy, $prefix, $build_dir.
# shellcheck disable=SC2154

# The files of this build and of every installation before, whichever its prefix was.
installed_files() {
	{
		cat "$state/installed-files" 2>/dev/null || true
		grep -v '^#' "$build_dir/meson-logs/install-log.txt" 2>/dev/null || true
	} | LC_ALL=C sort -u
}

remember_installed() {
	installed_files >"$state/installed-files.part" && mv "$state/installed-files.part" "$state/installed-files"
}

# By root only what is not ours already.  A folder with our name goes with the last file in it.
remove_installed() { # file
	local folder=${1%/*} by=()
	[ -w "$folder" ] || by=(as_root)
	"${by[@]}" rm -f -- "$1" || return
	case "${folder##*/}" in
	resoluto | resoluto-sandbox) "${by[@]}" rmdir -- "$folder" 2>/dev/null || true ;;
	esac
}

# Sets removed_count; 1: something of ours is still there, which it names.
remove_installed_files() {
	local file rc=0
	removed_count=0
	while IFS= read -r file; do
		[ -e "$file" ] || [ -L "$file" ] || continue
		[ ! -d "$file" ] || [ -L "$file" ] || continue
		if (remove_installed "$file"); then
			removed_count=$((removed_count + 1))
		else
			say "not removed: $file"
			rc=1
		fi
	done <<<"$(installed_files)"
	# Who runs from the build folder, as the configuration says then, has installed nothing there.
	if [ "$prefix" != none ] && [ -e "$prefix/bin/resoluto-sandbox" ] &&
		! grep -qxF "$prefix/bin/resoluto-sandbox" <<<"$(installed_files)" &&
		[ -z "$(config_value "$config" RESOLUTO_LIBEXEC_DIR)" ]; then
		say "not removed: $prefix/bin/resoluto-sandbox and what was installed with it: there is no list of these files;" \
			"install once more to the same --prefix, then --uninstall"
		rc=1
	fi
	return "$rc"
}

# What its owner wrote into it stays.
remove_config() {
	local lines
	lines=$(lines_of_owner "$config")
	[ "$config" = "$copy" ] || rm -f -- "$copy"
	if grep -q '[^[:blank:]]' <<<"$lines"; then
		printf '%s\n' "$lines" >"$config"
	else
		rm -f -- "$config"
	fi
}

remove_all() {
	local place rc=0
	remove_installed_files || rc=1
	# What could not be removed must be known the next time.
	[ "$rc" -ne 0 ] || rm -f -- "$state/installed-files"
	rm -rf -- "$cache/kernel" "$cache/images" "$cache/refs.json" "$cache/templates" "$cache/provision.log" \
		"$cache/base-image.key"
	rm -rf -- "$state/runs" "$state/launch" "$state/slots" "$state/claim.lock" "$state/tsc.json" "$state/kvm-failed"
	# Nor may it be unknown then where the list of it is.
	[ "$rc" -ne 0 ] || remove_config
	release_services
	rmdir -- "$cache" "$state" "$(dirname "$config")" 2>/dev/null || true
	say "removed: $removed_count installed files, the kernels and images in $cache, the runs in $state;" \
		"packages stay installed"
	[ ! -e "$config" ] || say "    $config stays: $([ "$rc" -eq 0 ] && echo "it has lines of its owner" || echo "it says where things are")"
	for place in "$cache" "$state"; do
		[ ! -d "$place" ] || say "    $place stays: there is something else in it"
	done
	return "$rc"
}
