#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the default base image: a small root file system with a whole python3, as a tar.
#
# By mmdebstrap from the distribution's own archive, as root or (in a user namespace) as anybody.  With
# SOURCE_DATE_EPOCH set, the same archive gives the same tar.
set -euo pipefail

usage() {
	cat <<-EOF
	usage: bash scripts/build-base-image.sh OUT.tar [--suite NAME] [--include PACKAGE,...] [--leave-out PATTERN]...

	  --suite NAME     bookworm, noble ...: the suite to build from (default: this system's own)
	  --include LIST   further packages
	  --leave-out PAT  files of packages that are not unpacked, as dpkg's path-exclude takes them
	EOF
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

out=
suite=
packages=python3,ca-certificates
left_out=()

while [ $# -gt 0 ]; do
	case "$1" in
	--help | -h) usage; exit 0 ;;
	--suite) suite=${2:?--suite needs a name}; shift ;;
	--suite=*) suite=${1#*=} ;;
	--include) packages=$packages,${2:?--include needs packages}; shift ;;
	--include=*) packages=$packages,${1#*=} ;;
	--leave-out) left_out+=("--dpkgopt=path-exclude=${2:?--leave-out needs a pattern}"); shift ;;
	--leave-out=*) left_out+=("--dpkgopt=path-exclude=${1#*=}") ;;
	-*) usage >&2; die "$1 is no option" ;;
	*) [ -z "$out" ] || die "one OUT.tar, not also '$1'"; out=$1 ;;
	esac
	shift
done
[ -n "$out" ] || { usage >&2; exit 2; }
command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed: apt-get install mmdebstrap"

# The system's own suite, also where its codename is not Debian's (Ubuntu).
if [ -z "$suite" ]; then
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && printf '%s\n' "${VERSION_CODENAME:-}")
	[ -n "$suite" ] || die "/etc/os-release names no suite: say one with --suite"
fi

mode=root
[ "$(id -u)" -eq 0 ] || mode=unshare

# A folder of our own beside the result: a killed build leaves no half tar under its name.
part=$(mktemp -d "$(dirname "$out")/.base-image.XXXXXX")
trap 'rm -rf -- "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What a program in a sandbox does not read: documentation, translations, package indexes.  Licences stay, and the
# folders of manual pages: installing Java fails without them.
exclude=(--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
	--dpkgopt='path-exclude=/usr/share/man/*/*' --dpkgopt='path-exclude=/usr/share/info/*'
	--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-include=/usr/share/locale/locale.alias'
	--dpkgopt='path-exclude=/usr/share/lintian/*' --dpkgopt='path-exclude=/usr/share/zoneinfo/right/*')

# Without this choice bookworm pulls in usrmerge, and with it all of perl (47 MB).
merged=()
if [ "$suite" = bookworm ]; then
	packages=$packages,usr-is-merged
	merged=(--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr)
fi

# The program's user and its places, as the runner would make them: what is right already costs a run nothing.
# shellcheck disable=SC2016
places='echo "sandbox:x:1000:1000::/home/sandbox:/bin/sh" >>"$1"/etc/passwd && echo "sandbox:x:1000:" >>"$1"/etc/group &&
	install -d -m 0755 "$1"/home/sandbox "$1"/workspace && chown 1000:1000 "$1"/home/sandbox "$1"/workspace'

# The host's names must not travel; the guest gets its own.  Package indexes and /tmp are mmdebstrap's to clean, after
# this: its own apt.conf lies in /tmp, and without it apt would take the host's indexes for those of the image.
# shellcheck disable=SC2016
clean='rm -rf "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old "$1"/var/log/*.log &&
	echo sandbox >"$1"/etc/hostname && : >"$1"/etc/resolv.conf && : >"$1"/etc/machine-id'

mmdebstrap --quiet --mode="$mode" --variant=essential --include="$packages" "${exclude[@]}" \
	"${left_out[@]}" "${merged[@]}" \
	--customize-hook="$places" --customize-hook="$clean" --format=tar "$suite" "$part/base.tar"
[ -s "$part/base.tar" ] || die "mmdebstrap made no tar"
mv -f -- "$part/base.tar" "$out"
