# SPDX-License-Identifier: Apache-2.0
"""Many runs at once, again and again: how many of them fail (the aim is none), and how long a round takes."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

AT_ONCE = 8


def over_fakes(rounds):
    build = os.environ.get("RESOLUTO_BUILD_DIR", str(sandbox.ROOT / "build"))
    program = "tests/unit/sandbox/sandbox-at_once"
    subprocess.run(["ninja", "-C", build, program], check=True, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    done = subprocess.run([f"{build}/{program}", str(rounds)], stdout=subprocess.PIPE, text=True)
    print(f"64 at once over the fake runtime, {rounds} times: {time.monotonic() - start:.1f} s")
    if done.returncode != 0:
        print(done.stdout)
    return int(done.returncode != 0)


def one_round(number, env):
    """How many of eight went wrong."""
    runs = [subprocess.Popen([sandbox.cli(), "run", "--id", f"once-{i}", "--memory", "256Mi", "--", "sh", "-c",
                              f"echo {number} {i}; exit {i}"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for i in range(AT_ONCE)]
    failures = 0
    for i, run in enumerate(runs):
        out, err = run.communicate()
        if (run.returncode, out) != (i, f"{number} {i}\n".encode()):
            print(f"round {number}, run {i}: exit code {run.returncode}, {out!r}, {err.decode(errors='replace')}")
            failures += 1
    return failures


def in_microvms(rounds):
    failures, took = 0, []
    with tempfile.TemporaryDirectory(prefix="at-once-") as state:
        os.chmod(state, 0o700)
        env = dict(sandbox.environment(), RESOLUTO_STATE_DIR=state, **sandbox.kernel("built"))
        for number in range(rounds):
            start = time.monotonic()
            failures += one_round(number, env)
            took.append(time.monotonic() - start)
        left = os.listdir(f"{state}/runs") + [pid for i in range(AT_ONCE) for pid in sandbox.machines_of(f"once-{i}")]
    sandbox.report(f"{AT_ONCE} at once in microVMs", took)
    if left:
        print(f"left: {left}")
    return failures + len(left)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"value {over_fakes(rounds) + in_microvms(rounds)} failures")


main()
