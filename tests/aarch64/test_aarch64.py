# SPDX-License-Identifier: Apache-2.0
"""The guest of the other architecture, under emulation: its kernel, its runner and its row of the machine table.

Only in check.sh --full: kernel and runner are cross-compiled first (prepare.sh beside this file)."""
import pathlib
import shutil

import pytest

from conftest import needed


@pytest.fixture(scope="module")
def guest(sandbox):
    """Returns guest(arguments of run...): a run on aarch64."""
    folder = pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "aarch64"
    if not (folder / "image").exists():
        pytest.fail(f"{folder} is not prepared: run the tests through scripts/check.sh --full", pytrace=False)
    env = {"RESOLUTO_LOCAL_KERNEL": str(folder / "kernel/vmlinux"), "RESOLUTO_LOCAL_ACCEL": "tcg",
           "RESOLUTO_LOCAL_INITRD": str(folder / "kernel/initrd.img"),
           "RESOLUTO_LOCAL_MACHINE": (folder / "kernel/MACHINE").read_text().strip(),
           "RESOLUTO_LOCAL_QEMU": shutil.which("qemu-system-aarch64")}

    def run(*arguments, **options):
        return sandbox.run("run", "--image", (folder / "image").read_text().strip(), *arguments, env=env, **options)

    return run


def test_a_program_runs_on_a_kernel_of_ours(guest):
    done = guest("--", "uname", "-mr")
    assert done.returncode == 0, done.stderr
    release, machine = done.stdout.decode().split()
    assert release.endswith("-resoluto") and machine == "aarch64"


def test_output_input_and_exit_code_are_exact(guest):
    script = ("import sys, os; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[::-1]); "
              "print(sorted(os.listdir('/sys/class/net')), os.getuid(), file=sys.stderr); sys.exit(7)")
    done = guest("-i", "--", "python3.11", "-c", script, input=bytes(range(256)) * 100)
    assert (done.returncode, done.stdout, done.stderr) == (7, bytes(range(255, -1, -1)) * 100, b"['lo'] 1000\n")


def test_the_loopback_device_is_seen_by_every_program(guest):
    """A sysfs that /early mounted before there was a network showed none, in some 1 of 12 runs: a race, so 12 runs tell most of the time."""
    for _ in range(12):
        done = guest("--", "ls", "/sys/class/net")
        assert (done.returncode, done.stdout) == (0, b"lo\n"), done.stderr


def test_files_come_back_and_the_scratch_disk_is_there(guest, tmp_path):
    done = guest("--disk", "256Mi", "--workspace", tmp_path, "--output", "out.txt", "--", "sh", "-c",
                 "df -k / | tail -1 | tr -s ' ' | cut -d' ' -f2 >out.txt")
    assert done.returncode == 0, done.stderr
    assert 150_000 < int((tmp_path / "out.txt").read_text()) < 262_144


def test_a_program_that_is_killed_is_told(guest):
    done = guest("--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137, done.stderr
