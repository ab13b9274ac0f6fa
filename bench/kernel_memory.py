# SPDX-License-Identifier: Apache-2.0
"""Memory (PSS) of QEMU with 4 GiB while `run -- sleep 5` sleeps, on the kernel of our own and on the distribution's."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

LIMIT = 0.8
LOOK_S = 3  # into the sleep: nothing of the start goes on any more


def pss_mib(kind):
    name = f"pss-{os.getpid()}"
    run = subprocess.Popen([sandbox.cli(), "run", "--id", name, "--", "/bin/sh", "-c", "echo; sleep 5"],
                           env=sandbox.environment() | sandbox.kernel(kind), stdout=subprocess.PIPE)
    run.stdout.readline()  # the program has started
    time.sleep(LOOK_S)
    machines = sandbox.machines_of(name)
    value = sandbox.pss_kib(machines[0]) / 1024 if machines else 0
    run.communicate()
    if run.returncode != 0 or not value:
        sys.exit(f"the run on {kind} ended with {run.returncode}")
    return value


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    values = {"built": [], "distro": []}
    for _ in range(rounds):
        for kind, list_of_values in values.items():
            list_of_values.append(pss_mib(kind))
    medians = {kind: sandbox.report(f"QEMU with {kind}", v, "MiB") for kind, v in values.items()}
    sandbox.ratio(medians["built"] / medians["distro"], LIMIT)


main()
