# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# acceleration.sh - whether KVM boots a guest here, and why not.
#
# Set by the caller: $accel (what was asked for), $kvm_is_recorded, $refusal_code, $kernel_dir, $cli, $cache, $state, $version;
# a trial configuration is there (config.sh).
# shellcheck disable=SC2154

# What stands in the way of anybody's KVM, and what to do, as doctor knows it; nothing where /dev/kvm opens.
kvm_obstacle() {
	"$cli" doctor 2>/dev/null </dev/null | awk '
		/^\[(absent|MISSING)\] KVM \(/ {
			sub(/^[^(]*\(/, ""); sub(/\)$/, ""); note = $0
			if (getline > 0 && sub(/^ *-> /, "")) note = note "; " $0
			print note
			exit
		}' || true
}

# Why a run failed, out of what it said.
last_reason() { # file exit-code
	local reason
	reason=$(sed -n 's/^resoluto-sandbox: //p' "$1" | grep -v '^the last lines of its console:' | tail -n 1)
	[ -n "$reason" ] || reason=$(grep -v '^[[:space:]]*$' "$1" | tail -n 1)
	printf '%s\n' "${reason:-the run ended with exit code $2 and said nothing}"
}

# Only a boot tells: a /dev/kvm that opens may still not run a guest, or hang.  A nested one on a busy machine
# takes most of a minute.
kvm_boots() { # folder of a kernel with its initramfs; sets kvm_obstacle and kvm_reason
	local words rc=0
	words=$(mktemp)
	kvm_obstacle=
	kvm_reason=
	# Not behind the runs of others; and in our process group, so that who stops us stops it.
	RESOLUTO_LOCAL_MAX_RUNS=4096 \
		RESOLUTO_LOCAL_ACCEL=kvm RESOLUTO_LOCAL_BOOT_LIMIT=2m RESOLUTO_LOCAL_MACHINE=$(cat "$1/MACHINE") \
		RESOLUTO_LOCAL_KERNEL=$1/vmlinux RESOLUTO_LOCAL_INITRD=$1/initrd.img \
		timeout --foreground -k 5 150 "$cli" run --quiet --deadline 140 -- /bin/true >"$words" 2>&1 </dev/null || rc=$?
	cat "$words" >>"$STEP_LOG"
	if [ "$rc" -ne 0 ]; then
		kvm_obstacle=$(kvm_obstacle)
		kvm_reason=${kvm_obstacle:-$(last_reason "$words" "$rc")}
	fi
	rm -f "$words"
	return "$rc"
}

# The caller's kernel boots by emulation and not with KVM: which of them it is, a kernel known to be good tells.
blame_file_or_kvm() { # file
	local kind good='' lacks="it may lack CONFIG_KVM_GUEST or CONFIG_PARAVIRT" why=$kvm_reason
	if [ -n "$kvm_obstacle" ] || [ -n "$kvm_is_remembered" ]; then
		return 0
	fi
	for kind in distro built; do
		! kernel_dir_is_whole "$cache/kernel/$kind" || [ ! -f "$cache/kernel/$kind/initrd.img" ] || good=$kind
	done
	if [ -z "$good" ]; then
		kvm_reason="$1 boots by emulation, but not under KVM: $lacks; or KVM boots no guest here, which --kernel distro tells ($why)"
	elif say "==> probing KVM with the $good kernel" && kvm_boots "$cache/kernel/$good"; then
		kvm_reason="KVM works, but $1 does not boot under it: $lacks ($why)"
	fi
	[ -n "$kvm_obstacle" ] || remember_kvm_failure
}

# What a boot that failed may have depended on.  (A module that is loaded anew makes a new device, with another time.)
kvm_key() {
	local qemu
	qemu=$(qemu_path)
	{
		id -G
		stat -c '%a %u %g %Z' /dev/kvm || true
		printf '%s\n' "$version" "$qemu"
		stat -L -c '%s %Y' "$qemu" || true
		cat "$kernel_dir/VERSION" "$kernel_dir/MACHINE"
	} 2>/dev/null | sha256sum | cut -d' ' -f1
}

# Boots that failed on a device that opens, since this host started: "BOOT-ID KEY REASON".  They take minutes; what is
# refused at once need not be remembered.
boot_id() {
	cat /proc/sys/kernel/random/boot_id
}

forget_kvm_failure() {
	local others
	others=$(grep -s "^$(boot_id) " "$state/kvm-failed" | grep -v "^[^ ]* $(kvm_key) " || true)
	rm -f "$state/kvm-failed"
	[ -z "$others" ] || printf '%s\n' "$others" >"$state/kvm-failed"
}

remember_kvm_failure() {
	forget_kvm_failure
	printf '%s %s %s\n' "$(boot_id)" "$(kvm_key)" "$kvm_reason" >>"$state/kvm-failed"
}

remembered_kvm_failure() {
	sed -n "s/^$(boot_id) $(kvm_key) //p" "$state/kvm-failed" 2>/dev/null | tail -n 1 || true
}

# With $kernel_dir; else kvm_reason says why not.  Who asks for KVM by name gets a boot each time.
kvm_works() {
	kvm_obstacle=
	kvm_reason=
	kvm_is_remembered=
	[ "$accel" = kvm ] || kvm_reason=$(remembered_kvm_failure)
	if [ -n "$kvm_reason" ]; then
		kvm_is_remembered=1
		say "    KVM is not probed: it failed since this system started; --accel kvm probes it again"
		return 1
	fi
	say "==> probing KVM with a real boot (two minutes at most)"
	if kvm_boots "$kernel_dir"; then
		forget_kvm_failure
		say "    KVM works"
		return 0
	fi
	[ -n "$kvm_obstacle" ] || remember_kvm_failure
	return 1
}

warn_about_tcg() {
	cat >&2 <<-EOF

	************************************************************************************
	*  WARNING: no hardware virtualization.  A probe boot with KVM did not work here, so *
	*  sandboxes run by emulation (TCG).  Each run still has a Linux kernel of its own,  *
	*  but QEMU's emulator is not a hardened security boundary, and everything is slower *
	*  by a factor of 5 to 20.  See SECURITY.md, "What TCG does and does not give".      *
	*  Use --accel kvm to refuse this instead.                                           *
	************************************************************************************
	The reason: $kvm_reason

	EOF
}

# Without KVM where it must be.
refuse_emulation() {
	local code=1 what="KVM is recorded, and a probe boot with it failed on the ${kernel_dir##*/} kernel"
	[ -z "$kvm_obstacle" ] || code=$refusal_code
	[ "$accel" != kvm ] || what="--accel kvm: a probe boot with KVM failed"
	die_with "$code" "$what: $kvm_reason (all it said is in $STEP_LOG)"
}

settle_for_tcg() {
	[ "$accel" = auto ] || refuse_emulation
	[ -z "$kvm_is_recorded" ] || refuse_emulation
	chosen=tcg
	warn_about_tcg
}

choose_acceleration() {
	chosen=kvm
	if [ "$accel" = tcg ]; then
		chosen=tcg
	elif ! kvm_works; then
		settle_for_tcg
	fi
	write_trial "$chosen"
}

# The same for a kernel that nobody knows: one that boots with KVM is good, any other must boot by emulation before KVM is
# blamed.
choose_acceleration_of_file() { # file
	local row
	row=$(cat "$kernel_dir/MACHINE")
	chosen=kvm
	if [ "$accel" = tcg ]; then
		chosen=tcg
		probe_kernel_file "$cli" "$1" "$kernel_dir"
	elif ! kvm_works; then
		probe_kernel_file "$cli" "$1" "$kernel_dir"
		# The machine may have been the wrong one.
		if [ "$(cat "$kernel_dir/MACHINE")" = "$row" ] || ! kvm_works; then
			blame_file_or_kvm "$1"
			settle_for_tcg
		fi
	fi
	write_trial "$chosen"
}
