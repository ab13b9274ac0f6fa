# SPDX-License-Identifier: Apache-2.0
"""Runs that outlive their caller: found, followed, ended and removed by any process, whatever became of the first."""
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import termios
import time

import pytest

from conftest import Processes, wait_until

LOOP = "echo up; while :; do sleep 0.1; done"

# SIGUSR2 lets it go on: until then there is time to look around.
JOB = """
import os, signal, sys, time
asked = []
signal.signal(signal.SIGUSR2, lambda *_: asked.append(1))
print(open("in.txt").read(), end="")
print("oops", file=sys.stderr)
while not asked:
    time.sleep(0.05)
for i in range(1, 6):
    print("line", i)
    time.sleep(0.2)
os.mkdir("out")
open("out/made", "w").write("made\\n")
sys.exit(7)
"""


@pytest.fixture(autouse=True)
def nothing_left(sandbox):
    """What a test launched it removes, or its sandbox removes itself."""
    yield
    assert sandbox.remove_runs() == [] and stored(sandbox) == []


def stored(sandbox):
    folder = sandbox.state / "launch"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def detach(sandbox, *words, options=(), **more):
    done = sandbox.run("run", "--detach", *options, "--", *words, **more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout.decode().strip()


def listed(sandbox, run_id):
    rows = json.loads(sandbox.run("ps", "--json").stdout)
    return next((row for row in rows if row["id"] == run_id), None)


def remove(sandbox, run_id):
    done = sandbox.run("rm", run_id)
    assert done.returncode == 0, done.stderr


def machine_of(sandbox, run_id):
    """pids of the shim and of QEMU."""
    record = json.loads((sandbox.state / "runs" / run_id / "run.json").read_text())
    (qemu,) = Processes.qemu_of(run_id)
    return record["shim"]["pid"], qemu


def gone(*pids):
    return all(not Processes.is_alive(pid) for pid in pids)


def test_a_run_is_followed_from_other_processes(sandbox, tmp_path):
    """One run's whole life: two readers at once, each cursor, both streams, its outputs twice, its end."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "in.txt").write_text("from the workspace\n")
    (work / "job.py").write_text(JOB)
    start = time.monotonic()
    run_id = detach(sandbox, "python3", "-u", "job.py",
                    options=["--workspace", work, "--output", "out/**", "--label", "team=a", "--id", "det-life"])
    print(f"detached after {time.monotonic() - start:.2f} s")
    assert run_id == "det-life"
    row = listed(sandbox, run_id)
    assert (row["state"], row["exit_code"], row["kept"], row["labels"]["team"]) == ("running", None, True, "a")
    assert not sandbox.run("ps", "--label", "team=b").stdout.count(b"det-life")

    attached = [sandbox.start("attach", run_id) for _ in range(3)]
    late = sandbox.start("attach", run_id, "--from", "5")
    follower = sandbox.start("logs", "--follow", "--json", run_id)
    waiter = sandbox.start("wait", run_id)
    assert sandbox.run("collect", run_id, "--workspace", tmp_path / "early").returncode == 125
    assert not (tmp_path / "early").exists()
    refused = sandbox.run("rm", run_id)
    assert refused.returncode == 125 and b"det-life is running" in refused.stderr
    assert sandbox.run("sweep", "--label", "team=a").stdout == b""
    # One of the readers is killed: nobody is the worse for it.
    killed = attached.pop()
    assert killed.stdout.readline() == b"from the workspace\n" and killed.stderr.readline() == b"oops\n"
    killed.kill()
    killed.communicate()
    assert sandbox.run("kill", "--signal", "USR2", run_id).returncode == 0

    lines = [f"line {i}\n".encode() for i in range(1, 6)]
    everything = b"from the workspace\n" + b"".join(lines)
    for reader in attached:
        out, err = reader.communicate(timeout=120)
        assert (reader.returncode, out, err) == (7, everything, b"oops\n")
    out, err = late.communicate(timeout=60)
    assert (late.returncode, out, err) == (7, b"".join(lines[2:]), b"")
    out, err = follower.communicate(timeout=60)
    pieces = [json.loads(line) for line in out.splitlines()]
    assert follower.returncode == 0 and [p["seq"] for p in pieces] == list(range(1, 8))
    assert sorted(p["text"] for p in pieces if p["stream"] == "stderr") == ["oops\n"]
    out, err = waiter.communicate(timeout=60)
    assert (waiter.returncode, out, err) == (7, b"", b"")

    # It has ended: the same questions, and those about its end.
    assert (listed(sandbox, run_id)["exit_code"], listed(sandbox, run_id)["disposition"]) == (7, "completed")
    for first in range(1, 9):
        later = sandbox.run("attach", "--from", first, run_id)
        for stream, got in (("stdout", later.stdout), ("stderr", later.stderr)):
            assert got.decode() == "".join(p["text"] for p in pieces if p["seq"] >= first and p["stream"] == stream)
    assert sandbox.run("logs", "--tail", "2", run_id).stdout == b"line 4\nline 5\n"
    assert sandbox.run("logs", "--stream", "stderr", run_id).stderr == b"oops\n"
    result = json.loads(sandbox.run("wait", "--json", run_id).stdout)
    assert result["output"].encode().count(b"\n") == 7 and result["isolation"]["own_kernel"] is True
    assert result["isolation"]["accel"] and result["image"]["digest"].startswith("sha256:")
    assert result["timings_ms"]["total"] >= result["timings_ms"]["run"] > 0
    for _ in range(2):
        done = sandbox.run("collect", run_id, "--workspace", tmp_path / "back", "--json")
        assert json.loads(done.stdout)["artifacts"] == ["out/made"], done.stderr
        assert (tmp_path / "back" / "out" / "made").read_text() == "made\n"
    ended = sandbox.run("kill", run_id)
    assert ended.returncode == 125 and b"det-life has ended" in ended.stderr
    assert sandbox.run("sweep").stdout == b"" and sandbox.run("sweep", "--older", "1h").stdout == b""
    assert sandbox.run("sweep", "--label", "team=a").stdout == b"det-life\n"
    unknown = sandbox.run("attach", run_id)
    assert (unknown.returncode, unknown.stderr) == (125, b"resoluto-sandbox: attach: there is no run 'det-life'\n")


def test_all_input_is_handed_over_before_it_is_let_go(sandbox):
    data = os.urandom(3_000_000)
    run_id = detach(sandbox, "sha256sum", options=["-i"], input=data)
    done = sandbox.run("attach", run_id)
    assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert done.returncode == 0
    # attach returns once the machine is off, so that this is never refused.
    remove(sandbox, run_id)


def test_what_never_starts_is_told_and_not_kept(sandbox):
    done = sandbox.run("run", "--detach", "--", "/no/such/program")
    assert (done.returncode, done.stdout) == (127, b"") and b"not-found" in done.stderr


def test_a_signal_during_the_boot_waits_for_the_program(sandbox):
    launch = sandbox.start("run", "--detach", "--id", "det-boot", "--", "sh", "-c", "trap 'exit 33' TERM; " + LOOP)
    # Refused until there is a machine; from then on it is kept, however far its boot has come.
    wait_until(lambda: sandbox.run("kill", "det-boot").returncode == 0, "the signal to be taken")
    out, err = launch.communicate(timeout=120)
    assert launch.returncode == 0, err
    # The shell may get it before its trap is set.
    assert sandbox.run("wait", "det-boot").returncode in (33, 128 + signal.SIGTERM)
    remove(sandbox, "det-boot")


def test_a_launcher_killed_before_it_let_go_takes_its_machine_along(sandbox):
    launch = sandbox.start("run", "--detach", "--id", "det-crash", "--", "sh", "-c", LOOP)
    wait_until(lambda: Processes.qemu_of("det-crash"), "QEMU to start")
    launch.kill()
    launch.communicate(timeout=60)
    wait_until(lambda: not Processes.qemu_of("det-crash"), "QEMU to end", 20)
    row = wait_until(lambda: (found := listed(sandbox, "det-crash"))["state"] == "ended" and found, "its end to be told")
    assert (row["reason"], row["kept"]) == ("caller-died", False)
    assert sandbox.run("sweep").stdout == b"det-crash\n"


@pytest.mark.parametrize("victim,reason", [("shim", "shim-killed"), ("qemu", "emulator-killed")])
def test_a_killed_machine_is_told_by_the_next_command(sandbox, victim, reason):
    run_id = detach(sandbox, "sh", "-c", LOOP)
    wait_until(lambda: sandbox.run("logs", run_id).stdout == b"up\n", "the first line")
    shim, qemu = machine_of(sandbox, run_id)
    reader = sandbox.start("attach", run_id)
    assert reader.stdout.readline() == b"up\n"
    os.kill({"shim": shim, "qemu": qemu}[victim], signal.SIGKILL)
    _, err = reader.communicate(timeout=60)
    assert reader.returncode == 125 and reason.encode() in err
    wait_until(lambda: gone(shim, qemu), "both to end", 10)
    again = sandbox.run("attach", run_id)
    assert (again.returncode, again.stdout) == (125, b"up\n") and reason.encode() in again.stderr
    assert listed(sandbox, run_id)["reason"] == reason
    assert json.loads((sandbox.state / "runs" / run_id / "state.json").read_text())["reason"] == reason
    remove(sandbox, run_id)


def test_deadline_silence_and_force_end_what_nobody_watches(sandbox):
    """Three at once: one past its deadline, one whose machine hangs, one that is removed while it runs."""
    hung = detach(sandbox, "sh", "-c", "echo up; while :; do echo again; sleep 1; done", options=["--dead-after", "20s"])
    _, qemu = machine_of(sandbox, hung)
    os.kill(qemu, signal.SIGSTOP)
    late = detach(sandbox, "sh", "-c", LOOP, options=["--deadline", "30s"])
    busy = detach(sandbox, "sh", "-c", LOOP)
    shim, qemu = machine_of(sandbox, busy)
    reader = sandbox.start("attach", busy)
    assert reader.stdout.readline() == b"up\n"
    assert sandbox.run("rm", "--force", busy).returncode == 0
    assert gone(shim, qemu) and listed(sandbox, busy) is None
    _, err = reader.communicate(timeout=60)
    assert reader.returncode == 125, err
    wait_until(lambda: listed(sandbox, hung)["state"] == "ended", "the silence to be noticed", 120)
    assert listed(sandbox, hung)["reason"] == "silent"
    done = sandbox.run("wait", hung)
    assert done.returncode == 125 and b"silent" in done.stderr
    assert sandbox.run("wait", late).returncode == 124
    remove(sandbox, hung)
    remove(sandbox, late)


def test_a_foreground_run_outlives_its_terminal(sandbox, tmp_path):
    """Its terminal goes away: the run goes on, its input from a pipe has ended, and its outputs can be fetched."""
    master, slave = pty.openpty()
    job = "echo up; cat > got.txt; echo the input has ended; wc -c < got.txt; exit 4"
    run = subprocess.Popen([sandbox.cli, "run", "-i", "--id", "det-tty", "--output", "got.txt", "--output-dir",
                            str(tmp_path / "unused"), "--", "sh", "-c", job], env=sandbox.env, stdin=subprocess.PIPE,
                           stdout=slave, stderr=slave, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
    os.close(slave)
    run.stdin.write(b"some input")
    run.stdin.flush()
    shown = b""
    while b"up" not in shown:
        shown += os.read(master, 4096)
    watcher = sandbox.start("attach", "det-tty")
    assert watcher.stdout.readline() == b"up\n"
    os.close(master)  # the kernel sends SIGHUP
    assert run.wait(timeout=60) == 128 + signal.SIGHUP
    out, _ = watcher.communicate(timeout=120)
    assert (watcher.returncode, out) == (4, b"the input has ended\n10\n")
    assert listed(sandbox, "det-tty")["kept"]
    done = sandbox.run("collect", "det-tty", "--workspace", tmp_path / "back")
    assert done.stdout == b"got.txt\n" and (tmp_path / "back" / "got.txt").read_text() == "some input"
    remove(sandbox, "det-tty")
    run.stdin.close()


def test_kept_runs_of_the_foreground_can_be_read_again(sandbox):
    done = sandbox.run("run", "--keep", "--id", "det-kept", "--", "sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    again = sandbox.run("attach", "det-kept")
    assert (again.returncode, again.stdout) == (3, b"out\n"), again.stderr
    remove(sandbox, "det-kept")


class Remains:
    """A run as files, without any process: what a restart of the machine leaves of one that was going on."""

    def __init__(self, sandbox, run_id, boot_id):
        self.folder = sandbox.state / "runs" / run_id
        self.objects = self.folder / "conduit" / "run" / run_id
        self.objects.mkdir(parents=True)
        (self.folder / "lock").touch()
        (self.folder / "run.json").write_text(json.dumps({
            "schema": 1, "id": run_id, "labels": ["team=a"], "image": "img", "created": 1.0, "keep": True,
            "boot_id": boot_id, "objects": str(self.objects), "accel": "tcg", "kernel": "6.1",
            "shim": {"pid": os.getpid(), "start": 1}, "caller": {"pid": 1, "start": 1}}))

    def chunk(self, number, *lines):
        opening = {"run_id": self.folder.name, "span_id": "aa", "kind": "workload", "event": "open", "ts": 1.0}
        events = [opening] if number == 1 else []
        events += [{"run_id": self.folder.name, "span_id": f"l{seq}", "parent_span_id": "aa", "kind": "log", "event": "log",
                    "ts": 2.0, "data": {"line": line, "stream": "stdout", "seq": seq}} for seq, line in lines]
        text = "".join(json.dumps(event) + "\n" for event in events)
        (self.objects / f"events-{number:06}.jsonl").write_text(text)


def test_after_a_restart_of_the_machine_a_run_is_external(sandbox):
    remains = Remains(sandbox, "det-reboot", "11111111-1111-1111-1111-111111111111")
    remains.chunk(1, (1, "one"), (2, "two"))
    remains.chunk(2, (3, "three"))
    # A power cut: the shim's last state was not flushed.
    (remains.folder / "state.json").write_bytes(bytes(64))
    done = sandbox.run("attach", "det-reboot", "--from", "2")
    assert (done.returncode, done.stdout) == (125, b"two\nthree\n")
    assert b"external: the machine was restarted while the run was going on" in done.stderr
    row = listed(sandbox, "det-reboot")
    assert (row["state"], row["reason"], row["disposition"]) == ("ended", "external", "external")
    # Written down once: it stays so, whatever the next boot id is.
    record = json.loads((remains.folder / "run.json").read_text())
    record["boot_id"] = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (remains.folder / "run.json").write_text(json.dumps(record))
    assert listed(sandbox, "det-reboot")["reason"] == "external"
    remove(sandbox, "det-reboot")


def test_remains_are_told_apart_and_hostile_ones_are_harmless(sandbox):
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    killed = Remains(sandbox, "det-killed", boot_id)
    killed.chunk(1, (1, "one"))
    complete = Remains(sandbox, "det-whole", boot_id)
    complete.chunk(1, (1, "one"))
    (complete.objects / "result.json").write_text(json.dumps(
        {"node_id": "run", "status": "success", "exit_code": 5, "ran": True,
         "guest_boot_id": "22222222-2222-2222-2222-222222222222"}))
    (complete.objects / "_manifest.json").write_text('{"total_chunks": 1}')
    odd = Remains(sandbox, "det-odd", boot_id)
    (odd.folder / "run.json").write_bytes(b"\xff" * 1000)
    (odd.folder / "door").write_text("no fifo")
    assert sandbox.run("wait", "det-killed").returncode == 125
    # Nobody saw its end; what the guest wrote is the truth.
    assert sandbox.run("wait", "det-whole").returncode == 5
    rows = {row["id"]: row for row in json.loads(sandbox.run("ps", "--json").stdout)}
    assert rows["det-killed"]["reason"] == "shim-killed"
    assert rows["det-whole"]["disposition"] == "completed"
    assert rows["det-odd"]["reason"] == "caller-died"
    assert sandbox.run("kill", "det-odd").returncode == 125
    for run_id in rows:
        remove(sandbox, run_id)


def test_collect_prints_the_program_s_result_as_it_is(sandbox, tmp_path):
    run_id = detach(sandbox, "sh", "-c", """printf '{"n": 18446744073709551615, "half": 0.10}' >result.json""",
                    options=["--output", "result.json"])
    assert sandbox.run("wait", run_id).returncode == 0
    done = sandbox.run("collect", run_id, "--workspace", tmp_path, "--json")
    assert b'"result":{"n":18446744073709551615,"half":0.10}}' in done.stdout, (done.stdout, done.stderr)
    assert sandbox.run("rm", run_id).returncode == 0
