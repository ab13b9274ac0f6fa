# SPDX-License-Identifier: Apache-2.0
"""Coming back to a long run: how soon its middle is shown, in how much memory, and what following it costs.

The runs are made of files as a shim would have left them; "alive" is a lock that this program holds."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

EVENTS = 1_000_000
MIDDLE = EVENTS // 2
SHAPES = [("4,000 chunks", 250), ("500,000 chunks", 2)]
FOLLOWED = [1_000, 500_000]
NEW = 500


def helper():
    build = os.environ.get("RESOLUTO_BUILD_DIR", str(sandbox.ROOT / "build"))
    subprocess.run(["ninja", "-C", build, "bench/attach_bench"], check=True, stdout=subprocess.DEVNULL)
    return f"{build}/bench/attach_bench"


class Run:
    def __init__(self, state, run_id):
        self.id = run_id
        self.folder = pathlib.Path(state) / "runs" / run_id
        self.objects = self.folder / "conduit" / "run" / run_id
        self.objects.mkdir(parents=True)
        (self.folder / "lock").touch()
        boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (self.folder / "run.json").write_text(json.dumps({
            "schema": 1, "id": run_id, "labels": [], "image": "none", "created": 1.0, "keep": True, "boot_id": boot_id,
            "objects": str(self.objects), "accel": "tcg", "kernel": "none"}))

    def say(self, phase):
        (self.folder / "state.json").write_text(json.dumps({
            "schema": 1, "phase": phase, "reason": "", "detail": "", "shim_pid": 0, "qemu_pid": 0,
            "guest_boot_id": "22222222-2222-2222-2222-222222222222", "own_kernel": True, "started_at": 1.0,
            "ended_at": 2.0 if phase == "succeeded" else 0.0, "confinement": []}))

    def finish(self, chunks):
        (self.objects / "result.json").write_text(json.dumps({
            "node_id": "run", "status": "success", "exit_code": 0, "ran": True,
            "guest_boot_id": "22222222-2222-2222-2222-222222222222"}))
        (self.objects / "_manifest.json").write_text(json.dumps({"total_chunks": chunks}))
        self.say("succeeded")

    @contextlib.contextmanager
    def alive(self):
        self.say("running")
        with open(self.folder / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def first_line(argv, env):
    """Milliseconds from the start of the command to its first line, and the MiB it had used by then."""
    start = time.monotonic()
    reader = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE)
    line = reader.stdout.readline()
    took = (time.monotonic() - start) * 1000
    peak = next(int(x.split()[1]) / 1024 for x in open(f"/proc/{reader.pid}/status") if x.startswith("VmHWM"))
    reader.kill()
    reader.communicate()
    if line != f"line {MIDDLE} of a long run\n".encode():
        sys.exit(f"the first line is {line}")
    return took, peak


def to_the_end(argv, env):
    """Peak MiB of a command that reads the rest of the run, and seconds it took."""
    start = time.monotonic()
    with open(os.devnull, "wb") as null:
        reader = subprocess.Popen(argv, env=env, stdout=null)
        _, status, usage = os.wait4(reader.pid, 0)
    if status != 0:
        sys.exit(f"{argv} ended with {status}")
    return usage.ru_maxrss / 1024, time.monotonic() - start


def measure(rounds, run, shape, env):
    argv = [sandbox.cli(), "attach", run.id, "--from", str(MIDDLE)]
    rows = [first_line(argv, env) for _ in range(rounds)]
    sandbox.report(f"{shape}: memory", [peak for _, peak in rows], "MiB")
    return sandbox.report(f"{shape}: first line", [took for took, _ in rows], "ms")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    bench, slowest = helper(), 0.0
    with tempfile.TemporaryDirectory(prefix="attach-") as scratch:
        env = dict(sandbox.environment(), RESOLUTO_STATE_DIR=scratch)
        os.chmod(scratch, 0o700)
        for number, (shape, per_chunk) in enumerate(SHAPES):
            run = Run(scratch, f"run-bench-{number}")
            made = subprocess.run([bench, "make", run.objects, str(EVENTS), str(per_chunk)], check=True,
                                  stdout=subprocess.PIPE, text=True)
            with run.alive():
                slowest = max(slowest, measure(rounds, run, f"{shape}, alive", env))
            run.finish(int(made.stdout))
            slowest = max(slowest, measure(rounds, run, f"{shape}, ended", env))
            peak, took = to_the_end([sandbox.cli(), "attach", run.id, "--from", str(MIDDLE)], env)
            print(f"{shape}: the other half in {took:.2f} s, at most {peak:.1f} MiB", flush=True)
            shutil.rmtree(run.folder)
        for chunks in FOLLOWED:
            place = f"{scratch}/follow-{chunks}"
            subprocess.run([bench, "make", place, str(chunks), "1"], check=True, stdout=subprocess.DEVNULL)
            figures = [subprocess.run([bench, "follow", place, str(NEW)], check=True, stdout=subprocess.PIPE,
                                      text=True).stdout.split() for _ in range(5)]
            sandbox.report(f"behind {chunks:,}: a new chunk", [float(new) for new, _ in figures], "us")
            sandbox.report(f"behind {chunks:,}: nothing new", [float(none) for _, none in figures], "us")
    print("limit 100")
    print(f"value {slowest:.1f} ms")


main()
