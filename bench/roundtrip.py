# SPDX-License-Identifier: Apache-2.0
"""Round trip of a line through `run -i -- cat`: lines one after another, in several runs."""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

MEDIAN_LIMIT_MS, LAST_LIMIT_MS = 30, 90


def trips_of_a_run(lines):
    """Sorted seconds."""
    run = subprocess.Popen([sandbox.cli(), "run", "-i", "--", "cat"], env=sandbox.environment(),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    trips = []
    try:
        run.stdin.write(b"warm\n")
        run.stdin.flush()
        run.stdout.readline()
        for number in range(lines):
            line = b"line %d\n" % number
            start = time.monotonic()
            run.stdin.write(line)
            run.stdin.flush()
            back = run.stdout.readline()
            trips.append(time.monotonic() - start)
            if back != line:
                sys.exit(f"sent {line!r}, got {back!r}")
        run.stdin.close()
        code = run.wait(60)
    finally:
        run.kill()
        run.wait()
    if code != 0:
        sys.exit(f"cat ended with {code}")
    return sorted(trips)


def main():
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    runs = [trips_of_a_run(lines) for _ in range(rounds)]
    median = sandbox.report("median of a run", [statistics.median(trips) for trips in runs], "ms", 1000)
    last = sandbox.report("99th percentile of a run", [trips[int(lines * 0.99) - 1] for trips in runs], "ms", 1000)
    print(f"limits: median {MEDIAN_LIMIT_MS} ms, 99th percentile {LAST_LIMIT_MS} ms")
    sandbox.ratio(max(median / MEDIAN_LIMIT_MS, last / LAST_LIMIT_MS), 1)


main()
