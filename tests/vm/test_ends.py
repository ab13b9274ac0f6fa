# SPDX-License-Identifier: Apache-2.0
"""What a result says of the machine: how it ended, and which kernel it had.  Real guests on both kernels, the whole command
line.

An init of the tests (guest_end.c) stands in the runner's place, since no program in a sandbox may end its machine."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import build_dir, kernel_environment, wait_until
from newc import cpio, in_place_of_runner, members_of

SANDBOX_FAILED = 125
CONSOLE_BYTES = 64 * 1024
ON_CONSOLE = "guest_end is here"  # what guest_end writes there before STARTED

# A kernel that QEMU boots by its PVH note: an empty interrupt table, and a breakpoint.
FAULTING_KERNEL = """
	.section .note.Xen, "a", @note
	.long 4, 4, 18
	.asciz "Xen"
	.long start
	.text
	.code32
	.globl start
start:	lidt table
	int3
table:	.word 0
	.long 0
"""


def with_init(kernel, path, **files):
    """This kernel with guest_end in the runner's place and these further files."""
    ours = in_place_of_runner((build_dir() / "tests/vm/guest_end").read_bytes(), **files)
    path.write_bytes(pathlib.Path(kernel["RESOLUTO_LOCAL_INITRD"]).read_bytes() + ours)
    path.chmod(0o644)
    return {**kernel, "RESOLUTO_LOCAL_INITRD": str(path)}


def is_built(kernel):
    return kernel["RESOLUTO_LOCAL_MACHINE"].endswith("-built")


@pytest.fixture(scope="module")
def ender(kernel, tmp_path_factory):
    return with_init(kernel, tmp_path_factory.mktemp("ender") / "initrd.img")


def result_of(done):
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def end(sandbox, env, *words, options=()):
    """The result of a run that failed with its machine."""
    done = sandbox.run("run", "--json", *options, "--", *words, env=env)
    result = result_of(done)
    assert not result["ok"] and result["disposition"] == "external", result
    assert done.returncode == SANDBOX_FAILED
    assert sandbox.runs() == []
    return result, done.stderr.decode()


def ends_told(kernel):
    """words, options, reason, what is said of it."""
    restarted = "guest-power-off" if is_built(kernel) else "guest-reset"
    return [
        (["exit"], [], "guest-panic", "Attempted to kill init"),
        (["eat"], ["--memory", "128Mi"], "guest-out-of-memory", "System is deadlocked on memory"),
        (["power-off"], [], "guest-power-off", ""),
        (["halt"], [], "guest-power-off", ""),
        (["restart"], [], restarted, ""),
        (["forge", "resoluto-runner: no such port", "restart"], [], restarted, "no such port"),
    ]


@pytest.mark.parametrize("case", range(6))
def test_each_end_of_a_guest_has_its_reason(sandbox, kernel, ender, case):
    words, options, reason, said = ends_told(kernel)[case]
    result, complaint = end(sandbox, ender, *words, options=options)
    assert result["reason"] == reason, result
    assert said in complaint and reason in complaint
    assert ON_CONSOLE in result["substrate_logs"]
    if reason in ("guest-panic", "guest-out-of-memory"):
        assert "Kernel panic - not syncing: " + said in result["substrate_logs"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a triple fault is an x86 machine's way to end")
def test_a_triple_fault_has_its_reason(sandbox, kernel, tmp_path):
    (tmp_path / "fault.s").write_text(FAULTING_KERNEL)
    subprocess.run(["as", "--64", "-o", "fault.o", "fault.s"], cwd=tmp_path, check=True)
    subprocess.run(["ld", "-Ttext=0x100000", "-e", "start", "-o", "vmlinux", "fault.o"], cwd=tmp_path, check=True)
    (tmp_path / "vmlinux").chmod(0o644)
    env = {**kernel, "RESOLUTO_LOCAL_KERNEL": str(tmp_path / "vmlinux")}
    result, _ = end(sandbox, env, "true")
    assert (result["reason"], result["ran"]) == ("guest-triple-fault", False)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a triple fault is an x86 machine's way to end")
def test_a_triple_fault_of_a_running_machine_has_its_reason(sandbox, tmp_path):
    """On the distribution's kernel, which has kexec; ours offers its root nothing to do this with."""
    env = with_init(kernel_environment("distro"), tmp_path / "initrd.img")
    result, _ = end(sandbox, env, "fault")
    assert result["reason"] == "guest-triple-fault", result
    assert ON_CONSOLE in result["substrate_logs"]


@pytest.mark.parametrize("how", ["power-off", "restart", "halt", "exit"])
def test_after_the_manifest_every_end_is_a_success(sandbox, ender, how):
    done = sandbox.run("run", "--json", "--", "verdict", how, env=ender)
    result = result_of(done)
    assert (result["ok"], result["reason"], result["disposition"]) == (True, "", "completed"), result
    assert done.returncode == 0 and sandbox.runs() == []


@pytest.mark.parametrize("how", ["power-off", "restart"])
def test_words_on_the_console_make_no_success(sandbox, ender, how):
    """Who is root in a guest can forge the reason of its failure, and nothing else."""
    forged = "[    9.9] Kernel panic - not syncing: forged\n[    9.9] reboot: Restarting system"
    result, _ = end(sandbox, ender, "forge", forged, how)
    assert result["reason"] in ("guest-panic", "guest-power-off")


def test_the_last_64_kib_of_the_console_are_in_the_logs(sandbox, ender):
    result, _ = end(sandbox, ender, "flood", "exit")
    logs = result["substrate_logs"]
    assert "Attempted to kill init" in logs and "line 2999 of the flood" in logs
    assert "line 0 of the flood" not in logs
    assert CONSOLE_BYTES - 1024 < len(logs) <= CONSOLE_BYTES + 16 * 1024


@pytest.mark.parametrize("number, reason", [
    (signal.SIGKILL, "emulator-killed"), (signal.SIGTERM, "emulator-killed"), (signal.SIGSEGV, "emulator-crashed")])
def test_the_death_of_the_emulator_has_its_reason(sandbox, ender, number, reason):
    run = sandbox.start("run", "--json", "--id", "run-ender", "--", "hang", env=ender)
    state = sandbox.state / "runs/run-ender/state.json"
    wait_until(lambda: state.exists() and json.loads(state.read_text())["own_kernel"], "the guest's start")
    os.kill(sandbox.processes.qemu_of("run-ender")[0], number)
    out, complaint = run.communicate(timeout=60)
    result = json.loads(out)
    assert (result["reason"], run.returncode) == (reason, SANDBOX_FAILED), result
    assert ON_CONSOLE in result["substrate_logs"]
    assert number == signal.SIGTERM or f"signal {number:d}" in complaint.decode()
    assert sandbox.runs() == []


def test_an_emulator_that_gives_up_is_quoted(sandbox, kernel):
    other = "aarch64-debian" if os.uname().machine == "x86_64" else "x86_64-debian"
    qemu = f"/usr/bin/qemu-system-{os.uname().machine}"
    env = {**kernel, "RESOLUTO_LOCAL_MACHINE": other, "RESOLUTO_LOCAL_QEMU": qemu}
    result, complaint = end(sandbox, env, "true")
    assert result["reason"] == "emulator-failed" and "machine type" in complaint, complaint


def test_a_program_without_memory_has_its_reason(sandbox, kernel):
    done = sandbox.run("run", "--json", "--memory", "256Mi", "--", "tail", "/dev/zero", env=kernel)
    result = result_of(done)
    assert (result["reason"], result["exit_code"], result["signal"]) == ("out-of-memory", 137, 9), result
    assert (result["disposition"], done.returncode) == ("completed", 137)


# --- machines that do not come up ---

class Boots:
    """Stands before the shim: counts the machines that a run starts, and does something when each has its files."""

    def __init__(self, folder, meanwhile=":"):
        folder.mkdir()
        self.count = folder / "count"
        shim = folder / "resoluto-shim"
        shim.write_text(f"#!/bin/sh\necho >>{self.count}\n{meanwhile}\nexec {build_dir()}/src/shim/resoluto-shim\n")
        shim.chmod(0o755)
        self.env = {"RESOLUTO_LIBEXEC_DIR": str(folder)}

    def number(self):
        return len(self.count.read_text().splitlines())


def test_a_machine_that_hangs_in_its_boot_is_booted_twice(sandbox, kernel, tmp_path):
    env = with_init(kernel, tmp_path / "initrd.img", **{"before-hello": b"hang"})
    boots = Boots(tmp_path / "boots")
    start = time.monotonic()
    done = sandbox.run("run", "--json", "--id", "run-hang", "--", "true",
                       env={**env, **boots.env, "RESOLUTO_LOCAL_BOOT_LIMIT": "3s"})
    seconds = time.monotonic() - start
    result = result_of(done)
    assert boots.number() == 2 and seconds >= 6
    assert (result["reason"], result["ran"], done.returncode) == ("boot-failed", False, SANDBOX_FAILED), result
    assert "RESOLUTO_LOCAL_BOOT_LIMIT" in done.stderr.decode()
    assert sandbox.runs() == [] and sandbox.processes.qemu_of("run-hang") == []


def test_a_machine_whose_first_boot_hangs_runs_its_program(sandbox, tmp_path):
    kernel = kernel_environment("built")
    hangs = with_init(kernel, tmp_path / "hangs.img", **{"before-hello": b"hang"})
    initrd, works = tmp_path / "initrd.img", tmp_path / "works.img"
    initrd.symlink_to(hangs["RESOLUTO_LOCAL_INITRD"])
    works.symlink_to(kernel["RESOLUTO_LOCAL_INITRD"])
    boots = Boots(tmp_path / "boots", meanwhile=f"[ ! -L {works} ] || mv {works} {initrd}")
    done = sandbox.run("run", "--id", "run-mend", "-i", "--", "cat", input=b"all of it\n",
                       env={**kernel, **boots.env, "RESOLUTO_LOCAL_INITRD": str(initrd),
                            "RESOLUTO_LOCAL_BOOT_LIMIT": "30s"})
    assert (done.returncode, done.stdout) == (0, b"all of it\n"), done.stderr
    assert boots.number() == 2
    assert sandbox.runs() == [] and sandbox.processes.qemu_of("run-mend") == []


@pytest.mark.parametrize("word", ["power-off", "restart", "halt"])
def test_a_machine_that_leaves_before_its_runner_is_there_did_not_boot(sandbox, kernel, tmp_path, word):
    env = with_init(kernel, tmp_path / "initrd.img", **{"before-hello": word.encode()})
    result, _ = end(sandbox, env, "true")
    assert (result["reason"], result["ran"]) == ("boot-failed", False), result


def test_a_driver_that_the_kernel_lacks_is_named(sandbox, tmp_path):
    """A kernel without the disks' driver: the module of that name is another one, which is there already."""
    kernel = kernel_environment("distro")
    plain = pathlib.Path(kernel["RESOLUTO_LOCAL_INITRD"]).read_bytes()
    members = members_of(plain)
    [driver] = [name for name in members if "virtio_blk" in name]
    [other] = [name for name in members if "virtio_console" in name]
    (tmp_path / "initrd.img").write_bytes(plain + cpio({driver: members[other]}))
    env = {**kernel, "RESOLUTO_LOCAL_INITRD": str(tmp_path / "initrd.img")}
    result = result_of(sandbox.run("run", "--json", "--", "true", env=env))
    assert (result["reason"], result["ran"]) == ("inputs-failed", False), result
    assert "this kernel lacks CONFIG_VIRTIO_BLK\n" in result["substrate_logs"].replace("\r", ""), result


# --- what the guest's kernel is told ---

def test_the_kernel_s_command_line_carries_nothing_of_the_run(sandbox, kernel):
    lines = []
    for run_id in ("run-violet", "run-indigo"):
        done = sandbox.run("run", "--id", run_id, "--label", f"kind={run_id}", "--env", f"WHO={run_id}", "--", "cat",
                           "/proc/cmdline", env=kernel)
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.decode())
    assert lines[0] == lines[1]
    assert "run-" not in lines[0] and "cat" not in lines[0].split() and "/" not in lines[0]


def test_the_result_names_the_kernel_that_ran(sandbox, kernel):
    version, digest = (pathlib.Path(kernel["RESOLUTO_LOCAL_KERNEL"]).parent / "VERSION").read_text().split()
    kind = kernel["RESOLUTO_LOCAL_MACHINE"].split("-")[1]
    result = result_of(sandbox.run("run", "--json", "--", "uname", "-r", env=kernel))
    assert result["isolation"]["kernel"] == f"{version} {digest} ({kind})"
    assert result["stdout"] == version + "\n"
    told = json.loads(sandbox.run("version", "--json", env=kernel).stdout)
    assert told["kernel"]["name"] == result["isolation"]["kernel"]
    checks = json.loads(sandbox.run("doctor", "--json", env=kernel).stdout)["checks"]
    [check] = [check for check in checks if check["id"] == "kernel"]
    assert check["status"] == "ok" and result["isolation"]["kernel"] in check["note"], check
