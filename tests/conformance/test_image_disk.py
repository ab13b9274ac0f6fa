# SPDX-License-Identifier: Apache-2.0
"""How our own kernel reads the disk with the image (guest-kernel/patches, "squashfs: metadata by way of the device's pages")."""
import pytest

from inside import guest, prepared  # noqa: F401 (fixtures)

# The requests that a list of all files costs, and how many files there are.  What find complains of are folders of the image that
# only root may read: a program cannot, and they do not count.
COUNT = """
disk=$(dirname "$(grep -lx rootfs /sys/block/*/serial)")
requests() { read -r reads rest <"$disk/stat"; echo "$reads"; }
before=$(requests)
files=$(find / -xdev -ls 2>/dev/null | wc -l)
echo $(($(requests) - before)) "$files"
"""


def test_what_files_there_are_is_read_in_large_pieces(guest):
    if not guest.is_built:
        pytest.skip("the distribution's kernel reads a block at a time")
    requests, files = map(int, guest.passes("sh", "-c", COUNT).split())
    assert files > 10000
    # Two requests for each block of metadata made it one for 20 files.
    assert requests < files / 100
