# SPDX-License-Identifier: Apache-2.0
"""Two and eight runs at once against the same work one after another: no failure, nothing left, aggregate time."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

COMMAND = ["run", "--memory", "512Mi", "--", "python3", "-c", "print(sum(i * i for i in range(300000)))"]


def together(count):
    start = time.monotonic()
    runs = [subprocess.Popen([sandbox.cli(), *COMMAND], env=sandbox.environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for _ in range(count)]
    for run in runs:
        out, err = run.communicate()
        if run.returncode != 0 or out != b"8999955000050000\n":
            sys.exit(f"a run of {count} failed with {run.returncode}: {out!r} {err.decode(errors='replace')}")
    return time.monotonic() - start


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    worst = 0.0
    for count in (2, 8):
        apart, at_once = [], []
        for _ in range(rounds):
            apart.append(sum(together(1) for _ in range(count)))
            at_once.append(together(count))
        a = sandbox.report(f"{count} one after another", apart)
        b = sandbox.report(f"{count} at once", at_once)
        print(f"{count} at once: ratio {b / a:.3f}")
        worst = max(worst, b / a)
    left = sandbox.processes("qemu-system") + sandbox.processes("resoluto-shim")
    if left:
        sys.exit(f"left running: {left}")
    sandbox.ratio(worst, 1.1)


main()
