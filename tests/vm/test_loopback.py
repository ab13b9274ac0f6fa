# SPDX-License-Identifier: Apache-2.0
"""The loopback device is there for whoever looks, though our own kernel opens it late (guest-kernel/patches)."""
import io
import tarfile

import pytest

from conftest import build_dir

TRIES = 20  # to be earlier than the runner, which has it opened some 50 ms after a program's start


@pytest.fixture
def look(sandbox, kernel, tmp_path):
    """What loopback_probe.c says: whether it was yet to be opened, what was seen, whether it still is."""
    program = (build_dir() / "tests/vm/loopback_probe").read_bytes()
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        member = tarfile.TarInfo("program")
        member.size, member.mode = len(program), 0o755
        archive.addfile(member, io.BytesIO(program))

    def run(way):
        done = sandbox.run("run", "--memory=256Mi", "--image", f"tar:{tmp_path / 'image.tar'}", "--", "/program", way,
                           env=kernel)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().rstrip("\n").split("|")

    return run


@pytest.mark.parametrize("way, seen", [
    ("bind-4", "ok"), ("bind-6", "ok"), ("netlink", "ok"),
    ("flags", "ok"), ("list", "ok"),  # by ioctls of a local socket
    ("/sys/class/net/lo/operstate", "unknown"), ("/sys/class/net/lo/carrier", "1"), ("/sys/class/net/lo/flags", "0x9"),
    ("/sys/class/net/lo/dormant", "0"), ("/sys/class/net/lo/testing", "0"),
    ("/proc/net/if_inet6", "00000000000000000000000000000001 01 80 10 80       lo"),
    ("/proc/self/net/fib_trie", "Main:"),
])
def test_who_looks_first_finds_it_open(look, kernel, way, seen):
    if not kernel["RESOLUTO_LOCAL_MACHINE"].endswith("-built"):
        assert look(way) == ["-", seen, "-"]
        return
    for _ in range(TRIES):
        due, *rest = look(way)
        assert rest == [seen, "0"]
        if due == "1":
            return
    pytest.skip("this machine is too busy for a program to be earlier than the runner")
