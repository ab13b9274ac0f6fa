# SPDX-License-Identifier: Apache-2.0
"""Surroundings that broke other sandboxes: long paths, few descriptors, pids that are somebody else's by now."""
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess

import pytest

from conftest import Processes, Sandbox

SOCKET_PATH_MAX = 108
ENOUGH_FILES = 64
# The same number on every architecture, as of all younger calls; and that of an older one.
LANDLOCK_CREATE_RULESET = 444
SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]


@pytest.fixture
def deep(tmp_path):
    """A state directory whose path fits no socket's name."""
    state = tmp_path.joinpath(*["a-long-name-of-a-directory-as-build-systems-make-them"] * 5)
    state.mkdir(parents=True)
    assert len(str(state)) > 2 * SOCKET_PATH_MAX
    (tmp_path / "tmp").mkdir()
    return Sandbox(state, tmp_path / "tmp")


def few_files(count):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def test_a_long_path_and_few_descriptors(deep, tmp_path):
    """A whole life of a run, with the hard limit that small containers have."""
    limit = {"preexec_fn": few_files(ENOUGH_FILES)}
    work = tmp_path / "work"
    work.mkdir()
    launch = deep.run("run", "--detach", "--id", "deep", "--workspace", work, "--output", "made", "--", "sh", "-c",
                      "trap 'echo asked; echo made > made; exit 3' USR1; echo up; while :; do sleep 0.1; done", **limit)
    assert (launch.returncode, launch.stdout) == (0, b"deep\n"), launch.stderr
    reader = deep.start("attach", "deep", **limit)
    assert reader.stdout.readline() == b"up\n"
    assert deep.run("kill", "--signal", "USR1", "deep", **limit).returncode == 0
    out, _ = reader.communicate(timeout=60)
    assert (reader.returncode, out) == (3, b"asked\n")
    assert deep.run("collect", "deep", "--workspace", tmp_path / "back", **limit).returncode == 0
    assert (tmp_path / "back" / "made").read_text() == "made\n"
    assert deep.run("rm", "deep", **limit).returncode == 0
    assert deep.runs() == []


@pytest.mark.parametrize("name", ["state", "./state", "../here/state"])
def test_a_relative_state_directory_is_one_of_the_current_directory(sandbox, tmp_path, name):
    here = tmp_path / "here"
    here.mkdir()
    env = {"RESOLUTO_STATE_DIR": name}
    done = sandbox.run("run", "--keep", "--id", "relative", "--", "echo", "here", env=env, cwd=here)
    assert (done.returncode, done.stdout) == (0, b"here\n"), done.stderr
    assert os.listdir(here / "state/runs") == ["relative"]
    assert sandbox.run("attach", "relative", env=env, cwd=here).stdout == b"here\n"
    assert f"[OK] state directory ({here}/{name})" in sandbox.run("doctor", env=env, cwd=here).stdout.decode()
    assert sandbox.run("rm", "relative", env=env, cwd=here).returncode == 0
    assert os.listdir(tmp_path) == ["here"] and os.listdir(here) == ["state"]


@pytest.mark.parametrize("count", [8, 16, 24, 36])
def test_without_descriptors_it_says_so(deep, count):
    done = deep.run("run", "--", "true", preexec_fn=few_files(count))
    assert done.returncode == 125 and b"Too many open files" in done.stderr, done.stderr
    assert deep.runs() == [] and os.listdir(deep.env["TMPDIR"]) == []


class Left:
    """What is left of a run, as files."""

    def __init__(self, sandbox, run_id, **record):
        self.folder = sandbox.state / "runs" / run_id
        self.folder.mkdir(parents=True)
        (self.folder / "lock").touch()
        if record:
            boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            (self.folder / "run.json").write_text(json.dumps({
                "schema": 1, "id": run_id, "labels": [], "image": "img", "created": 1.0, "boot_id": boot_id,
                "objects": "", "accel": "tcg", "kernel": "6.1", "keep": True, **record}))


def start_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def test_a_pid_that_is_somebody_elses_is_left_alone(sandbox, tmp_path):
    """By pid and by name it is our shim: by its start it is another.  And by pid and start, but it is no shim."""
    shutil.copy(shutil.which("sleep"), tmp_path / "resoluto-shim")
    namesake = subprocess.Popen([tmp_path / "resoluto-shim", "1000"])
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        records = {"pid-namesake": {"pid": namesake.pid, "start": start_of(namesake.pid) - 1},
                   "pid-stranger": {"pid": stranger.pid, "start": start_of(stranger.pid)}}
        for run_id, shim in records.items():
            left = Left(sandbox, run_id, shim=shim, caller={"pid": shim["pid"], "start": 1})
            with open(left.folder / "lock") as lock:
                # Somebody is at work on it: who that is nobody knows, so nobody is killed.
                fcntl.flock(lock, fcntl.LOCK_EX)
                refused = sandbox.run("rm", "--force", run_id)
                assert refused.returncode == 125 and b"is being prepared or concluded" in refused.stderr
                assert sandbox.run("kill", run_id).returncode == 125
            assert sandbox.run("wait", run_id).returncode == 125
            assert sandbox.run("rm", "--force", run_id).returncode == 0
        assert Processes.is_alive(namesake.pid) and Processes.is_alive(stranger.pid)
        assert sandbox.runs() == []
    finally:
        for process in (namesake, stranger):
            process.kill()
            process.wait()


def test_a_start_that_was_abandoned_has_ended(sandbox):
    """Launchers that were killed: before the record was written, and before the lock was (as versions before this did)."""
    Left(sandbox, "gone-early")
    (Left(sandbox, "gone-first").folder / "lock").unlink()
    rows = {row["id"]: row for row in json.loads(sandbox.run("ps", "--json").stdout)}
    for run_id in ("gone-early", "gone-first"):
        assert (rows[run_id]["state"], rows[run_id]["reason"]) == ("ended", "caller-died"), rows
        done = sandbox.run("wait", run_id, timeout=60)
        assert done.returncode == 125 and b"caller-died" in done.stderr
    assert sorted(sandbox.run("sweep").stdout.split()) == [b"gone-early", b"gone-first"]
    assert sandbox.runs() == []


def without_call(number):
    """As on a kernel that does not have this system call: a filter of two questions, inherited by everything."""
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    words = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (answer, 0, 0, 0x00050000 | errno.ENOSYS), (answer, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *word) for word in words))
    program = struct.pack("@HP", len(words), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        no_new_privileges, set_filter, by_filter = 38, 22, 2
        if libc.prctl(no_new_privileges, 1, 0, 0, 0) < 0 or libc.prctl(set_filter, by_filter, program) < 0:
            raise OSError(ctypes.get_errno(), "install the filter")

    install.keeps = code
    return install


@pytest.mark.parametrize("call, words", [(LANDLOCK_CREATE_RULESET, b"has no landlock"), (SECCOMP, b"has no seccomp filters")])
def test_where_the_host_cannot_confine_the_emulator_nothing_runs(sandbox, call, words):
    done = sandbox.run("run", "--json", "--", "true", preexec_fn=without_call(call))
    assert done.returncode == 125 and words in done.stderr, done.stderr
    assert json.loads(done.stdout)["ran"] is False and sandbox.runs() == []
