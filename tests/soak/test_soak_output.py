# SPDX-License-Identifier: Apache-2.0
"""Output and input at full size: what test_output.py shows with megabytes.  Needs some 12 GiB of disk and a quarter of an
hour under emulation.  Part of check.sh --full."""
import hashlib
import json
import os
import threading
import time

import pytest

from conftest import Processes, soak, wait_until
from output_programs import peak_kib

pytestmark = soak("output")

GIB = 1 << 30
RSS_MAX_KIB = 24 * 1024
LINE = b"0123456789abcdef" * 63 + b"0123456789abcde\n"  # 1 KiB


def shell(text):
    return ("/bin/sh", "-c", text)


def tell(**figures):
    print(json.dumps(figures))


class Peaks:
    """The most memory of the processes of ours that a run has, looked at while it lasts."""

    def __init__(self, *pids):
        self.pids, self.most, self.is_over = pids, {}, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.is_over.wait(0.2):
            for pid in [*self.pids, *(child for pid in self.pids for child in Processes.children(pid))]:
                name = os.path.basename(Processes.argv(pid)[0]).decode() if Processes.argv(pid) else ""
                if name.startswith("resoluto"):
                    self.most[name] = max(self.most.get(name, 0), peak_kib(pid))

    def end(self):
        self.is_over.set()
        self.thread.join()
        assert self.most and max(self.most.values()) < RSS_MAX_KIB, self.most
        return self.most


def digest_of(pipe):
    digest, total = hashlib.sha256(), 0
    while piece := pipe.read(1 << 20):
        digest.update(piece)
        total += len(piece)
    return digest.hexdigest(), total


def digest_of_many(piece, count):
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(piece)
    return digest.hexdigest()


@pytest.mark.parametrize("what, source, piece", [
    ("lines", f"yes {LINE.decode().strip()} | head -c {GIB}", LINE * 1024),
    ("one line", f"head -c {GIB} /dev/zero | tr '\\0' x", b"x" * (1 << 20)),
])
def test_a_gibibyte_while_nobody_reads(sandbox, what, source, piece):
    want = digest_of_many(piece, GIB >> 20)
    run = sandbox.start("run", "--id", "soak-unread", "--", *shell(source + "; echo done >&2"))
    peaks, began = Peaks(run.pid), time.monotonic()
    wait_until(lambda: "soak-unread" in sandbox.runs(), "the run")
    assert sandbox.run("wait", "soak-unread", timeout=3600).returncode == 0
    written = time.monotonic() - began
    assert run.poll() is None, "it stands before its full pipe"
    digest, total = digest_of(run.stdout)
    assert (run.wait(timeout=60), total, digest, run.stderr.read()) == (0, GIB, want, b"done\n")
    tell(test="unread", what=what, seconds=round(written), read_seconds=round(time.monotonic() - began - written), peak_kib=peaks.end())


def test_nul_bytes_without_an_end(sandbox):
    """Each costs seven on the wire."""
    size = GIB // 4
    want = digest_of_many(bytes(1 << 20), size >> 20)
    run = sandbox.start("run", "--", "head", "-c", size, "/dev/zero")
    peaks, began = Peaks(run.pid), time.monotonic()
    digest, total = digest_of(run.stdout)
    assert (run.wait(timeout=60), total, digest, run.stderr.read()) == (0, size, want, b"")
    tell(test="NUL", seconds=round(time.monotonic() - began), peak_kib=peaks.end())


def test_a_gibibyte_of_input(sandbox, tmp_path):
    """As a file, and through a pipe to a program that begins late."""
    path = tmp_path / "input"
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for _ in range(GIB >> 20):
            piece = os.urandom(1 << 20)
            digest.update(piece)
            file.write(piece)
    for options, job in ((["--stdin", path], "sha256sum"), (["-i"], "sleep 2; sha256sum")):
        with open(path, "rb") as file:
            run = sandbox.start("run", *options, "--", *shell(job), stdin=file)
            peaks, began = Peaks(run.pid), time.monotonic()
            out, err = run.communicate(timeout=3600)
        assert (run.returncode, out, err) == (0, digest.hexdigest().encode() + b"  -\n", b"")
        tell(test="input", options=str(options[0]), seconds=round(time.monotonic() - began), peak_kib=peaks.end())


def test_a_line_of_64_mebibytes_among_others(sandbox):
    size = 64 << 20
    want = hashlib.sha256(b"before\n" + "ä".encode() * (size // 2) + b"\nafter").hexdigest()
    program = f"""
import os
def put(bytes):
    bytes = memoryview(bytes)
    while bytes: bytes = bytes[os.write(1, bytes[:65537]):]
put(b"before\\n"); put("\\u00e4".encode() * {size // 2}); put(b"\\nafter")
"""
    run = sandbox.start("run", "--", "python3", "-c", program)
    peaks, began = Peaks(run.pid), time.monotonic()
    digest, total = digest_of(run.stdout)
    assert (run.wait(timeout=60), digest, total) == (0, want, size + 13)
    tell(test="line of 64 MiB", seconds=round(time.monotonic() - began), peak_kib=peaks.end())


@pytest.mark.parametrize("end, code", [("exit 0", 0), ("exit 1", 1), ("kill -9 $$", 137)])
def test_a_hundred_tails(sandbox, end, code):
    for number in range(100):
        done = sandbox.run("run", "--", *shell(f"echo begin; printf '{number} end' >&2; printf 'tail {number}'; {end}"))
        assert (done.returncode, done.stdout) == (code, b"begin\ntail %d" % number), done.stderr
        assert done.stderr.startswith(b"%d end" % number)
