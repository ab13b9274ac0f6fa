# SPDX-License-Identifier: Apache-2.0
"""Two and eight runs at once against the same work one after another: no failure, nothing left, aggregate time."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

COMMAND = ["run", "--memory", "512Mi", "--", "python3", "-c", "print(sum(i * i for i in range(300000)))"]
MIB_PER_RUN = 256  # what a run takes of the host's memory at most


def together(count, env):
    sandbox.ask_memory_back(MIB_PER_RUN * count)
    start = time.monotonic()
    runs = [subprocess.Popen([sandbox.cli(), *COMMAND], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for _ in range(count)]
    for run in runs:
        out, err = run.communicate()
        if run.returncode != 0 or out != b"8999955000050000\n":
            sys.exit(f"a run of {count} failed with {run.returncode}: {out!r} {err.decode(errors='replace')}")
    return time.monotonic() - start


def holders(folder):
    """pids of all who have something beneath this folder open: the shim of a run does, and its QEMU."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            links = [os.readlink(link) for link in (process / "fd").iterdir()] if process.name.isdigit() else []
        except OSError:
            continue  # it has ended, or is another user's and so none of ours
        if any(link.startswith(f"{folder}/") for link in links):
            found.append(int(process.name))
    return found


def all_there_is(state):
    """What a run makes, and must have taken away with it: folders, entries for it, processes, mounts."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return {*(str(path) for name in ("runs", "launch") for path in pathlib.Path(state, name).glob("*")),
            *(f"process {pid}" for pid in holders(state)), *mounts}


def measure(rounds, env):
    worst = 0.0
    for count in (2, 8):
        apart, at_once = [], []
        for _ in range(rounds):
            apart.append(sum(together(1, env) for _ in range(count)))
            at_once.append(together(count, env))
        a = sandbox.report(f"{count} one after another", apart)
        b = sandbox.report(f"{count} at once", at_once)
        print(f"{count} at once: ratio {b / a:.3f}")
        worst = max(worst, b / a)
    return worst


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="concurrency-") as state:
        os.chmod(state, 0o700)
        state = os.path.realpath(state)
        env = sandbox.environment() | {"RESOLUTO_STATE_DIR": state}
        before = all_there_is(state)
        together(1, env)  # the first one measures this machine's counter
        worst = measure(rounds, env)
        left = all_there_is(state) - before
    if left:
        sys.exit(f"left: {sorted(left)}")
    sandbox.ratio(worst, 1.1)


main()
