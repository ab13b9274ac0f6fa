# SPDX-License-Identifier: Apache-2.0
"""Round trip of a line through `run -i -- cat`: 1,000 lines, one after another."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402


def main():
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
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
    trips.sort()
    median = sandbox.report("round trip", trips, "ms", 1000)
    print(f"99th percentile {trips[int(len(trips) * 0.99) - 1] * 1000:.1f} ms   (limits: median 30, 99th 90)")
    print(f"value {median:.2f} ms")


main()
