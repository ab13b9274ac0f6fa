# SPDX-License-Identifier: Apache-2.0
"""What all pytest suites share: the programs under test and a state directory of their own.

scripts/check.sh sets the variables (docs/environment.md); without them a test fails and says so: nothing is skipped silently."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

# A shell without job control starts what is in the background with the first two ignored, nohup with the third, and so would be
# all programs under test, which rightly leave an ignored signal alone.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = pathlib.Path(__file__).resolve().parents[1]


def needed(name):
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"{name} is not set: run the tests through scripts/check.sh", pytrace=False)
    return value


def build_dir():
    return pathlib.Path(needed("RESOLUTO_BUILD_DIR"))


def soak(group):
    """A mark for what is long: RESOLUTO_SOAK=1 runs all of it, RESOLUTO_SOAK=many,output those groups."""
    chosen = os.environ.get("RESOLUTO_SOAK", "")
    return pytest.mark.skipif(chosen != "1" and group not in chosen.split(","),
                              reason=f"set RESOLUTO_SOAK=1 or RESOLUTO_SOAK={group} (check.sh --full)")


def wait_until(condition, what, seconds=120):
    """Wait for an event: returns what condition() returned once it is true."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s in vain for {what}", pytrace=False)
        time.sleep(0.01)


def read_to_end(terminal):
    """Bytes of a pseudo terminal whose other side is closed, or will be; closes it.  One read may give a part."""
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            piece = b""
        if not piece:
            os.close(terminal)
            return seen
        seen += piece


class Processes:
    """The processes that belong to one run: their command line holds its id."""

    @staticmethod
    def argv(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return []

    @classmethod
    def of_program(cls, name):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            argv = cls.argv(entry.name)
            if argv and os.path.basename(argv[0]).startswith(name.encode()):
                found.append(int(entry.name))
        return found

    @classmethod
    def qemu_of(cls, run_id):
        return [p for p in cls.of_program("qemu-system") if any(run_id.encode() in a for a in cls.argv(p))]

    @classmethod
    def children(cls, pid):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text()
                except OSError:
                    continue
                if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(entry.name))
        return found

    @staticmethod
    def is_alive(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False


class Sandbox:
    """The command line with a state directory of this test session."""

    def __init__(self, state, temporary):
        self.cli = str(build_dir() / "src/cli/resoluto-sandbox")
        self.state = pathlib.Path(state)
        self.env = dict(os.environ, RESOLUTO_STATE_DIR=str(state), RESOLUTO_LOCAL_ENV=needed("RESOLUTO_LOCAL_ENV"),
                        TMPDIR=str(temporary))
        self.processes = Processes

    def run(self, *arguments, timeout=300, input=b"", env=None, **options):
        """`resoluto-sandbox ARGUMENTS`, to its end."""
        options.setdefault("stdin", None)
        if options["stdin"] is None:
            options.pop("stdin")
            options["input"] = input
        return subprocess.run([self.cli, *map(str, arguments)], capture_output=True, timeout=timeout,
                              env={**self.env, **(env or {})}, **options)

    def start(self, *arguments, env=None, **options):
        """The same, still running; stdout and stderr are pipes."""
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, subprocess.PIPE)
        return subprocess.Popen([self.cli, *map(str, arguments)], env={**self.env, **(env or {})}, **options)

    def runs(self):
        folder = self.state / "runs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def remove_runs(self):
        """Whatever is there; returns what it was."""
        left = self.runs()
        for run_id in left:
            self.run("rm", "--force", run_id)
        return left


def kernel_environment(kind):
    """What makes a run use this guest kernel: "built" (our own) or "distro" (the distribution's)."""
    folder = pathlib.Path(needed("RESOLUTO_TEST_KERNELS")) / kind
    if not (folder / "MACHINE").exists():
        pytest.fail(f"{folder} holds no provisioned kernel: run scripts/local-backend-up.sh", pytrace=False)
    return {"RESOLUTO_LOCAL_KERNEL": str(folder / "vmlinux"), "RESOLUTO_LOCAL_INITRD": str(folder / "initrd.img"),
            "RESOLUTO_LOCAL_MACHINE": (folder / "MACHINE").read_text().strip()}


@pytest.fixture(scope="session", params=["built", "distro"])
def kernel(request):
    return kernel_environment(request.param)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    return Sandbox(state, tmp_path_factory.mktemp("tmp"))


@pytest.fixture
def root():
    return ROOT
