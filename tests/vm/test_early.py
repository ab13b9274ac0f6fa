# SPDX-License-Identifier: Apache-2.0
"""What our own kernel starts before init (guest-kernel/patches, guest/early.h), in real guests; a distribution's starts nothing."""
import json
import pathlib
import re

import pytest

from conftest import build_dir
from newc import cpio


def starts_early(kernel):
    return kernel["RESOLUTO_LOCAL_MACHINE"].endswith("-built")


@pytest.fixture
def initramfs_with(kernel, tmp_path):
    """The environment of a run whose initramfs has these files over the runner's."""
    def make(**files):
        path = tmp_path / "initrd.img"
        path.write_bytes(pathlib.Path(kernel["RESOLUTO_LOCAL_INITRD"]).read_bytes() +
                         cpio({name.replace("_", "-"): data for name, data in files.items()}))
        path.chmod(0o644)
        return {**kernel, "RESOLUTO_LOCAL_INITRD": str(path)}
    return make


def probe():
    return (build_dir() / "tests/vm/early_probe").read_bytes()


def run(sandbox, env, *argv):
    done = sandbox.run("run", "--json", "--memory", "256Mi", "--", *argv, env=env)
    return json.loads(done.stdout), done.stderr.decode()


def test_early_is_started_beside_init_and_not_waited_for(sandbox, kernel, initramfs_with):
    result, _ = run(sandbox, initramfs_with(init=probe(), early=probe()), "/bin/true")
    said = re.findall(r"early-probe: ([^\r\n]*)", result["substrate_logs"])
    assert said[-1] == f"init mark {int(starts_early(kernel))}", result
    if starts_early(kernel):
        # Of one boot; a machine that leaves before HELLO is started once more.
        assert said[0] == "early uid 0 pid-1 0" and re.fullmatch("early proc 1 loopback 1 init [01]", said[1]), said
        assert said[2] == "early disks sign 1 open 1", said
    else:
        assert not [line for line in said if line.startswith("early")]


@pytest.mark.parametrize("what", ["nothing", "no program", "a program that fails"])
def test_without_an_early_part_the_runner_does_it_all(sandbox, kernel, initramfs_with, what):
    files = {"nothing": {}, "no program": {"early": b"no program"}, "a program that fails": {"early": b"#!/nowhere\n"}}
    result, _ = run(sandbox, initramfs_with(**files[what]), "/bin/sh", "-c", "ls /dev/shm /proc/self/fd && cat /etc/hosts")
    assert (result["ok"], result["exit_code"]) == (True, 0), result
    assert "localhost" in result["stdout"]


def test_what_the_early_part_left_half_done_is_refused(sandbox, kernel, initramfs_with):
    """And the runner waits for the end of it."""
    result, said = run(sandbox, initramfs_with(early=probe(), early_breaks=b""), "/bin/true")
    if starts_early(kernel):
        assert (result["ran"], result["reason"]) == (False, "inputs-failed"), result
        assert "wait for /early" in said
    else:
        assert result["ok"], result
