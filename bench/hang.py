# SPDX-License-Identifier: Apache-2.0
"""Cold runs one after another: how many hang, how many fail.  A hang is over 30 s, or a boot that the facade had to
try once more: that one costs the boot limit, far over 30 s."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

HANG_S = 30
GIVE_UP_S = 600


def one(argv, env):
    """(seconds, complaint or "")"""
    start = time.monotonic()
    try:
        done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=GIVE_UP_S)
    except subprocess.TimeoutExpired:
        return time.monotonic() - start, "no end"
    complaint = done.stderr.decode(errors="replace")[-500:] if done.returncode else ""
    return time.monotonic() - start, f"exit code {done.returncode}: {complaint}" if done.returncode else ""


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    kind = sys.argv[2] if len(sys.argv) > 2 else "built"
    env = sandbox.environment() | sandbox.kernel(kind)
    argv = [sandbox.cli(), "run", "--", "/bin/true"]
    times, hangs, failures = [], 0, 0
    for number in range(1, rounds + 1):
        seconds, complaint = one(argv, env)
        times.append(seconds)
        hangs += seconds > HANG_S
        failures += bool(complaint)
        if complaint or seconds > HANG_S:
            print(f"run {number}: {seconds:.1f} s {complaint}", flush=True)
    sandbox.report(f"{kind} run -- /bin/true", times)
    print(f"{failures} failed")
    print("limit 0")
    print(f"value {hangs + failures} hangs and failures")


main()
