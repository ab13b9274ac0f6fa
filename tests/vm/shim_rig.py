# SPDX-License-Identifier: Apache-2.0
"""One microVM run at a time through vm_driver, as root or as an ordinary user, with fake_qemu or the real one.

A rig has a state directory and a conduit of its own; what it starts it ends.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

from conftest import Processes, build_dir, needed, wait_until

ORDINARY_UID = 64321
IS_ROOT = os.geteuid() == 0
USERS = ["root", "user"] if IS_ROOT else ["user"]


def local_env():
    """The configuration the tests run with, as a dictionary."""
    lines = pathlib.Path(needed("RESOLUTO_LOCAL_ENV")).read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return dict(pairs)


def rootfs():
    """A squashfs with a shell and the usual tools."""
    given = os.environ.get("RESOLUTO_TEST_ROOTFS")
    if given:
        return given
    images = pathlib.Path(local_env()["RESOLUTO_CACHE_DIR"], "images").glob("*.squashfs")
    return max(images, key=lambda path: path.stat().st_mtime)


class Run:
    """A vm_driver at work; its lines are collected as they come."""

    def __init__(self, rig, run_id, process):
        self.rig, self.id, self.process = rig, run_id, process
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def wait_line(self, start, seconds=60):
        def find():
            for line in list(self.lines):
                if line.startswith(start):
                    return line
            return self.process.poll() is not None and not self.reader.is_alive() and "gone"

        line = wait_until(find, f"a line '{start}' of the driver", seconds)
        assert line != "gone", f"no line '{start}' in {self.lines}"
        return line

    def wait(self, seconds=60):
        code = self.process.wait(seconds)
        self.reader.join(seconds)
        return code

    @property
    def end(self):
        """(phase, reason) of the last phase line."""
        last = [line for line in self.lines if line.startswith("phase ")][-1].split(" ")
        return last[1], last[2]

    @property
    def text(self):
        return "\n".join(self.lines)

    def folder(self):
        return self.rig.state / "runs" / self.id

    def objects(self):
        top = self.rig.conduit / "run" / self.id
        return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}

    def output(self, stream="stdout"):
        """What the program wrote, out of the event chunks."""
        lines = []
        for name, chunk in sorted(self.objects().items()):
            if name.startswith("events-"):
                lines += [json.loads(line)["data"] for line in chunk.splitlines()]
        return "".join(d["line"] + ("" if d.get("nl") is False else "\n") for d in lines if d.get("stream") == stream)

    def shim(self):
        return wait_until(lambda: next(iter(Processes.children(self.process.pid)), None), "a shim")

    def qemu(self):
        shim = self.shim()
        return wait_until(lambda: next(iter(Processes.children(shim)), None), "an emulator")

    def signal(self, number):
        self.process.send_signal(number)


class Rig:
    def __init__(self, user):
        self.user = user
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="rig-"))
        self.count = 0
        self.running = []
        self.top.chmod(0o755)
        self.state, self.conduit = self.top / "state", self.top / "conduit"
        self.state.mkdir(mode=0o700)
        self.conduit.mkdir(mode=0o700)
        for program in ("tests/vm/vm_driver", "tests/vm/fake_qemu", "tests/vm/shim_probe", "src/shim/resoluto-shim"):
            shutil.copy(build_dir() / program, self.top)
        (self.top / "kernel").write_bytes(b"no kernel at all" * 8)
        (self.top / "initrd").write_bytes(b"x")
        (self.top / "image").write_bytes(b"hsqs" + bytes(124))
        for path in self.top.iterdir():
            if IS_ROOT and user == "user":
                os.chown(path, ORDINARY_UID, ORDINARY_UID)
        self.env = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.top),
            "RESOLUTO_STATE_DIR": str(self.state),
            "RESOLUTO_LIBEXEC_DIR": str(self.top),
            "RESOLUTO_LOCAL_QEMU": str(self.top / "fake_qemu"),
            "RESOLUTO_LOCAL_KERNEL": str(self.top / "kernel"),
            "RESOLUTO_LOCAL_INITRD": str(self.top / "initrd"),
            "RESOLUTO_LOCAL_ACCEL": "tcg",
            "RESOLUTO_LOCAL_MACHINE": f"{os.uname().machine}-debian",  # whatever this host was provisioned with
            "RESOLUTO_LOCAL_UIDS": local_env().get("RESOLUTO_LOCAL_UIDS", "200000-200063"),
        }

    def use_real_qemu(self, kernel):
        """Boot this kernel for real: with copies, since an ordinary user may not reach the tests' cache."""
        given = local_env()
        for name in ("QEMU", "ACCEL"):
            self.env[f"RESOLUTO_LOCAL_{name}"] = given[f"RESOLUTO_LOCAL_{name}"]
        for name in ("KERNEL", "INITRD"):
            shutil.copyfile(kernel[f"RESOLUTO_LOCAL_{name}"], self.top / name.lower())
        self.env["RESOLUTO_LOCAL_MACHINE"] = kernel["RESOLUTO_LOCAL_MACHINE"]
        shutil.copyfile(rootfs(), self.top / "image")

    def boot(self, *words, run_id=None, env=(), **options):
        """A real guest with the contract a facade would give it."""
        self.count += 1
        run_id = run_id or f"run-boot-{self.count}"
        contract = [f"RESOLUTO_RUN_ID={run_id}", "RESOLUTO_NODE_ID=run", "RESOLUTO_WORKSPACE_DIR=/workspace",
                    "PATH=/usr/local/bin:/usr/bin:/bin", *env]
        return self.start(*words, run_id=run_id, env_=contract, **options)

    def prefix(self):
        if IS_ROOT and self.user == "user":
            return ["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups"]
        return []

    def start(self, *words, run_id=None, env=None, wrap=(), stdin=subprocess.DEVNULL, **options):
        self.count += 1
        run_id = run_id or f"run-{self.count}"
        options.setdefault("image", self.top / "image")
        options.setdefault("conduit", self.conduit)
        options.setdefault("prefix", f"run/{run_id}")
        argv = [*wrap, *self.prefix(), str(self.top / "vm_driver"), "--id", run_id]
        for name, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                argv += ["--" + name.rstrip("_").replace("_", "-"), str(one)]
        process = subprocess.Popen([*argv, "--", *words], stdin=stdin, stdout=subprocess.PIPE,
                                   env={**self.env, **(env or {})})
        run = Run(self, run_id, process)
        self.running.append(run)
        return run

    def run(self, *words, **options):
        run = self.start(*words, **options)
        run.wait()
        return run

    def runs(self):
        folder = self.state / "runs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def close(self):
        for run in self.running:
            if run.process.poll() is None:
                run.signal(signal.SIGKILL)
                run.process.wait()
        shutil.rmtree(self.top, ignore_errors=True)


def gone_within_a_second(*pids):
    wait_until(lambda: not any(Processes.is_alive(p) for p in pids), f"the end of {pids}", 1)
