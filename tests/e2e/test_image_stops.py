# SPDX-License-Identifier: Apache-2.0
"""`run` is stopped while its image is fetched, made or waited for: at once, and nothing is left."""
import fcntl
import io
import json
import os
import signal
import socket
import tarfile

import pytest

from conftest import Processes, wait_until

SOON = 5  # seconds, on a machine that has much else to do; without the stop each of these waits for ever
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
LOCKS = 64  # src/image/store.c: SLOTS


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def tar(tmp_path):
    """More than all buffers on the way to its reader hold."""
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("bin/x")
        info.size = 8 << 20
        archive.addfile(info, io.BytesIO(os.urandom(info.size)))
    return path


def check_stop(sandbox, run, cache, signo, kill=os.kill):
    helpers = Processes.children(run.pid)
    kill(run.pid, signo)
    out, err = run.communicate(timeout=SOON)
    assert run.returncode == 128 + signo, err
    assert not [pid for pid in helpers if os.path.exists(f"/proc/{pid}")]
    assert sandbox.runs() == [] and os.listdir(sandbox.env["TMPDIR"]) == []
    assert not [name for name in os.listdir(cache / "images") if name.startswith((".part", "sha256"))]
    assert err == b"resoluto-sandbox: signal: stopped by a signal\n"
    if signo == signal.SIGHUP:
        assert out == b"", "whoever read it has gone"
        return
    result = json.loads(out)
    assert (result["disposition"], result["reason"], result["ran"]) == ("stopped", "signal", False)


def start(sandbox, cache, ref, **env):
    return sandbox.start("run", "--json", "--image", ref, "--", "true", start_new_session=True,
                         env={"RESOLUTO_CACHE_DIR": str(cache), **env})


@pytest.mark.parametrize("whom", ["us", "our group"])
@pytest.mark.parametrize("signo", STOPS)
def test_a_registry_that_never_answers(sandbox, cache, signo, whom):
    with socket.create_server(("127.0.0.1", 0)) as server:
        run = start(sandbox, cache, f"127.0.0.1:{server.getsockname()[1]}/x:1")
        server.settimeout(60)
        asking, _ = server.accept()
        with asking:
            assert asking.recv(1), "skopeo asks"
            check_stop(sandbox, run, cache, signo, os.kill if whom == "us" else os.killpg)


def holds(pid, name):
    """Has the process a file open whose name begins so?"""
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}").startswith(name) for fd in os.listdir(folder))
    except FileNotFoundError:  # one was closed just now
        return False


@pytest.mark.parametrize("signo", STOPS)
def test_another_process_makes_it(sandbox, cache, tar, signo):
    (cache / "images").mkdir(parents=True)
    locks = [open(cache / "images" / f".lock-{i:02}", "w") for i in range(LOCKS)]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    run = start(sandbox, cache, f"tar:{tar}")
    wait_until(lambda: holds(run.pid, f"{cache}/images/.lock-"), "the wait for the lock")
    check_stop(sandbox, run, cache, signo)
    for lock in locks:
        lock.close()


@pytest.mark.parametrize("script", ["exec tail -f /dev/null", "cat >/dev/null; exec tail -f /dev/null"],
                         ids=["reads nothing", "never ends"])
def test_its_file_system_is_being_made(sandbox, cache, tar, tmp_path, script):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "tar2sqfs").write_text(f"#!/bin/sh\n: >{tmp_path}/mark\n{script}\n")
    (programs / "tar2sqfs").chmod(0o755)
    run = start(sandbox, cache, f"tar:{tar}", PATH=f"{programs}:{os.environ['PATH']}")
    wait_until((tmp_path / "mark").exists, "tar2sqfs")
    check_stop(sandbox, run, cache, signal.SIGINT, os.killpg)


@pytest.mark.parametrize("signo", STOPS)
@pytest.mark.parametrize("command", [["pull"], ["import"]], ids=["pull", "import"])
def test_image_commands_end_too(sandbox, cache, command, signo):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ref = f"127.0.0.1:{server.getsockname()[1]}/x:1"
        names = ["mine:1"] if command == ["import"] else []
        run = sandbox.start("image", *command, ref, *names, env={"RESOLUTO_CACHE_DIR": str(cache)})
        server.settimeout(60)
        asking, _ = server.accept()
        with asking:
            assert asking.recv(1), "skopeo asks"
            helpers = Processes.children(run.pid)
            run.send_signal(signo)
            run.communicate(timeout=SOON)
        assert run.returncode == -signo
        wait_until(lambda: not [pid for pid in helpers if Processes.is_alive(pid)], "the end of skopeo")
