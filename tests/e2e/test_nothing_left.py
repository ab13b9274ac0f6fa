# SPDX-License-Identifier: Apache-2.0
"""A run leaves no process, mount, socket or file behind, however it ends."""
import ctypes
import json
import os
import pathlib
import signal
import time

import pytest

from conftest import Processes, wait_until

# "Within a second" is the promise; a busy machine is given the rest.
SECONDS_TO_DIE = 5


PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True, scope="module")
def orphans_come_to_us():
    """What outlives its parent becomes our child: so only what these runs started is counted."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def descendants(pid):
    found = [p for p in Processes.children(pid) if Processes.is_alive(p)]
    return found + [p for child in found for p in descendants(child)]


def ours(lines, sandbox):
    return sorted(line for line in lines if "resoluto" in line or str(sandbox.state) in line)


def mounts(sandbox):
    return ours(pathlib.Path("/proc/self/mountinfo").read_text().splitlines(), sandbox)


def unix_sockets(sandbox):
    """Sockets that have a path: those would be files left behind."""
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]
    return ours([line.split()[7] for line in lines if len(line.split()) > 7], sandbox)


def temporary(sandbox):
    return sorted(os.listdir(sandbox.env["TMPDIR"]))


def machine_state(sandbox):
    return {
        "processes": sorted(descendants(os.getpid())),
        "mounts": mounts(sandbox),
        "sockets": unix_sockets(sandbox),
        "runs": sandbox.runs(),
        "temporary": temporary(sandbox),
        "cgroups": sorted(p.name for p in pathlib.Path("/sys/fs/cgroup").rglob("*resoluto*")),
    }


def running(sandbox, run_id, prepare="true"):
    """Start a run whose program says that it is there, and stays; returns it with the pids of its processes."""
    run = sandbox.start("run", "--id", run_id, "--", "/bin/sh", "-c",
                        prepare + "; echo up; while :; do sleep 0.1; done")
    assert run.stdout.readline() == b"up\n", run.stderr.read()
    qemu = Processes.qemu_of(run_id)
    shim = [p for p in Processes.children(run.pid) if Processes.argv(p)[0].endswith(b"resoluto-shim")]
    assert len(qemu) == 1 and len(shim) == 1
    return run, qemu[0], shim[0]


def gone(*pids):
    return all(not Processes.is_alive(p) for p in pids)


def test_a_good_a_failing_and_a_refused_run(sandbox, tmp_path):
    before = machine_state(sandbox)
    assert sandbox.run("run", "--", "/bin/true").returncode == 0
    assert sandbox.run("run", "--", "/bin/sh", "-c", "exit 7").returncode == 7
    assert sandbox.run("run", "--", "/no/such/program").returncode == 127
    assert sandbox.run("run", "--image", f"oci:{tmp_path}/none", "--", "true").returncode == 125
    assert machine_state(sandbox) == before


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_program_then_the_vm(sandbox, signo):
    before = machine_state(sandbox)
    run, qemu, shim = running(sandbox, f"left-{signo.name.lower()}",
                              "trap 'echo caught; exit 9' INT TERM HUP")
    run.send_signal(signo)
    out, err = run.communicate(timeout=120)
    assert out == b"caught\n", err
    assert run.returncode == 9
    assert gone(qemu, shim)
    assert machine_state(sandbox) == before


def test_a_program_that_ignores_signals_is_ended_with_its_vm(sandbox):
    before = machine_state(sandbox)
    run, qemu, shim = running(sandbox, "left-stubborn", "trap '' INT TERM HUP")
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    assert run.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert gone(qemu, shim)
    assert machine_state(sandbox) == before


@pytest.mark.parametrize("victim", ["cli", "shim", "qemu"])
def test_sigkill_leaves_no_process(sandbox, victim):
    before = machine_state(sandbox)
    run, qemu, shim = running(sandbox, f"left-kill-{victim}")
    start = time.monotonic()
    os.kill({"cli": run.pid, "shim": shim, "qemu": qemu}[victim], signal.SIGKILL)
    wait_until(lambda: gone(qemu, shim), f"QEMU and shim to end after SIGKILL of {victim}", SECONDS_TO_DIE)
    print(f"gone after {time.monotonic() - start:.3f} s")
    out, err = run.communicate(timeout=60)
    if victim == "cli":
        assert run.returncode == -signal.SIGKILL
    else:
        assert run.returncode == 125, err
        assert (b"shim-killed" if victim == "shim" else b"emulator-killed") in err
    assert mounts(sandbox) == before["mounts"] and unix_sockets(sandbox) == before["sockets"]
    # Files that nobody alive can remove go with the next command.
    assert sandbox.run("run", "--", "/bin/true").returncode == 0
    assert machine_state(sandbox) == before


def test_a_second_run_with_the_same_id_is_refused_and_harms_nobody(sandbox):
    run, _, _ = running(sandbox, "left-twice")
    again = sandbox.run("run", "--id", "left-twice", "--", "/bin/true")
    assert again.returncode == 125
    assert b"left-twice" in again.stderr and b"already" in again.stderr
    again = sandbox.run("run", "--json", "--id", "left-twice", "--", "/bin/true")
    assert again.returncode == 125 and json.loads(again.stdout)["disposition"] == "refused"
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)
    assert sandbox.runs() == []
