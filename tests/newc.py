# SPDX-License-Identifier: Apache-2.0
"""Archives that a guest's kernel unpacks: for a test's own first process, and what is in the runner's."""


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


def members_of(archive):
    """{name: bytes} of a plain newc archive."""
    members, at = {}, 0
    while True:
        size, name_size = int(archive[at + 54 : at + 62], 16), int(archive[at + 94 : at + 102], 16)
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = at + (110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return members
        members[name] = archive[start : start + size]
        at = start + (size + 3) // 4 * 4
