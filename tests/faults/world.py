# SPDX-License-Identifier: Apache-2.0
"""Where the injured runs live: a state directory of their own, what belongs to them, and what is left of them."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
DISK_MIB = 256  # of the small disk; a run keeps 64 MiB free
END_S = 15      # for processes to go, on a busy machine


def wait_for(condition, seconds):
    """The first true value of condition(), else the last."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.005)


def children(pid):
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def descendants(pid):
    return [p for child in children(pid) for p in (child, *descendants(child))]


def argv_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def is_zombie(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


class World:
    """One state directory; on a disk of its own that can be filled, if asked for.

    What outlives its parent becomes our child, so that only what these runs started is counted."""

    def __init__(self, build, env, small_disk=False):
        assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        self.top.chmod(0o755)
        self.build = pathlib.Path(build)
        self.holder = None
        self.stays = set()
        self.enter = []
        self.disk = self.top / "disk"
        self.disk.mkdir()
        if small_disk:
            self._mount()
        self.seen = self._seen(self.disk)
        self.state = self.disk / "state"
        (self.seen / "state").mkdir(mode=0o700)
        (self.top / "tmp").mkdir()
        self.cli = str(self.build / "src/cli/resoluto-sandbox")
        self.env = dict(env, RESOLUTO_STATE_DIR=str(self.state), TMPDIR=str(self.top / "tmp"))
        self.env.setdefault("RESOLUTO_LIBEXEC_DIR", str(self.build / "src/shim"))
        self.stays |= set(descendants(os.getpid()))
        self.before = self._outside()

    # --- the small disk: a tmpfs in a mount namespace that a process of ours holds open ---

    def _mount(self):
        as_user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
        script = f"mount -t tmpfs -o size={DISK_MIB}m,mode=0755 faults {self.disk} && echo there && exec cat"
        self.holder = subprocess.Popen(["unshare", *as_user, "--mount", "--propagation", "private", "sh", "-c", script],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"there\n", "a tmpfs cannot be mounted in a namespace of ours"
        self.enter = ["nsenter", *(["--user", "--preserve-credentials"] if as_user else []), "--mount", "--target",
                      str(self.holder.pid), "--"]

    def _seen(self, path):
        """How we see a path of the runs' mount namespace."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{path}") if self.holder else path

    def _resize(self, kib):
        return subprocess.run([*self.enter, "mount", "-o", f"remount,size={kib}k", str(self.disk)],
                              stderr=subprocess.DEVNULL).returncode == 0

    def fill(self):
        """No block is left: the disk shrinks to what is on it, or where we may not say so a file takes the rest."""
        for _ in range(50 if os.geteuid() == 0 else 0):
            fs = os.statvfs(self.seen)
            # 0 would mean no limit.
            if self._resize(max(1, fs.f_blocks - fs.f_bfree) * fs.f_frsize // 1024):
                return True
        with open(self.seen / "ballast", "wb") as ballast, contextlib.suppress(OSError):
            while True:
                fs = os.statvfs(self.seen)
                os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), max(1, fs.f_bfree * fs.f_frsize))
        return os.statvfs(self.seen).f_bfree == 0

    def free(self):
        (self.seen / "ballast").unlink(missing_ok=True)
        assert os.geteuid() != 0 or self._resize(DISK_MIB * 1024)

    # --- commands ---

    def start(self, *words, env=None, out, err):
        return subprocess.Popen([*self.enter, self.cli, *map(str, words)], env={**self.env, **(env or {})},
                                stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def run(self, *words, timeout=120):
        return subprocess.run([*self.enter, self.cli, *map(str, words)], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout)

    # --- what belongs to a run ---

    def folder(self, run_id):
        return self.seen / "state/runs" / run_id

    def objects(self, run_id):
        return self.folder(run_id) / "conduit/run" / run_id

    def _processes(self, name):
        return [p for p in descendants(os.getpid())
                if os.path.basename(argv_of(p)[0]).startswith(name) and not is_zombie(p)]

    def shims(self):
        return self._processes(b"resoluto-shim")

    def machines(self):
        return self._processes(b"qemu-system")

    # --- what is left ---

    def reap(self):
        """Zombies whose parents were killed are ours now."""
        for pid in set(children(os.getpid())) - self.stays:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def _left_processes(self):
        self.reap()
        return [p for p in descendants(os.getpid()) if p not in self.stays]

    def _outside(self):
        """What a run might leave elsewhere, by name."""
        mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                  if str(self.top) in line]
        sockets = [line for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if str(self.top) in line]
        return {"mounts": mounts, "sockets": sockets, "temporary": os.listdir(self.top / "tmp")}

    def _held_locks(self):
        """Slots that somebody still holds."""
        held = []
        for path in sorted((self.seen / "state/slots").glob("*")):
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path.name)
            os.close(fd)
        return held

    def leftovers(self):
        """What is left of runs that have ended; of files only the next command may be asked (files())."""
        wait_for(lambda: not self._left_processes(), END_S)
        left = [f"process {p}: {b' '.join(argv_of(p))[:200]!r}" for p in self._left_processes()]
        left += [f"slot {name} is locked" for name in self._held_locks()]
        outside = self._outside()
        left += [f"{what}: {outside[what]}" for what in outside if outside[what] != self.before[what]]
        return left

    def files(self):
        """What stands in the state directory for a run."""
        return [str(path.relative_to(self.seen)) for name in ("runs", "launch")
                for path in sorted((self.seen / "state" / name).glob("*"))]

    def close(self):
        for pid in self._left_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.holder:
            self.holder.stdin.close()
            self.holder.stdout.close()
            self.holder.wait()
        shutil.rmtree(self.top, ignore_errors=True)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def chunk_number(name):
    found = re.fullmatch(r"events-(\d{6})\.jsonl", name)
    return int(found[1]) if found else None


def pieces_of(chunk):
    """(seq, stream, text) of each piece of output in a chunk."""
    for line in chunk.splitlines():
        data = json.loads(line).get("data") or {}
        if "seq" in data:
            yield data["seq"], data["stream"], data["line"] + ("" if data.get("nl") is False else "\n")
