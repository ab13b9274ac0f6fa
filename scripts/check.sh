#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install what the tests need and run every test once; units also with ASan and UBSan.  --full adds sanitizers
# and clang end to end, the guest kernel of aarch64, and the soak tests.  Ends with one line "N passed, N failed", counted from the results.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
# shellcheck source=scripts/lib/say.sh
. scripts/lib/say.sh
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh

full=
only=
while [ $# -gt 0 ]; do
	case "$1" in
	--full) full=1 ;;
	--only) only=${2:?--only needs a pytest expression}; shift ;;
	--help | -h)
		say "usage: bash scripts/check.sh [--full] [--only PYTEST-EXPRESSION]"
		exit 0
		;;
	*) die "$1 is no option; see --help" ;;
	esac
	shift
done

# Test services and downloads are kept outside the checkout.
if [ "$(id -u)" -eq 0 ]; then
	cache=${RESOLUTO_TEST_CACHE:-/var/cache/resoluto-sandbox-tests}
else
	cache=${RESOLUTO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/resoluto-sandbox-tests}
fi
results=$here/build-check/results
mkdir -p "$cache" "$results"
STEP_LOG=$results/steps.log
: >"$STEP_LOG"
rm -f "$results"/*.xml
failed_steps=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/resoluto-check-XXXXXX")
chmod 0711 "$scratch"
declare -A behind=()
trap 'stop_step; stop_behind; release_services; count_what_there_is; rm -rf "$scratch"' EXIT

# Nothing of the caller's configuration reaches the tests.
for name in $(compgen -e RESOLUTO_ | grep -v '^RESOLUTO_TEST_CACHE$' || true); do
	unset "$name"
done
unset XDG_STATE_HOME XDG_CONFIG_HOME || true

counted=
count_results() {
	counted=1
	find "$results" -name '*.xml' -print0 | sort -z | xargs -0 python3 scripts/lib/count.py "$failed_steps"
}

# A step that failed ends the check: what was tested until then is counted, and the step is a failure.
count_what_there_is() {
	[ -z "$counted" ] || return 0
	failed_steps=$((failed_steps + 1))
	count_results || true
}

python_tools() {
	local stamp=$cache/venv/ready-2
	if [ ! -f "$stamp" ]; then
		rm -rf "$cache/venv"
		python3 -m venv "$cache/venv"
		"$cache/venv/bin/pip" install -q --disable-pip-version-check pytest pytest-timeout jsonschema \
			hypothesis pydantic
		touch "$stamp"
	fi
	if [ ! -f "$cache/original/ready" ]; then
		rm -rf "$cache/original"
		"$cache/venv/bin/pip" install -q --disable-pip-version-check --ignore-requires-python \
			--target "$cache/original" resoluto-sandbox==0.1.0 pydantic
		touch "$cache/original/ready"
	fi
}

# A real package of somebody else's with its own tests, and what they need, as files.
real_inputs() {
	[ ! -f "$cache/inputs/ready-2" ] || return 0
	rm -rf "$cache/inputs"
	mkdir -p "$cache/inputs/wheels"
	"$cache/venv/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary :all: \
		-d "$cache/inputs" toolz==0.12.1
	"$cache/venv/bin/pip" install -q --disable-pip-version-check --target "$cache/inputs/wheels" pytest
	touch "$cache/inputs/ready-2"
}

configure() { # directory, options...
	local dir=$1
	shift
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@"
	else
		meson setup "$dir" "$here" "$@"
	fi
	ninja -C "$dir"
}

meson_tests() { # directory, name, arguments of meson test...
	local dir=$1 name=$2 rc=0
	shift 2
	say "==> tests: $name"
	rm -f "$dir/meson-logs/$name.junit.xml"
	meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "$name" "$@" || rc=$?
	# A failed test is counted from the results; a run that failed without one, or left none, counts here.
	if ! cp "$dir/meson-logs/$name.junit.xml" "$results/$name.xml"; then
		failed_steps=$((failed_steps + 1))
	elif [ "$rc" -ne 0 ] && ! grep -qE '<(failure|error)' "$results/$name.xml"; then
		failed_steps=$((failed_steps + 1))
	fi
}

# A test that stands still fails after its limit, and the others go on.
py_tests() { # name, seconds for one test, arguments of pytest...
	local name=$1 limit=$2 rc=0
	shift 2
	say "==> tests: $name"
	# A folder of our own: pytest removes those of older sessions under its default place, even running ones.
	"$cache/venv/bin/python" -m pytest -q -p no:cacheprovider --basetemp "$scratch/$name" \
		--timeout "$limit" --junitxml "$results/$name.xml" "$@" \
		${only:+-k "$only"} || rc=$?
	# 1 = some failed (they are counted), 5 = none selected by --only.
	case "$rc" in
	0 | 1) ;;
	5) [ -n "$only" ] || failed_steps=$((failed_steps + 1)) ;;
	*) failed_steps=$((failed_steps + 1)) ;;
	esac
}

# Minutes of work behind everything that does not need what it makes.
start_behind() { # name, command...
	local name=$1
	shift
	set -m # a process group of its own, to be stopped as a whole
	(
		renice -n 19 "$BASHPID" >/dev/null
		"$@"
	) >"$results/$name.log" 2>&1 </dev/null &
	behind[$name]=$!
	set +m
}

# Its failure is counted, and shown; what needs it fails by itself, the rest goes on.
await_behind() { # name
	local rc=0 start
	start=$(date +%s)
	say "==> waiting for: $1"
	wait "${behind[$1]}" || rc=$?
	unset "behind[$1]"
	if [ "$rc" -ne 0 ]; then
		tail -n 30 "$results/$1.log" >&2
		say "    $1 failed (exit code $rc); its log is $results/$1.log"
		failed_steps=$((failed_steps + 1))
		return "$rc"
	fi
	say "    $1: done after $(($(date +%s) - start)) s more"
}

stop_behind() {
	local name
	for name in "${!behind[@]}"; do
		kill -- "-${behind[$name]}" 2>/dev/null || true
	done
}

provision() { # built|distro
	RESOLUTO_CACHE_DIR=$cache/sandbox RESOLUTO_STATE_DIR=$cache/state RESOLUTO_LOCAL_ENV=$cache/local.env \
		bash scripts/local-backend-up.sh --prefix none --build-dir "$here/build-check" --kernel "$1"
}

# What the tests are told of the provisioned one.
export_kernel() {
	export RESOLUTO_LOCAL_ENV=$cache/local.env RESOLUTO_BUILD_DIR=$here/build-check
	export RESOLUTO_TEST_KERNELS=$cache/sandbox/kernel
	RESOLUTO_TEST_KERNEL=$(sed -n 's/^RESOLUTO_LOCAL_KERNEL=//p' "$cache/local.env")
	RESOLUTO_TEST_INITRD=$(sed -n 's/^RESOLUTO_LOCAL_INITRD=//p' "$cache/local.env")
	RESOLUTO_TEST_ROOTFS=$("$RESOLUTO_BUILD_DIR/src/cli/resoluto-sandbox" image ls --json |
		jq -r '.[] | select(.ref | startswith("resoluto-sandbox-base:")) | .path')
	export RESOLUTO_TEST_KERNEL RESOLUTO_TEST_INITRD RESOLUTO_TEST_ROOTFS
}

main() {
	ensure_packages "${BUILD_PACKAGES[@]}" "${RUN_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
	[ -z "$full" ] || ensure_packages "${FULL_PACKAGES[@]}"
	ensure_index linux-source
	start_behind guest-kernel bash scripts/build-guest-kernel.sh "$cache/sandbox/kernel/built"
	step "python tools and the original" python_tools
	step "real inputs" real_inputs
	step "building with gcc, warnings as errors" configure "$here/build-check" -Dwerror=true -Dtests=true
	step "building with ASan and UBSan" configure "$here/build-asan" -Dwerror=true -Dtests=true \
		-Db_sanitize=address,undefined -Db_lundef=false -Dguest=disabled --buildtype=debugoptimized

	export RESOLUTO_TEST_CACHE=$cache RESOLUTO_TEST_ORIGINAL=$cache/original
	meson_tests "$here/build-check" units --suite unit --suite contract --suite fuzz
	meson_tests "$here/build-check" rules --suite rules
	meson_tests "$here/build-asan" units-asan --suite unit --suite contract --suite fuzz

	step "provisioning (kernel of the distribution, initramfs, base image, canary)" provision distro
	export_kernel
	py_tests interop 600 tests/interop
	py_tests services 600 tests/services
	py_tests egress 600 tests/egress
	py_tests scripts 900 tests/scripts

	if await_behind guest-kernel; then
		step "provisioning (built kernel, canary)" provision built
		export_kernel
	fi
	start_behind other-hosts other_hosts
	RESOLUTO_SOAK=$full py_tests e2e 900 tests/e2e
	py_tests vm 900 tests/vm
	await_behind other-hosts || true
	py_tests kvm 2400 tests/kvm
	RESOLUTO_SOAK=$full py_tests conformance 2400 tests/conformance
	[ -z "$full" ] || full_tests
}

# A host with KVM to run the product on, and the image with the ordinary programs.
other_hosts() {
	bash tests/kvm/build-host.sh "$cache/kvm" &&
		bash tests/conformance/prepare.sh "$cache/conformance" "$RESOLUTO_BUILD_DIR/src/cli/resoluto-sandbox"
}

full_tests() {
	step "building with clang" env CC=clang CXX=clang++ bash -c "$(declare -f configure); here='$here'; configure '$here/build-clang' -Dwerror=true -Dtests=true"
	meson_tests "$here/build-clang" units-clang --suite unit --suite contract --suite fuzz
	step "building with TSan" configure "$here/build-tsan" -Dwerror=true -Dtests=true -Db_sanitize=thread \
		-Db_lundef=false -Dguest=disabled --buildtype=debugoptimized
	meson_tests "$here/build-tsan" units-tsan --suite threads
	RESOLUTO_BUILD_DIR=$here/build-clang RESOLUTO_LIBEXEC_DIR=$here/build-clang/src/shim py_tests e2e-clang 900 tests/e2e
	RESOLUTO_BUILD_DIR=$here/build-asan RESOLUTO_LIBEXEC_DIR=$here/build-asan/src/shim \
		ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 py_tests e2e-asan 1800 tests/e2e
	step "guest of aarch64 (kernel, runner, image)" bash tests/aarch64/prepare.sh "$cache/aarch64" \
		"$RESOLUTO_BUILD_DIR/src/cli/resoluto-sandbox"
	py_tests aarch64 1800 tests/aarch64
	RESOLUTO_SOAK=1 py_tests soak 5400 tests/soak
}

main
count_results || exit 1
