# SPDX-License-Identifier: Apache-2.0
"""Memory (PSS) of command line plus shim while a program runs, and of QEMU beside it."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

PROGRAM = "i=0; while [ $i -lt 20000 ]; do echo line $i of some output; i=$((i+1)); done; sleep 3"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    peaks, emulator = [], []
    for _ in range(rounds):
        run = subprocess.Popen([sandbox.cli(), "run", "--", "/bin/sh", "-c", PROGRAM], env=sandbox.environment(),
                               stdout=subprocess.DEVNULL)
        peak = qemu = 0
        while run.poll() is None:
            try:
                shims, machines = sandbox.processes("resoluto-shim"), sandbox.processes("qemu-system")
                ours = sandbox.pss_kib(run.pid) + sum(sandbox.pss_kib(p) for p in shims)
                peak = max(peak, ours)
                qemu = max([qemu, *[sandbox.pss_kib(p) for p in machines]])
            except OSError:
                pass  # one ended between the listing and the reading
            time.sleep(0.02)
        if run.returncode != 0:
            sys.exit(f"the run ended with {run.returncode}")
        peaks.append(peak / 1024)
        emulator.append(qemu / 1024)
    sandbox.report("QEMU", emulator, "MiB")
    median = sandbox.report("command line + shim, peak PSS", peaks, "MiB")
    print("limit 12")
    print(f"value {median:.2f} MiB")


main()
