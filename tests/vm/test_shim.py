# SPDX-License-Identifier: Apache-2.0
"""The shim between a caller and guests that keep the protocol, break it, or die: played by fake_qemu, without a boot."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from conftest import Processes, build_dir, wait_until
from shim_rig import IS_ROOT, USERS, Rig, gone_within_a_second


@pytest.fixture(params=USERS)
def rig(request):
    rig = Rig(request.param)
    yield rig
    rig.close()


@pytest.fixture
def any_rig():
    rig = Rig(USERS[0])
    yield rig
    rig.close()


def test_a_good_guest_succeeds_and_leaves_nothing(rig):
    run = rig.run("good")
    assert run.process.returncode == 0, run.text
    assert run.end == ("succeeded", "")
    assert run.objects() == {
        "_canary_ok": b"ok", "events-000001.jsonl": b"{}\n", "outbox/output.tar.gz": b"archive",
        "result.json": b'{"node_id":"run","status":"success","exit_code":0}',
        "_manifest.json": b'{"total_chunks": 1}'}
    assert rig.runs() == []
    assert not Processes.children(run.process.pid)


def test_the_kernel_is_named_by_its_version(any_rig):
    version = any_rig.top / "VERSION"
    for text, machine, name in (("6.1.0-44-cloud-amd64 0123456789abcdef\n", "", "6.1.0-44-cloud-amd64 0123456789abcdef (debian)"),
                                ("6.1.9 fedcba9876543210\n", "x86_64-built", "6.1.9 fedcba9876543210 (built)"),
                                ("file 0123\n", "x86_64-ubuntu", "kernel (ubuntu)")):
        version.write_text(text)
        run = any_rig.run("good", env={"RESOLUTO_LOCAL_MACHINE": machine})
        assert json.loads(run.wait_line("isolation ")[len("isolation "):])["kernel"] == name, text
    version.unlink()


def test_the_shim_is_locked_before_it_reads_of_the_guest(rig):
    """The guest speaks at once; what the shim may still do is tried at the moment it first listens."""
    shutil.copy(build_dir() / "tests/vm/shim_witness", rig.top / "resoluto-shim")
    run = rig.start("says hello and no more")
    run.wait_line("phase running")
    assert (run.folder() / "witness").read_text() == "read-passwd EACCES\nsocket EPERM\n"
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{run.shim()}/status").read_text().splitlines())
    assert (status["Seccomp"].strip(), status["NoNewPrivs"].strip()) == ("2", "1")
    run.signal(signal.SIGUSR2)
    assert run.wait(10) == 2


def test_isolation_says_what_was_proven(rig):
    run = rig.run("good")
    told = json.loads(run.wait_line("isolation ")[len("isolation "):])
    assert told["runtime"] == "microvm" and told["accel"] == "tcg" and told["kernel"] == "kernel (debian)"
    assert told["own_kernel"] is True and told["verdict"] == "protected"
    assert told["guest_boot_id"] == "11111111-2222-4333-8444-555555555555"
    assert {"no-new-privs", "seccomp", "qemu-sandbox", "rlimits"} <= set(told["confinement"])
    assert any(word.startswith("landlock-") for word in told["confinement"])
    assert (rig.user == "root") == any(word.startswith("uid-") for word in told["confinement"])


def start_with_stdin(rig, *words):
    return rig.start(*words, stdin=subprocess.PIPE, has_stdin="yes")


@pytest.mark.parametrize("size", [0, 1, 1000, 600_000])
def test_stdin_arrives_whole(any_rig, size):
    data = os.urandom(size)
    run = start_with_stdin(any_rig, "cat")
    run.process.stdin.write(data)
    run.process.stdin.close()
    assert run.wait() == 0, run.text
    assert run.objects()["events-000001.jsonl"] == data


def test_a_signal_reaches_the_program(any_rig):
    run = any_rig.start("signals", "obey")
    run.wait_line("phase running")
    run.signal(signal.SIGTERM)
    assert run.wait() == 0, run.text
    assert "signal 15" in run.lines


def test_damage_is_told_and_mended(any_rig):
    run = any_rig.run("damaged")
    assert run.end == ("succeeded", ""), run.text
    assert "damaged answered 20 3" in run.lines


@pytest.mark.parametrize("how", ["no-frame", "key", "climb", "order", "manifest", "large", "more", "type", "many"])
def test_a_guest_that_breaks_the_protocol_is_ended(any_rig, how):
    run = any_rig.run("breaks", how)
    assert run.end == ("failed", "protocol"), run.text
    assert not [name for name in run.objects() if name != "_canary_ok"]


def test_a_flood_of_archives_ends_with_the_quota(any_rig):
    run = any_rig.run("flood")
    assert run.end == ("failed", "quota"), run.text
    assert len(run.objects()) == 32


PANIC = "[    1.0] Kernel panic - not syncing: "
RESTART = "[    1.0] reboot: Restarting system"


@pytest.mark.parametrize("console, monitor, end, reason, detail", [
    (PANIC + "Attempted to kill init!", "guest-reset", "0", "guest-panic", "Attempted to kill init!"),
    (PANIC + "System is deadlocked on memory", "guest-reset", "0", "guest-out-of-memory", "deadlocked on memory"),
    ("-", "guest-reset", "0", "guest-triple-fault", ""),
    (RESTART, "guest-reset", "0", "guest-reset", ""),
    ("resoluto-runner: mount: No such device\n" + RESTART, "guest-reset", "0", "guest-reset", "mount: No such device"),
    ("-", "guest-shutdown", "0", "guest-power-off", ""),
    ("[    1.0] reboot: System halted", "-", "-", "guest-power-off", ""),
    ("-", "host-signal", "0", "emulator-killed", "a signal asked it to end"),
    ("-", "STOP", "-", "emulator-failed", "QEMU stopped the machine"),
    ("-", "-", "3", "emulator-failed", "qemu: last words"),
    ("-", "-", f"signal {signal.SIGTERM:d}", "emulator-killed", "signal 15"),
    ("-", "-", f"signal {signal.SIGSEGV:d}", "emulator-crashed", "signal 11"),
    ("-", "-", f"signal {signal.SIGABRT:d}", "emulator-crashed", "signal 6")])
def test_ends_are_told_apart(any_rig, console, monitor, end, reason, detail):
    run = any_rig.run("end", console, monitor, end)
    assert run.end == ("failed", reason), run.text
    told = [line for line in run.lines if line.startswith("detail ")]
    assert detail in told[-1] if detail else told == ["detail "], run.text


@pytest.mark.parametrize("console, reason", [(RESTART, "guest-power-off"), ("-", "guest-triple-fault")])
def test_a_machine_without_a_switch_leaves_by_a_restart(any_rig, console, reason):
    run = any_rig.run("end", console, "guest-reset", "0", env={"RESOLUTO_LOCAL_MACHINE": "x86_64-built"})
    assert run.end == ("failed", reason), run.text


@pytest.mark.parametrize("guest, reason", [("shared-kernel", "shared-kernel"), ("no-boot-id", "own-kernel-unproven")])
def test_a_guest_without_a_kernel_of_its_own_is_ended(any_rig, guest, reason):
    assert any_rig.run(guest).end == ("failed", reason)


def test_a_guest_that_hangs_before_its_program_is_running(any_rig):
    """Else no silence window would be armed, and nobody would end it."""
    run = any_rig.start("says hello and no more")
    run.wait_line("phase running")
    state = json.loads((run.folder() / "state.json").read_text())
    assert (state["phase"], state["own_kernel"]) == ("running", False)
    run.signal(signal.SIGUSR2)
    assert run.wait(10) == 2


def test_a_deaf_guest_does_not_block_the_shim(any_rig):
    run = any_rig.start("deaf")
    run.wait_line("phase running")
    top = any_rig.conduit / "run" / run.id
    wait_until(lambda: len(list(top.glob("events-*"))) > 100, "objects")
    run.signal(signal.SIGUSR2)
    assert run.wait(10) == 2
    assert run.lines[-1] == "destroyed"


def test_a_guest_that_never_reads_costs_no_memory(any_rig):
    run = start_with_stdin(any_rig, "glutton")
    run.wait_line("phase running")
    shim = run.shim()
    os.set_blocking(run.process.stdin.fileno(), False)
    sent = 0
    for _ in range(200):
        try:
            sent += os.write(run.process.stdin.fileno(), bytes(65536))
        except BlockingIOError:
            break
    status = pathlib.Path(f"/proc/{shim}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 16 * 1024
    run.signal(signal.SIGUSR2)
    assert run.wait(10) == 2


def test_the_console_is_a_ring_and_can_be_read_meanwhile(any_rig):
    run = any_rig.start("console")
    run.wait_line("phase running")

    def last_line():
        run.signal(signal.SIGUSR1)
        return "last line" in run.lines

    wait_until(last_line, "the console's last line")
    assert (run.folder() / "console.log").stat().st_size <= 64 * 1024


def test_the_deadline_ends_a_program_that_does_not_obey(any_rig):
    run = any_rig.run("signals", "ignore", deadline="300ms")
    assert run.end == ("failed", "deadline"), run.text
    assert "signal 15" in run.lines


def test_the_deadline_counts_even_if_the_program_obeys(any_rig):
    run = any_rig.run("signals", "obey", deadline="300ms")
    assert run.end == ("failed", "deadline"), run.text
    assert "_manifest.json" in run.objects()


def test_a_killed_caller_takes_all_along(rig):
    run = rig.start("started")
    run.wait_line("phase running")
    shim, qemu = run.shim(), run.qemu()
    run.signal(signal.SIGKILL)
    run.process.wait()
    gone_within_a_second(shim, qemu)
    state = json.loads((run.folder() / "state.json").read_text())
    assert (state["phase"], state["reason"]) == ("failed", "caller-died")
    assert "result.json" not in run.objects()
    rig.run("good")
    assert rig.runs() == [], "the next run removes what the dead one left"


def test_a_killed_shim_takes_qemu_along(rig):
    run = rig.start("started")
    run.wait_line("phase running")
    shim, qemu = run.shim(), run.qemu()
    os.kill(shim, signal.SIGKILL)
    gone_within_a_second(qemu)
    run.wait()
    assert run.end == ("failed", "shim-killed"), run.text
    assert rig.runs() == []


def test_a_killed_qemu_is_told(rig):
    run = rig.start("started")
    run.wait_line("phase running")
    qemu = run.qemu()
    os.kill(qemu, signal.SIGKILL)
    run.wait()
    assert run.end == ("failed", "emulator-killed"), run.text
    assert rig.runs() == []


def test_the_same_id_twice_is_refused(any_rig):
    first = any_rig.start("started", run_id="run-same")
    first.wait_line("phase running")
    second = any_rig.run("good", run_id="run-same")
    assert second.process.returncode == 3 and "refused EEXIST" in second.text
    first.signal(signal.SIGUSR2)
    assert first.wait() == 2


def test_no_slot_is_told_at_once_and_free_again_later(any_rig):
    env = {"RESOLUTO_LOCAL_MAX_RUNS": "1"}
    first = any_rig.start("started", env=env)
    first.wait_line("phase running")
    second = any_rig.run("good", env=env)
    assert second.process.returncode == 3 and "refused EBUSY" in second.text
    first.signal(signal.SIGUSR2)
    first.wait()
    assert any_rig.run("good", env=env).process.returncode == 0


def test_a_claimed_directory_stays_until_it_is_released(any_rig):
    run = any_rig.run("good", claim="yes")
    assert run.process.returncode == 0, run.text
    assert any_rig.runs() == []  # the driver's runtime releases what it claimed


@pytest.mark.parametrize("env, word", [
    ({"RESOLUTO_LOCAL_ACCEL": ""}, "local-backend-up.sh"),
    ({"RESOLUTO_LOCAL_ACCEL": "auto"}, "neither kvm nor tcg"),
    ({"RESOLUTO_LOCAL_KERNEL": ""}, "RESOLUTO_LOCAL_KERNEL"),
    ({"RESOLUTO_LOCAL_KERNEL": "/nonexistent"}, "/nonexistent"),
    ({"RESOLUTO_LOCAL_MAX_RUNS": "many"}, "RESOLUTO_LOCAL_MAX_RUNS"),
    ({"RESOLUTO_LOCAL_QEMU": "qemu"}, "absolute"),
    ({"RESOLUTO_LOCAL_MACHINE": "pdp11"}, "pdp11"),
    ({"RESOLUTO_LOCAL_BOOT_LIMIT": "soon"}, "RESOLUTO_LOCAL_BOOT_LIMIT=soon"),
    ({"RESOLUTO_LOCAL_BOOT_LIMIT": "999ms"}, "1s to 1h"),
    ({"RESOLUTO_LOCAL_BOOT_LIMIT": "2h"}, "1s to 1h"),
])
def test_a_wrong_configuration_is_refused_with_the_remedy(any_rig, env, word):
    run = any_rig.run("good", env=env)
    assert run.process.returncode == 3 and word in run.text, run.text
    assert any_rig.runs() == []


@pytest.mark.parametrize("options, word", [
    ({"memory": "64Mi"}, "128Mi"), ({"memory": "1Pi"}, "more than this host has"), ({"cpus": "100"}, "100 CPUs"),
    ({"disk": "1Mi"}, "16 MiB"), ({"image": "/nonexistent"}, "/nonexistent"), ({"prefix": "../up"}, "prefix")])
def test_a_wrong_spec_is_refused_before_anything_starts(any_rig, options, word):
    run = any_rig.run("good", **options)
    assert run.process.returncode == 3 and word in run.text, run.text
    assert any_rig.runs() == []


def test_kvm_is_never_lowered_silently(any_rig):
    run = any_rig.run("good", env={"RESOLUTO_LOCAL_ACCEL": "kvm"})
    if run.process.returncode == 3:
        assert "/dev/kvm" in run.text
    else:
        assert '"accel":"kvm"' in run.text


@pytest.mark.skipif(not IS_ROOT, reason="only root needs a range of users")
def test_root_without_a_range_of_users_is_refused():
    rig = Rig("root")
    run = rig.run("good", env={"RESOLUTO_LOCAL_UIDS": ""})
    rig.close()
    assert run.process.returncode == 3 and "RESOLUTO_LOCAL_UIDS" in run.text


@pytest.mark.skipif(not IS_ROOT, reason="only root needs a range of users")
def test_two_state_directories_share_no_user():
    rigs = [Rig("root"), Rig("root")]
    runs = [rig.start("started") for rig in rigs]
    for run in runs:
        run.wait_line("phase running")
    users = [os.stat(f"/proc/{run.qemu()}").st_uid for run in runs]
    held = [{os.readlink(fd) for fd in pathlib.Path(f"/proc/{run.shim()}/fd").iterdir()} for run in runs]
    for run, rig in zip(runs, rigs):
        run.signal(signal.SIGUSR2)
        run.wait()
        rig.close()
    assert 0 not in users and users[0] != users[1]
    assert all(f"/run/resoluto-sandbox/uids/{user}" in files for user, files in zip(users, held))


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount a small file system")
def test_a_full_conduit_is_told():
    rig = Rig("root")
    full = rig.top / "full"
    full.mkdir(mode=0o700)
    wrap = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=1m none {full} && exec "$@"', "sh"]
    run = rig.run("full", wrap=wrap, conduit=full)
    rig.close()
    assert run.end == ("failed", "store-full"), run.text
    assert "put _canary_ok answered 1002" in run.lines
