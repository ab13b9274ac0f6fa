# SPDX-License-Identifier: Apache-2.0
"""Archives that a guest's kernel unpacks, for a test's own first process."""


def cpio(files):
    """A newc archive of programs; the kernel unpacks it over the initramfs before it.  files: {"init": bytes}."""
    parts = []
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")]):
        fields = (number, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        parts += [head + bytes(-len(head) % 4), data + bytes(-len(data) % 4)]
    return b"".join(parts)


def in_place_of_runner(init, **files):
    """cpio() of another first process.  What the kernel starts before it (guest/early.h) is no program any more."""
    return cpio({"init": init, "early": b"", **files})
