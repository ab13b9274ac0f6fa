# SPDX-License-Identifier: Apache-2.0
"""Memory (PSS) of command line plus shim while a program runs, and of QEMU beside it."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

PROGRAM = "i=0; while [ $i -lt 20000 ]; do echo line $i of some output; i=$((i+1)); done; sleep 3"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    peaks, emulator = [], []
    for _ in range(rounds):
        run = subprocess.Popen([sandbox.cli(), "run", "--", "/bin/sh", "-c", PROGRAM], env=sandbox.environment(),
                               stdout=subprocess.DEVNULL)
        peak, qemu = sandbox.peak_memory_mib(run)
        peaks.append(peak)
        emulator.append(qemu)
    sandbox.report("QEMU", emulator, "MiB")
    median = sandbox.report("command line + shim, peak PSS", peaks, "MiB")
    print("limit 12")
    print(f"value {median:.2f} MiB")


main()
