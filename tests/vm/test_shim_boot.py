# SPDX-License-Identifier: Apache-2.0
"""The microVM runtime with the real QEMU, kernel and runner: what only a boot can show."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import kernel_environment
from shim_rig import USERS, Rig, gone_within_a_second


@pytest.fixture(scope="module", params=USERS)
def rig(request):
    """Who starts it matters here, not what boots: the kernel that runs use."""
    rig = Rig(request.param)
    rig.use_real_qemu(kernel_environment("built"))
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def any_rig(kernel):
    rig = Rig(USERS[-1])
    rig.use_real_qemu(kernel)
    yield rig
    rig.close()


def test_a_program_runs_with_a_kernel_of_its_own(rig):
    run = rig.boot("sh", "-c", "echo hello; cat /proc/sys/kernel/random/boot_id; ls /sys/class/net; id -u")
    assert run.wait() == 0, run.text
    hello, boot_id, net, uid = run.output().split()
    told = json.loads(run.wait_line("isolation ")[len("isolation "):])
    host = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (hello, net, uid) == ("hello", "lo", "1000")
    assert told["own_kernel"] is True and told["guest_boot_id"] == boot_id != host
    assert json.loads(run.objects()["result.json"])["exit_code"] == 0
    assert rig.runs() == []


def test_stdin_goes_in_and_comes_out(any_rig):
    data = "".join(f"line {i}\n" for i in range(40_000)).encode()
    run = any_rig.boot("cat", stdin=subprocess.PIPE, has_stdin="yes")
    run.process.stdin.write(data)
    run.process.stdin.close()
    assert run.wait(120) == 0, run.text
    assert run.output().encode() == data


def test_the_smallest_memory_boots(any_rig):
    run = any_rig.boot("echo", "small", memory="128Mi", cpus="1")
    assert run.wait() == 0, run.text
    assert run.output() == "small\n"


def test_a_scratch_disk_holds_more_than_the_memory(any_rig):
    run = any_rig.boot("sh", "-c", "head -c 400M /dev/zero > big && wc -c < big", memory="256Mi", disk="1Gi")
    assert run.wait(120) == 0, run.text
    assert run.output() == f"{400 << 20}\n"


def test_the_clock_of_the_guest_is_the_host_s(any_rig):
    run = any_rig.boot("sh", "-c", "date +%s; sleep 2; date +%s")
    assert run.wait() == 0, run.text
    first, second = map(int, run.output().split())
    assert 2 <= second - first <= 10
    # The run's events carry the host's own time of this moment.
    modified = (any_rig.conduit / "run" / run.id / "_manifest.json").stat().st_mtime
    assert abs(modified - second) < 60


def test_a_deadline_stops_a_program_that_goes_on(any_rig):
    run = any_rig.boot("sleep", "1000", deadline="15s")
    run.wait(120)
    assert run.end == ("failed", "deadline"), run.text


def test_a_killed_caller_takes_all_along(rig):
    run = rig.boot("sleep", "1000")
    run.wait_line("phase running")
    shim, qemu = run.shim(), run.qemu()
    run.signal(signal.SIGKILL)
    run.process.wait()
    gone_within_a_second(shim, qemu)
    assert json.loads((run.folder() / "state.json").read_text())["reason"] == "caller-died"


@pytest.mark.parametrize("victim, reason", [("shim", "shim-killed"), ("qemu", "emulator-killed")])
def test_a_killed_process_takes_the_rest_along(rig, victim, reason):
    run = rig.boot("sleep", "1000")
    run.wait_line("phase running")
    shim, qemu = run.shim(), run.qemu()
    os.kill({"shim": shim, "qemu": qemu}[victim], signal.SIGKILL)
    gone_within_a_second(qemu)
    run.wait()
    assert run.end == ("failed", reason), run.text
    gone_within_a_second(shim)


def test_a_kernel_that_panics_is_told(any_rig):
    broken = any_rig.top / "broken-initrd"
    broken.write_bytes(b"this is no archive")
    broken.chmod(0o644)
    run = any_rig.start("true", run_id="run-panic", env={"RESOLUTO_LOCAL_INITRD": str(broken)})
    run.wait(120)
    assert run.end == ("failed", "guest-panic"), run.text
    assert "Kernel panic" in run.text


def test_a_truncated_kernel_is_refused_by_name(any_rig):
    short = any_rig.top / "short-kernel"
    whole = pathlib.Path(any_rig.env["RESOLUTO_LOCAL_KERNEL"]).read_bytes()
    short.write_bytes(whole[: len(whole) // 2])
    short.chmod(0o644)
    run = any_rig.start("true", run_id="run-short", env={"RESOLUTO_LOCAL_KERNEL": str(short)})
    run.wait()
    assert run.process.returncode == 3 and "short-kernel is damaged or truncated" in run.text, run.text


def test_what_qemu_may_do_is_what_the_kernel_says(rig):
    run = rig.boot("sleep", "1000")
    run.wait_line("phase running")
    for pid in (run.shim(), run.qemu()):
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
        assert set(status["CapEff"].strip()) == {"0"}
        assert status["Groups"].strip() == "" or rig.user == "user"
        assert status["Uid"].split()[0] != "0"
    # None of its memory is offered for merging with that of others (KSM).
    flags = [line.split()[1:] for line in pathlib.Path(f"/proc/{run.qemu()}/smaps").read_text().splitlines()
             if line.startswith("VmFlags:")]
    assert len(flags) > 10 and not any("mg" in words for words in flags)
    argv = pathlib.Path(f"/proc/{run.qemu()}/cmdline").read_bytes().split(b"\0")
    assert any(run.id.encode() in word for word in argv) and b"sleep" not in b" ".join(argv)
    run.signal(signal.SIGUSR2)
    assert run.wait() == 2
