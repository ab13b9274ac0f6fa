# SPDX-License-Identifier: Apache-2.0
"""Many runs: nothing fails once in a hundred, nothing is left, nothing grows.  Part of check.sh --full."""
import json
import os
import signal
import random

import pytest

from conftest import wait_until

pytestmark = pytest.mark.skipif(not os.environ.get("RESOLUTO_SOAK"), reason="set RESOLUTO_SOAK=1 (check.sh --full)")


def test_a_hundred_runs_one_after_another(sandbox):
    for number in range(100):
        done = sandbox.run("run", "--json", "--", "/bin/sh", "-c", f"echo {number}; exit {number % 120}")
        result = json.loads(done.stdout)
        assert (done.returncode, result["output"]) == (number % 120, f"{number}\n"), result
    assert sandbox.runs() == []


def test_eight_at_once_ten_times(sandbox):
    for _ in range(10):
        runs = [sandbox.start("run", "--memory", "512Mi", "--", "/bin/sh", "-c", f"echo {i}") for i in range(8)]
        for number, run in enumerate(runs):
            out, err = run.communicate(timeout=300)
            assert (run.returncode, out) == (0, f"{number}\n".encode()), err
    assert sandbox.runs() == []


def test_killed_at_any_moment(sandbox):
    """SIGTERM at a random moment, from before the boot to behind the end: nothing is left."""
    chance = random.Random(1)
    for _ in range(25):
        run = sandbox.start("run", "--", "/bin/sh", "-c", "echo up; sleep 0.5; echo down")
        try:
            run.wait(timeout=chance.uniform(0, 4))
        except Exception:
            run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=120)
        assert out in (b"", b"up\n", b"up\ndown\n")
        assert run.returncode in (0, 125, 128 + signal.SIGTERM), err
        wait_until(lambda: sandbox.runs() == [], "the run's directory to go", 10)


def test_a_quarter_gigabyte_of_output(sandbox):
    run = sandbox.start("run", "--", "/bin/sh", "-c", "yes 0123456789abcdef | head -c 268435456")
    total = 0
    while True:
        piece = run.stdout.read(1 << 20)
        if not piece:
            break
        total += len(piece)
    assert run.wait(timeout=60) == 0
    assert total == 268435456
