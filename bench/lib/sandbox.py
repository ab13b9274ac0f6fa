# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the program under test, its processes, and figures with their spread."""
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cli():
    build = os.environ.get("RESOLUTO_BUILD_DIR")
    path = pathlib.Path(build) / "src/cli/resoluto-sandbox" if build else ROOT / "build/src/cli/resoluto-sandbox"
    if not path.exists():
        sys.exit(f"{path} is missing: run scripts/local-backend-up.sh, or set RESOLUTO_BUILD_DIR")
    return str(path)


def both_sides(name):
    """Command lines of bench/NAME_bench.c and bench/NAME_original.py, and the environment for them."""
    build = os.environ.get("RESOLUTO_BUILD_DIR", str(ROOT / "build"))
    original = os.environ.get("RESOLUTO_TEST_ORIGINAL")
    if not original or not pathlib.Path(original, "resoluto").is_dir():
        sys.exit("set RESOLUTO_TEST_ORIGINAL to a folder into which the original was installed:"
                 " pip install --ignore-requires-python --target DIR resoluto-sandbox==0.1.0 pydantic")
    subprocess.run(["ninja", "-C", build, f"bench/{name}_bench"], check=True, stdout=subprocess.DEVNULL)
    # With the interpreter's own packages behind the folder, since pydantic may be in either.
    python = [sys.executable, str(ROOT / f"bench/{name}_original.py")]
    return [f"{build}/bench/{name}_bench"], python, dict(os.environ, PYTHONPATH=original)


def environment():
    env = dict(os.environ)
    if "RESOLUTO_LOCAL_ENV" not in env and (ROOT / "local.env").exists():
        env["RESOLUTO_LOCAL_ENV"] = str(ROOT / "local.env")
    return env


def kernels_folder():
    """The folder with the provisioned guest kernels: built/ and distro/."""
    given = os.environ.get("RESOLUTO_TEST_KERNELS")
    if given:
        return pathlib.Path(given)
    told = subprocess.run([cli(), "version", "--json"], env=environment(), stdout=subprocess.PIPE, check=True).stdout
    path = json.loads(told)["kernel"]["path"]
    if not path:
        sys.exit("no guest kernel is configured: run scripts/local-backend-up.sh")
    return pathlib.Path(path).resolve().parents[1]


def kernel(kind):
    """The environment that makes a run use this guest kernel: "built" (our own) or "distro" (the distribution's)."""
    folder = kernels_folder() / kind
    if not (folder / "MACHINE").exists():
        sys.exit(f"{folder} holds no provisioned kernel: run scripts/local-backend-up.sh, or set RESOLUTO_TEST_KERNELS")
    return {"RESOLUTO_LOCAL_KERNEL": str(folder / "vmlinux"), "RESOLUTO_LOCAL_INITRD": str(folder / "initrd.img"),
            "RESOLUTO_LOCAL_MACHINE": (folder / "MACHINE").read_text().strip()}


def machines_of(run_id):
    """pids of the QEMU of this run."""
    return processes("qemu-system", f"guest={run_id},".encode())


def processes(name, word=b""):
    """pids whose command line begins with a program of this name and has word in it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            program = os.path.basename(argv[0]).decode(errors="replace")
            if program.startswith(name) and any(word in a for a in argv):
                found.append(int(entry.name))
    return found


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    sys.exit(f"waited {seconds} s in vain for {what}")


def ask_memory_back(mib=512):
    """A virtual machine may have given the memory that it does not use back to its host, and pays for each page anew: 20 times
    what a page costs else.  Whoever is measured first would pay for all who follow, so nobody measured does."""
    memory = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    for at in range(0, mib << 20, mmap.PAGESIZE):
        memory[at] = 1
    memory.close()


def timed(argv, **options):
    start = time.monotonic()
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{argv} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    return seconds


def report(name, values, unit="s", scale=1.0):
    values = sorted(v * scale for v in values)
    print(f"{name:34} median {statistics.median(values):9.3f}  min {values[0]:9.3f}  max {values[-1]:9.3f} {unit}"
          f"  (n={len(values)})")
    return statistics.median(values)


def ratio(value, limit=None):
    if limit is not None:
        print(f"limit {limit}")
    print(f"ratio {value:.3f}")


def children(pid):
    """pids of what this process started itself and has not reaped."""
    return [int(word) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]


def peak_memory_mib(run):
    """Until the end of this `run`: the most that command line and shim took together, and the most that QEMU took (PSS)."""
    peak = qemu = 0
    while run.poll() is None:
        try:
            shims = children(run.pid)
            machines = [child for shim in shims for child in children(shim)]
            peak = max(peak, pss_kib(run.pid) + sum(map(pss_kib, shims)))
            qemu = max([qemu, *map(pss_kib, machines)])
        except OSError:
            pass  # one ended between the listing and the reading
        time.sleep(0.02)
    if run.returncode != 0:
        sys.exit(f"the run ended with {run.returncode}")
    if not peak or not qemu:  # the shim was counted before its child was
        sys.exit("the memory of the run could not be read: is this its user, and has the kernel /proc/PID/task/TID/children?")
    return peak / 1024, qemu / 1024


def pss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
