# SPDX-License-Identifier: Apache-2.0
"""The hostile guest at full size (tests/vm/test_hostile_guest.py has the small ones).  Part of check.sh --full."""
import os
import pathlib
import re
import sys
import threading

import pytest

from conftest import Processes, soak

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "vm"))
from hostile import RUN, Place, Script, archive, by_protocol, fake_host, over  # noqa: E402

pytestmark = soak("hostile")

GIGABYTE = 1 << 30
MEMORY_KB = 512 * 1024  # of the command line or its shim, whatever the guest does


@pytest.fixture(scope="module")
def host():
    with fake_host() as host:
        yield host


class Peaks(threading.Thread):
    """The most memory that our command line and its shim ever held, looked at again and again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peaks, self.done = {}, threading.Event()

    def look(self, pid):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        name, peak = re.search(r"^Name:\s*(\S+)", status, re.M), re.search(r"^VmHWM:\s*(\d+) kB", status, re.M)
        if peak and name[1].startswith("resoluto-"):
            self.peaks[name[1]] = max(self.peaks.get(name[1], 0), int(peak[1]))

    def run(self):
        while not self.done.wait(0.1):
            for child in Processes.children(os.getpid()):
                for pid in (child, *Processes.children(child)):
                    self.look(pid)


@pytest.fixture(autouse=True)
def memory_is_bounded(host):
    watch = Peaks()
    watch.start()
    yield
    watch.done.set()
    watch.join()
    if RUN in host.sandbox.runs():
        host.sandbox.run("rm", "--force", RUN)
    print("peaks in KiB:", watch.peaks)
    assert all(peak < MEMORY_KB for peak in watch.peaks.values()), watch.peaks


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def greeted():
    return Script(RUN).greet()


def test_ten_million_tiny_objects(host):
    """As many as the default quota takes; nothing of them is left, and the host never holds them in memory."""
    result = host.run(greeted().flood(10_000_000), timeout=3600)
    over(result, "objects")
    assert RUN not in host.sandbox.runs()


def test_ten_million_tiny_objects_cost_what_they_take(host):
    result = host.run(greeted().flood(10_000_000, b"x"), options=["--quota", "bytes=1Gi", "--keep"], timeout=3600)
    over(result, "bytes")
    kept = host.objects(RUN)
    assert len(kept) == GIGABYTE // (1024 + 4096)


@pytest.mark.parametrize("size", [GIGABYTE, -1])
def test_a_result_of_a_gigabyte(host, size):
    by_protocol(host.run(greeted().put("result.json", fill=GIGABYTE, size=size)))


def test_an_archive_of_gigabytes_without_end(host):
    result = host.run(greeted().do("endless", key="outbox/output.tar.gz"), timeout=3600,
                      options=["--quota", "archive-bytes=2Gi", "--keep"])
    over(result, "archive-bytes")
    assert host.objects(RUN) == {}


def test_an_archive_of_a_gigabyte_that_is_none(host, place):
    """It is stored whole, and refused by its first bytes."""
    says = greeted().says("x").put("outbox/output.tar.gz", fill=GIGABYTE)
    result = host.run(says.ends(output_archive="outbox/output.tar.gz"), place, ["--output", "**"], timeout=3600)
    assert (result["reason"], result["disposition"]) == ("bad-output", "completed"), result
    assert place.landed() == set()


def test_a_hundred_thousand_members_of_no_bytes_land(host, place):
    made = archive(level=1).empties(100_000)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "*"], timeout=3600)
    assert result["ok"] and len(result["artifacts"]) == 100_000 == len(place.landed())


def test_a_million_members_and_no_more(host, place):
    made = archive(level=1).empties(1_000_001)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "none"], timeout=3600)
    over(result, "members")
    assert place.landed() == set()


def test_names_that_would_fill_the_memory(host, place):
    """One file, replaced again and again under a name of four thousand bytes, each of which is told."""
    deep = "/".join(["d" * 200] * 19)
    made = archive(level=1)
    for number in range(75_000):
        made.add(f"{deep}/f{number % 7}")
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "**"], timeout=3600)
    over(result, "members")
    assert len(result["artifacts"]) == 7


def test_a_ratio_bomb_of_a_gigabyte(host, place):
    made = archive().zeros("zeros", GIGABYTE)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "*"], timeout=3600)
    over(result, "ratio")
    assert place.landed() == set() and result["artifacts"] == []


def test_a_ratio_that_was_asked_for(host, place):
    made = archive().zeros("zeros", GIGABYTE)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "*", "--quota", "ratio=1100"], timeout=3600)
    assert result["ok"] and (place.workspace / "zeros").stat().st_size == GIGABYTE
