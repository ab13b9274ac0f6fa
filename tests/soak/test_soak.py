# SPDX-License-Identifier: Apache-2.0
"""Many runs, long ones, and ends at any moment: nothing fails once in a hundred, nothing is left, nothing grows.

Part of check.sh --full, in groups (conftest.soak)."""
import os
import json
import random
import signal
import subprocess
import time

from conftest import ROOT, Processes, kernel_environment, soak, wait_until

def last_value(script, *arguments, **environment):
    """The figure of a bench's last line, "value V unit"."""
    done = subprocess.run(["bash", ROOT / "bench" / script, *map(str, arguments)], env=dict(os.environ, **environment),
                          stdout=subprocess.PIPE, text=True, timeout=3600)
    print(done.stdout)
    assert done.returncode == 0
    word, value, _ = done.stdout.splitlines()[-1].split(" ", 2)
    assert word == "value"
    return float(value)


@soak("many")
def test_a_hundred_runs_one_after_another(sandbox):
    for number in range(100):
        done = sandbox.run("run", "--json", "--", "/bin/sh", "-c", f"echo {number}; exit {number % 120}")
        result = json.loads(done.stdout)
        assert (done.returncode, result["output"]) == (number % 120, f"{number}\n"), result
    assert sandbox.runs() == []


@soak("many")
def test_64_over_fakes_and_8_in_microvms_at_once_twenty_times():
    assert last_value("at_once.sh", 20) == 0


@soak("killed")
def test_killed_at_any_moment(sandbox):
    """SIGTERM at a random moment, from before the boot to behind the end: nothing is left."""
    chance = random.Random(1)
    for _ in range(25):
        run = sandbox.start("run", "--", "/bin/sh", "-c", "echo up; sleep 0.5; echo down")
        try:
            run.wait(timeout=chance.uniform(0, 4))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=120)
        assert out in (b"", b"up\n", b"up\ndown\n")
        assert run.returncode in (0, 125, 128 + signal.SIGTERM), err
        wait_until(lambda: sandbox.runs() == [], "the run's directory to go", 10)


@soak("killed")
def test_let_go_at_any_moment(sandbox):
    """SIGHUP at a random moment: either nothing had begun and nothing is left, or the run goes on to its end."""
    chance, gone_on = random.Random(2), 0
    for number in range(25):
        run_id = f"soak-hup-{number}"
        run = sandbox.start("run", "--id", run_id, "--", "/bin/sh", "-c", "echo up; sleep 0.5; echo down; exit 3")
        time.sleep(chance.uniform(0, 1.5))
        run.send_signal(signal.SIGHUP)
        _, err = run.communicate(timeout=120)
        # Before it could be caught the signal is the end of the command.
        assert run.returncode in (3, 128 + signal.SIGHUP, -signal.SIGHUP), err
        if run_id in sandbox.runs():
            done = sandbox.run("attach", run_id)
            assert (done.returncode, done.stdout) in ((3, b"up\ndown\n"), (125, b"")), done.stderr
            gone_on += done.returncode == 3
            assert sandbox.run("rm", run_id).returncode == 0
        assert not Processes.qemu_of(run_id)
    assert gone_on > 0 and sandbox.runs() == []


LINES = 20_000
WRITER = f"""
import time
for i in range(1, {LINES} + 1):
    print("line", i, flush=True)
    if i % 200 == 0:
        time.sleep(0.05)
"""


@soak("readers")
def test_readers_come_and_go_while_a_run_writes(sandbox):
    """Each from a cursor of its own, some killed: whoever stayed has exactly the lines from there on."""
    chance, run_id = random.Random(3), "soak-readers"
    assert sandbox.run("run", "--detach", "--id", run_id, "--", "python3", "-c", WRITER).returncode == 0
    readers = []
    for _ in range(20):
        first = chance.randint(1, LINES)
        readers.append((first, sandbox.start("attach", "--from", first, run_id, stdin=subprocess.DEVNULL,
                                             stdout=open(sandbox.env["TMPDIR"] + f"/reader-{len(readers)}", "w+b"))))
        time.sleep(chance.uniform(0, 0.2))
    for _, reader in readers[::5]:
        reader.kill()
    for number, (first, reader) in enumerate(readers):
        code = reader.wait(timeout=300)
        path = sandbox.env["TMPDIR"] + f"/reader-{number}"
        with open(path, "rb") as file:
            got = file.read()
        os.unlink(path)
        reader.stderr.close()
        want = b"".join(b"line %d\n" % i for i in range(first, LINES + 1))
        if number % 5 == 0:
            assert code == -signal.SIGKILL and want.startswith(got)
        else:
            assert code == 0 and got == want, (number, first, len(got), len(want))
    assert sandbox.run("rm", run_id).returncode == 0


@soak("readers")
def test_the_middle_of_a_million_events_is_shown_within_a_tenth_of_a_second():
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"
    assert last_value("attach.sh", 20, TMPDIR=place) <= 100


@soak("bombs")
def test_bombs_leave_the_host_as_it_was(sandbox, tmp_path):
    """Ten of each, and after each a run that goes well."""
    subprocess.run(["cc", "-D_GNU_SOURCE", "-static", "-O2", "-o", tmp_path / "bomb", ROOT / "tests/e2e/bomb.c"], check=True)
    for number in range(10):
        for what, code in (("memory", 7), ("forks", 9)):
            done = sandbox.run("run", "--memory", "192Mi", "--workspace", tmp_path, "--", "./bomb", what,
                               env=kernel_environment("built"))
            assert done.returncode == code, done.stderr
        done = sandbox.run("run", "--", "echo", str(number))
        assert (done.returncode, done.stdout) == (0, f"{number}\n".encode())
    assert sandbox.runs() == []
