# SPDX-License-Identifier: Apache-2.0
"""What an emulator that its guest has taken over can still do, tried by fake_qemu through the very same launcher;
and what the shim can still do once it is locked down."""
import subprocess

import pytest

from shim_rig import USERS, Rig


@pytest.fixture(scope="module", params=USERS)
def rig(request):
    rig = Rig(request.param)
    yield rig
    rig.close()


KILLED = ["socket", "socketpair", "connect", "ptrace", "vm-read", "fork", "vfork", "clone", "exec", "execveat", "unshare",
          "setns", "mount", "bpf", "keyctl", "userfaultfd", "kill", "tgkill", "pidfd", "prlimit", "chmod", "inotify", "setuid",
          "sigio", "sigio-high", "sigio-ex", "sigio-number", "sigio-ioctl", "sigio-ioctl-high", "lease", "notify"]
REFUSED = {"read-passwd": "EACCES", "list-root": "EACCES", "read-proc": "EACCES", "clone3": "ENOSYS", "io_uring": "ENOSYS",
           "core": "EPERM", "files-max": "EPERM", "file-size": "EPERM"}


@pytest.mark.parametrize("what", KILLED)
def test_a_forbidden_call_ends_the_emulator(rig, what):
    run = rig.run("attempt", what)
    assert run.end == ("failed", "emulator-crashed"), run.text
    assert f"attempt {what}" not in run.text


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_fails(rig, what):
    run = rig.run("attempt", what)
    assert f"attempt {what}: {REFUSED[what]}" in run.lines, run.text


def test_no_file_can_be_made_anywhere(rig):
    for place in ("/tmp/made-by-qemu", str(rig.conduit / "made"), str(rig.state / "made"), "/var/tmp/made"):
        run = rig.run("attempt", "write-file", place)
        assert "attempt write-file: EACCES" in run.lines, run.text


def test_it_has_only_the_descriptors_of_the_table(rig):
    run = rig.run("descriptors")
    assert run.end == ("succeeded", ""), run.text
    assert sorted(int(line[3:]) for line in run.lines if line.startswith("fd ")) == list(range(11))


def test_as_root_it_is_a_user_of_its_slot(rig):
    run = rig.run("descriptors")
    who = next(line for line in run.lines if line.startswith("uid ")).split()
    first, last = map(int, rig.env["RESOLUTO_LOCAL_UIDS"].split("-"))
    assert who[1] == who[3]
    # Not always the first: users are taken on the whole host, by other runs as well.
    assert (first <= int(who[1]) <= last) == (rig.user == "root")
    assert int(who[1]) != 0 and who[5] == "0"


def test_the_locked_shim_can_store_and_nothing_else(rig):
    place = rig.top / "probe"
    place.mkdir(mode=0o777, exist_ok=True)
    place.chmod(0o777)
    done = subprocess.run([*rig.prefix(), str(rig.top / "shim_probe"), str(place)], capture_output=True, text=True, timeout=60)
    told = dict(line.split() for line in done.stdout.splitlines())
    assert done.returncode == 0, done
    allowed = {"replace-file", "make-directory", "unlink", "flush", "signal-qemu", "duplicate"}
    assert {name for name, result in told.items() if result == "ok"} == allowed, told
    assert told["read-passwd"] == told["write-tmp"] == told["climb"] == "EACCES"
    assert len(told) == len(allowed) + 22
