# SPDX-License-Identifier: Apache-2.0
"""Waiting for a slot, many at once, and what a caller that is killed leaves to others."""
import json
import os
import signal
import time

import pytest

from conftest import Processes, wait_until


@pytest.fixture(autouse=True)
def nothing_left(sandbox):
    yield
    assert sandbox.remove_runs() == []


def row_of(sandbox, run_id):
    rows = json.loads(sandbox.run("ps", "--json").stdout)
    return next((row for row in rows if row["id"] == run_id), None)


def test_eight_at_once_share_three_slots(sandbox):
    runs = [sandbox.start("run", "--json", "--id", f"life-{i}", "--memory", "256Mi", "--", "sh", "-c", f"echo {i}; exit {i}",
                          env={"RESOLUTO_LOCAL_MAX_RUNS": "3"}) for i in range(8)]
    at_once = 0
    while any(run.poll() is None for run in runs):
        at_once = max(at_once, sum(any(b"life-" in word for word in Processes.argv(pid))
                                   for pid in Processes.of_program("qemu-system")))
        time.sleep(0.05)
    results = []
    for number, run in enumerate(runs):
        out, err = run.communicate(timeout=300)
        results.append(json.loads(out))
        assert (run.returncode, results[-1]["output"], results[-1]["reason"]) == (number, f"{number}\n", ""), err
    assert 0 < at_once <= 3 and max(result["timings_ms"]["queue"] for result in results) > 0
    assert all(result["timings_ms"]["queue"] <= result["timings_ms"]["total"] for result in results)


def test_one_that_waits_for_a_slot_can_be_seen_and_stopped(sandbox):
    slots = {"RESOLUTO_LOCAL_MAX_RUNS": "1"}
    first = sandbox.start("run", "-i", "--id", "life-first", "--", "cat", env=slots)
    first.stdin.write(b"x\n")
    first.stdin.flush()
    assert first.stdout.readline() == b"x\n", first.stderr.read()
    second = sandbox.start("run", "--json", "--id", "life-second", "--label", "team=a", "--", "echo", "hi", env=slots)
    row = wait_until(lambda: row_of(sandbox, "life-second"), "the second to be claimed")
    assert (row["state"], row["exit_code"]) == ("starting", None)
    for words in (["kill"], ["rm"], ["rm", "--force"]):
        refused = sandbox.run(*words, "life-second")
        assert refused.returncode == 125 and b"life-second" in refused.stderr
    assert sandbox.run("sweep").stdout == b""
    # A terminal that goes away takes along what has not begun.
    third = sandbox.start("run", "--id", "life-third", "--", "true", env=slots)
    wait_until(lambda: row_of(sandbox, "life-third"), "the third to be claimed")
    third.send_signal(signal.SIGHUP)
    assert third.wait(timeout=60) == 128 + signal.SIGHUP
    assert row_of(sandbox, "life-third") is None
    first.communicate(timeout=120)
    out, err = second.communicate(timeout=120)
    result = json.loads(out)
    assert (second.returncode, result["output"]) == (0, "hi\n"), err
    assert 0 < result["timings_ms"]["queue"] < result["timings_ms"]["total"]


def test_what_was_to_be_kept_outlives_a_caller_that_is_killed(sandbox, tmp_path):
    run = sandbox.start("run", "--keep", "--id", "life-kept", "--label", "team=a", "--output", "out", "--output-dir",
                        tmp_path / "unused", "--", "sh", "-c", "echo up; while :; do sleep 0.1; done")
    assert run.stdout.readline() == b"up\n", run.stderr.read()
    row = row_of(sandbox, "life-kept")
    assert (row["state"], row["program"], row["kept"], row["labels"]["team"]) == ("running", "sh", True, "a")
    run.kill()
    run.communicate(timeout=60)
    wait_until(lambda: not Processes.qemu_of("life-kept"), "QEMU to end", 20)
    assert sandbox.run("sweep").stdout == b""
    row = wait_until(lambda: (found := row_of(sandbox, "life-kept"))["state"] == "ended" and found, "its end to be told")
    assert (row["reason"], row["program"], row["kept"]) == ("caller-died", "sh", True)
    checks = {check["id"]: check for check in json.loads(sandbox.run("doctor", "--json").stdout)["checks"]}
    assert checks["leftovers"]["note"].startswith("0 running, 1 kept, 0 dead; "), checks["leftovers"]
    again = sandbox.run("attach", "life-kept")
    assert (again.returncode, again.stdout) == (125, b"up\n") and b"caller-died" in again.stderr
    assert sandbox.run("sweep", "--label", "team=a").stdout == b"life-kept\n"
    assert not os.listdir(sandbox.state / "launch")
