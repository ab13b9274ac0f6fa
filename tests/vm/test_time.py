# SPDX-License-Identifier: Apache-2.0
"""The guest's clocks against the host's, on both kernels and 1, 2 and 4 CPUs.

Nothing here depends on how fast the machine is: each reading of a guest's clock is bracketed by two of the host's, many
brackets are laid over each other until the rest is narrow, and a test fails only when what is left excludes the claim."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import tempfile
import time

import pytest

from conftest import needed, read_to_end, wait_until
from guest_host import Guest, host_clock, make_job

MS = 1_000_000
SECOND = 1000 * MS
CPUS = (1, 2, 4)
NARROW = 8 * MS  # so wide a bracket tells a clock within 10 ms from one that is not
PATIENCE = 300   # seconds to get one, on a machine that does much else
WALL, MONOTONIC = time.CLOCK_REALTIME, time.CLOCK_MONOTONIC

SERVER = """
import subprocess, sys, time
print("ready", flush=True)
for line in sys.stdin:
    if line in ("sleep\\n", "nap\\n"):
        before = time.monotonic_ns()
        subprocess.run(["sleep", "1"], check=True) if line == "sleep\\n" else time.sleep(1)
        print(time.monotonic_ns() - before, flush=True)
    else:
        print(time.clock_gettime_ns(int(line)), flush=True)
"""


class Clock:
    """A program in a guest that tells the time when it is asked."""

    def __init__(self, sandbox, run_id, *options, **how):
        self.sandbox, self.run_id = sandbox, run_id
        self.process = sandbox.start("run", "-i", "--id", run_id, "--memory=256Mi", *options, "--", "python3", "-c", SERVER,
                                     **how)

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else b""
        assert line, f"{self.run_id} said nothing: {self.end()}"
        return line.strip()

    def ask(self, what):
        """The answer, and the host's wall and monotonic clocks before and after it."""
        before = {clock: time.clock_gettime_ns(clock) for clock in (WALL, MONOTONIC)}
        self.process.stdin.write(b"%s\n" % str(what).encode())
        self.process.stdin.flush()
        answer = int(self.line())
        return answer, before, {clock: time.clock_gettime_ns(clock) for clock in (WALL, MONOTONIC)}

    def offset(self, clock):
        """Between which two numbers of nanoseconds the guest's clock is ahead of the host's."""
        samples, give_up = [], time.monotonic() + PATIENCE
        while True:
            answer, before, after = self.ask(clock)
            samples = samples[-30:] + [(answer - after[clock], answer - before[clock])]
            low, high = max(s[0] for s in samples), min(s[1] for s in samples)
            # A clock that was set meanwhile leaves nothing in common: begin anew.
            if low > high:
                samples = []
            elif high - low <= NARROW:
                return low, high
            assert time.monotonic() < give_up, f"in {PATIENCE} s no bracket of {NARROW / MS} ms: {samples}"

    def events(self):
        chunks = sorted((self.sandbox.state / "runs" / self.run_id / "conduit").rglob("events-*.jsonl"))
        return b"".join(chunk.read_bytes() for chunk in chunks).decode()

    def has_set(self):
        return "clock: set" in self.events()

    def end(self):
        out, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, errors


def excludes(bracket, limit):
    return bracket[0] > limit or bracket[1] < -limit


def says(bracket):
    return f"the guest's clock is {bracket[0] / MS:.3f} to {bracket[1] / MS:.3f} ms ahead"


@pytest.fixture(scope="module")
def watched(kernel, sandbox):
    """Three guests at once, looked at as soon as they run and again 60 s later."""
    name = kernel["RESOLUTO_LOCAL_MACHINE"].replace("_", "-")
    guests = {cpus: Clock(sandbox, f"time-{name}-{cpus}", "--cpus", cpus, env=kernel) for cpus in CPUS}
    for guest in guests.values():
        assert guest.line() == b"ready"
    begin = time.monotonic()
    looks = []
    for at in (0, 60):
        time.sleep(max(0, begin + at - time.monotonic()))
        looks.append({cpus: (time.monotonic_ns(), guest.offset(WALL), guest.offset(MONOTONIC), time.monotonic_ns())
                      for cpus, guest in guests.items()})
    yield guests, looks
    for guest in guests.values():
        code, _, errors = guest.end()
        assert code == 0, errors


@pytest.mark.parametrize("cpus", CPUS)
def test_the_wall_clock_is_right_at_the_start(watched, cpus):
    _, wall, _, _ = watched[1][0][cpus]
    assert not excludes(wall, 10 * MS), says(wall)


@pytest.mark.parametrize("cpus", CPUS)
def test_it_was_right_from_the_first_moment(watched, kernel, sandbox, cpus):
    """The look at the start is one at seconds later, but a clock that was set until then has a line that says so, ahead of
    what the program answers. The host may have been too busy to tell it well at once, so one start of many counts."""
    (_, wall, _, _), guest = watched[1][0][cpus], watched[0][cpus]
    right = not excludes(wall, 10 * MS) and not guest.has_set()
    for start in range(10):
        if right:
            return
        guest = Clock(sandbox, f"{guest.run_id}-{start}", "--cpus", cpus, env=kernel)
        assert guest.line() == b"ready"
        right = not excludes(guest.offset(WALL), 10 * MS) and not guest.has_set()
        code, _, errors = guest.end()
        assert code == 0, errors
    pytest.fail("in each of many starts the clock had to be set once more")


@pytest.mark.parametrize("cpus", CPUS)
def test_the_wall_clock_is_right_after_a_minute(watched, cpus):
    _, wall, _, _ = watched[1][1][cpus]
    assert not excludes(wall, 10 * MS), says(wall)


@pytest.mark.parametrize("cpus", CPUS)
def test_the_rate_is_right(watched, cpus):
    (_, _, first, _), (_, _, second, _) = watched[1][0][cpus], watched[1][1][cpus]
    from_ns, to_ns = watched[1][0][cpus][0], watched[1][1][cpus][3]
    drift = (second[0] - first[1], second[1] - first[0])  # at least, at most
    assert to_ns - from_ns >= 59 * SECOND
    assert not excludes(drift, (to_ns - from_ns) / 1000), f"{drift} ns in {to_ns - from_ns} ns"


@pytest.mark.parametrize("cpus", CPUS)
def test_sleep_1_lasts_a_second_of_the_host(watched, cpus):
    """Never less, by the host.  More only by what the machine does besides, so the best of many counts, without the
    start of a program, and by the guest's clock, whose rate is known by now."""
    guest = watched[0][cpus]
    inside, before, after = guest.ask("sleep")
    assert inside >= SECOND * 0.999 and after[MONOTONIC] - before[MONOTONIC] >= SECOND * 0.999
    best = SECOND * 100
    for _ in range(60):
        best = min(best, guest.ask("nap")[0])
        if best < SECOND * 1.1:
            return
    pytest.fail(f"the shortest of 60 took {best / SECOND:.3f} s")


def test_a_right_clock_is_never_set_again(watched):
    """Only one that is off for certain: where a busy host answered late at the start, that is known later."""
    for guest in watched[0].values():
        events = guest.events()
        steps = re.findall(r"clock: set (?:back|forward) by (\S+) s", events)
        assert '"workload"' in events and len(steps) <= 1 and "clock-rate" not in events, events
        assert all(10 * MS <= float(step) * SECOND < 200 * MS for step in steps), steps


def test_an_emulator_that_was_stopped(watched, sandbox):
    """As by job control, or a host without time for it: right again within a minute."""
    guest = watched[0][2]
    (qemu,) = sandbox.processes.qemu_of(guest.run_id)
    os.kill(qemu, signal.SIGSTOP)
    try:
        time.sleep(5)
    finally:
        os.kill(qemu, signal.SIGCONT)
    give_up = time.monotonic() + 60
    wall = guest.offset(WALL)
    while excludes(wall, 10 * MS):
        assert time.monotonic() < give_up, says(wall)
        wall = guest.offset(WALL)


# --- a clock that is wrong ---


def test_a_wrong_rate_is_said(kernel, sandbox, tmp_path):
    """A cache that holds another machine's rate: 1.3 times as fast, so the guest's seconds last 1.3."""
    rate = tmp_path / "state/tsc.json"
    environment = {**kernel, "RESOLUTO_STATE_DIR": str(rate.parent)}
    rate.parent.mkdir(mode=0o700)
    assert sandbox.run("run", "--memory=256Mi", "--", "true", env=environment).returncode == 0
    measured = json.loads(rate.read_text())
    rate.write_text(json.dumps({**measured, "khz": measured["khz"] * 13 // 10}))
    other = type(sandbox)(rate.parent, tmp_path)
    ours, theirs = pty.openpty()  # a person sits there: remarks are printed
    run = Clock(other, "wrong-rate", "--json", env=environment, stderr=theirs)
    os.close(theirs)
    wait_until(lambda: "clock-rate" in run.events(), "the line that says so", PATIENCE)
    (line,) = [event["data"]["line"] for event in map(json.loads, run.events().splitlines())
               if "clock-rate" in event.get("data", {}).get("line", "")]
    code, out, _ = run.end()
    result = json.loads(out)
    assert code == 0 and result["ok"] and result["warnings"] == [line]
    assert line in read_to_end(ours).decode()
    percent, way = re.fullmatch(r"clock-rate: the sandbox's clock runs ([0-9.]+) % too (\w+), .*", line).groups()
    # In a second the guest counts 1 / 1.3 of one.
    assert way == "slowly" and 22 < float(percent) < 24


def test_a_right_rate_is_not_warned_of(sandbox):
    done = sandbox.run("run", "--json", "--", "true")
    assert json.loads(done.stdout)["warnings"] == []


# --- a host that stood still, or was set ---


class Monitor:
    """QEMU's own, in a thread of its own since the guest is served meanwhile."""

    def __init__(self, path):
        wait_until(path.exists, "the monitor's socket")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.say("qmp_capabilities")

    def say(self, command):
        self.file.write(json.dumps({"execute": command}) + "\n")
        self.file.flush()
        while "return" not in json.loads(self.file.readline()):
            pass


def set_lines(guest):
    """By how many seconds the runner says that it has set the clock, in order."""
    text = json.dumps(guest.events()) if guest.objects else ""
    return [float(seconds) * (1 if way == "forward" else -1)
            for way, seconds in re.findall(r"clock: set (\w+) by ([0-9.]+) s", text)]


def test_a_host_that_was_set_and_a_machine_that_stood_still():
    needed("RESOLUTO_TEST_ROOTFS")
    ahead = [0]

    def clock():
        wall, raw = host_clock()
        return wall + ahead[0], raw

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "qmp"
        job = make_job(["/bin/sh", "-c", "read line; date +%s"], stdin=True)
        with Guest(job, clock=clock, qemu=["-qmp", f"unix:{path},server=on,wait=off"]) as guest:
            guest.run(until=lambda g: g.started)
            ahead[0] = 3600 * SECOND
            guest.run(until=lambda g: len(set_lines(g)) == 1)
            assert abs(set_lines(guest)[0] - 3600) < 1
            monitor = Monitor(path)
            before = time.monotonic()
            monitor.say("stop")
            stopped = time.monotonic()
            time.sleep(3)
            starting = time.monotonic()
            monitor.say("cont")
            started = time.monotonic()
            guest.run(until=lambda g: len(set_lines(g)) == 2)
            assert starting - stopped - 0.02 < set_lines(guest)[1] < started - before + 0.02
            guest.send_stdin(b"\n")
            guest.run()
            assert guest.result()["status"] == "success" and "warnings" not in guest.result()
            assert abs(int(guest.output()) - (time.time() + 3600)) < PATIENCE
