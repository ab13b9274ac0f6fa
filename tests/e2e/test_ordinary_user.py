# SPDX-License-Identifier: Apache-2.0
"""The same product as an ordinary user: no root, no group, a home of its own."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import build_dir, needed

UID = 54321


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """Returns run(arguments...): the command line as a user without any right, with its own installation."""
    home = pathlib.Path(tmp_path_factory.mktemp("home"))
    for parent in [home, *home.parents]:
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    programs = home / "bin"
    programs.mkdir()
    for name in ("src/cli/resoluto-sandbox", "src/shim/resoluto-shim", "src/gateway/resoluto-gateway"):
        shutil.copy(build_dir() / name, programs)
    for library in build_dir().glob("libresoluto-sandbox.so*"):
        if library.is_file():
            shutil.copy(library, programs)
    lines = [line for line in pathlib.Path(needed("RESOLUTO_LOCAL_ENV")).read_text().splitlines()
             if not line.startswith(("RESOLUTO_LIBEXEC_DIR", "RESOLUTO_STATE_DIR", "RESOLUTO_LOCAL_UIDS"))]
    config = home / "local.env"
    config.write_text("\n".join(lines) + f"\nRESOLUTO_LIBEXEC_DIR={programs}\n")
    programs.chmod(0o755)
    prefix = []
    if os.getuid() == 0:
        for path in [home, *home.rglob("*")]:
            os.chown(path, UID, UID)
        prefix = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--bounding-set=-all"]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "RESOLUTO_LOCAL_ENV": str(config),
           "LD_LIBRARY_PATH": str(programs)}

    def run(*arguments, more={}, **options):
        return subprocess.run([*prefix, str(programs / "resoluto-sandbox"), *map(str, arguments)], env={**env, **more},
                              cwd=home, capture_output=True, timeout=300, **options)

    run.home = home
    return run


def test_runs_with_workspace_and_output(ordinary):
    work = ordinary.home / "work"
    work.mkdir()
    (work / "in.txt").write_text("from the host")
    if os.getuid() == 0:
        os.chown(work, UID, UID)
    done = ordinary("run", "--json", "--workspace", work, "--output", "out.txt", "--", "/bin/sh", "-c",
                    "id -u; tr a-z A-Z < in.txt > out.txt")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["output"] == "1000\n"
    assert result["artifacts"] == ["out.txt"]
    assert (work / "out.txt").read_text() == "FROM THE HOST"
    assert result["isolation"]["own_kernel"] is True
    assert result["isolation"]["verdict"] == "protected"
    assert any("landlock" in c for c in result["isolation"]["confinement"])
    assert any("seccomp" in c for c in result["isolation"]["confinement"])


def test_state_is_private_and_empty_afterwards(ordinary):
    assert ordinary("run", "--", "/bin/true").returncode == 0
    state = ordinary.home / ".local/state/resoluto-sandbox"
    assert state.stat().st_mode & 0o777 == 0o700
    assert list((state / "runs").iterdir()) == []


def checks_of(done):
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def test_doctor_is_content(ordinary):
    done = ordinary("doctor")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs a cache that belongs to somebody else")
def test_a_cache_of_somebody_else_suffices_if_it_holds_the_image(ordinary):
    theirs = json.loads(ordinary("image", "ls", "--json").stdout)[0]["path"]
    done = ordinary("doctor", "--json", "--fix", more={"RESOLUTO_CACHE_DIR": str(pathlib.Path(theirs).parents[1])})
    assert (done.returncode, done.stderr) == (0, b""), done.stdout
    cache = checks_of(done)["cache"]
    assert cache["status"] == "absent" and "read-only" in cache["note"] and "RESOLUTO_CACHE_DIR" in cache["remedy"]

    done = ordinary("doctor", "--json", more={"RESOLUTO_CACHE_DIR": str(pathlib.Path(theirs).parents[1]),
                                              "RESOLUTO_SANDBOX_IMAGE": "not-in-any-cache:1"})
    assert done.returncode == 1
    checks = checks_of(done)
    assert checks["cache"]["status"] == "missing" and "RESOLUTO_CACHE_DIR" in checks["cache"]["remedy"]
    assert checks["image"]["status"] == "missing"


def test_egress_works_without_any_right(ordinary):
    """Nothing is dialled: the name that is allowed is only asked for, the other one is refused."""
    done = ordinary("run", "--json", "--egress", "site.example.org", "--", "python3", "-c",
                    "import socket; print(socket.gethostbyname('site.example.org')); socket.gethostbyname('evil.example.net')")
    result = json.loads(done.stdout)
    assert result["stdout"].startswith("198.18.") and result["exit_code"] == 1, result
    assert [(row["name"], row["reason"]) for row in result["egress"]] == [("evil.example.net", "not-allowed")]
    assert all(probe["ok"] for probe in result["canary"]) and len(result["canary"]) == 7
