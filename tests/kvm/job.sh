#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the test host with KVM does (docs/design/kvm.md): become an ordinary host, then run the chosen tests of this folder.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root

mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup

# As udev does it: the device belongs to the group kvm.
groupadd --system --force kvm
chgrp kvm /dev/kvm
chmod 0660 /dev/kvm

# Polling before a processor sleeps gains nothing where it is emulated.
echo 0 >/sys/module/kvm/parameters/halt_poll_ns

for port in /sys/class/virtio-ports/*; do
	[ "$(cat "$port/name")" != report ] || export RESOLUTO_TEST_REPORT=/dev/${port##*/}
done
# Where tests/conftest.py looks for things; the configuration is what provisioning will write.
export RESOLUTO_BUILD_DIR=/src/build RESOLUTO_LOCAL_ENV=/etc/resoluto-sandbox/local.env
export RESOLUTO_TEST_KERNELS=/var/cache/resoluto-sandbox/kernel

cd /src
mapfile -t selected <selected
exec python3 -B -m pytest -q -p no:cacheprovider --rootdir /src --basetemp /tmp/pytest "${selected[@]}"
