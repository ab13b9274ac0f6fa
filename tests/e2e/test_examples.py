# SPDX-License-Identifier: Apache-2.0
"""The C example as a user builds it: the library installed somewhere, found by pkg-config, nothing else known."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import build_dir


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Environment in which pkg-config finds an installation of the build under test."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "-C", build_dir(), "--no-rebuild", "--quiet", "--destdir", place],
                   check=True, timeout=120, stdout=subprocess.DEVNULL)
    (config,) = place.rglob("resoluto-sandbox.pc")
    return dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(place), PKG_CONFIG_PATH=str(config.parent),
                LD_LIBRARY_PATH=str(config.parent.parent))


def flags_of_the_build():
    """What a program needs that links a library built with sanitizers."""
    names = subprocess.run(["nm", "-D", "--undefined-only", build_dir() / "libresoluto-sandbox.so"], check=True,
                           capture_output=True, text=True).stdout
    return "-fsanitize=address,undefined" if "__asan_init" in names else ""


@pytest.fixture(scope="module")
def example(installed, root_of_examples, tmp_path_factory):
    place = tmp_path_factory.mktemp("example")
    shutil.copytree(root_of_examples / "library", place, dirs_exist_ok=True)
    flags = flags_of_the_build()
    subprocess.run(["make", "-C", place], env={**installed, "CFLAGS": f"-Werror {flags}", "LDFLAGS": flags}, check=True,
                   timeout=120)
    return place / "run_hello"


@pytest.fixture(scope="module")
def root_of_examples():
    return pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(example, installed, sandbox, *arguments):
    env = {**installed, "RESOLUTO_STATE_DIR": str(sandbox.state), "RESOLUTO_LOCAL_ENV": sandbox.env["RESOLUTO_LOCAL_ENV"]}
    return subprocess.run([example, *map(str, arguments)], env=env, capture_output=True, timeout=300)


def test_the_library_runs_a_program(example, installed, sandbox):
    done = run(example, installed, sandbox)
    assert done.stdout == b"hello from the sandbox\n", done.stderr
    assert done.returncode == 0
    assert b"completed, exit code 0" in done.stderr and b'"own_kernel":true' in done.stderr
    assert sandbox.runs() == []


def test_the_library_brings_a_workspace_and_an_exit_code(example, installed, sandbox, root_of_examples):
    done = run(example, installed, sandbox, root_of_examples / "hello", "sh", "-c", "python3 hello.py you; exit 7")
    assert done.stdout.startswith(b"Hello, you, from Linux "), done.stderr
    assert done.returncode == 7


def test_the_library_says_what_is_wrong(example, installed, sandbox):
    done = run(example, installed, sandbox, "/nonexistent", "true")
    assert done.returncode == 125
    assert b"/nonexistent" in done.stderr and done.stdout == b""


@pytest.fixture(scope="module")
def jobs(installed, root_of_examples, tmp_path_factory):
    place = tmp_path_factory.mktemp("jobs")
    shutil.copytree(root_of_examples / "two-processes", place, dirs_exist_ok=True)
    flags = flags_of_the_build()
    subprocess.run(["make", "-C", place], env={**installed, "CFLAGS": f"-Werror {flags}", "LDFLAGS": flags}, check=True,
                   timeout=120)
    return place


def test_two_processes_share_a_run(jobs, installed, sandbox, tmp_path):
    """One launches and ends; the next is killed in the middle; a third goes on where that one was."""
    work = tmp_path / "work"
    work.mkdir()
    job = "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.5; done; echo done > out.txt; exit 5"
    launched = run(jobs / "launch_job", installed, sandbox, work, "out.txt", "sh", "-c", job)
    assert launched.returncode == 0, launched.stderr
    run_id = launched.stdout.decode().strip()
    env = {**installed, "RESOLUTO_STATE_DIR": str(sandbox.state), "RESOLUTO_LOCAL_ENV": sandbox.env["RESOLUTO_LOCAL_ENV"]}
    words = [jobs / "follow_job", run_id, tmp_path / "back", tmp_path / "cursor"]
    first = subprocess.Popen(words, env=env, stdout=subprocess.PIPE)
    seen = first.stdout.readline() + first.stdout.readline()
    first.kill()
    seen += first.communicate()[0]
    last = subprocess.run(words, env=env, capture_output=True, timeout=300)
    assert last.returncode == 5, last.stderr
    # At most the piece that was shown when it was killed, but not yet noted, comes twice.
    lines = [f"line {i}\n".encode() for i in range(1, 7)]
    cut = len(seen.splitlines())
    assert seen == b"".join(lines[:cut])
    assert last.stdout in (b"".join(lines[cut:]), b"".join(lines[cut - 1:]))
    assert (tmp_path / "back" / "out.txt").read_text() == "done\n"
    assert not (tmp_path / "cursor").exists() and sandbox.runs() == []


def test_the_static_library_is_whole(installed, sandbox, root_of_examples, tmp_path):
    """The archive and what its pkg-config file says it needs, here as shared libraries, are enough."""
    def config(*words):
        return subprocess.run(["pkg-config", *words, "resoluto-sandbox"], env=installed, capture_output=True, text=True,
                              check=True).stdout.split()

    system = {name: value for name, value in installed.items() if not name.startswith("PKG_CONFIG_")}
    needs = subprocess.run(["pkg-config", "--libs", *config("--print-requires-private")], env=system, capture_output=True,
                           text=True, check=True).stdout.split()
    (archive,) = pathlib.Path(installed["LD_LIBRARY_PATH"]).glob("libresoluto-sandbox.a")
    program = tmp_path / "run_hello"
    subprocess.run(["cc", "-Werror", "-o", program, root_of_examples / "library/run_hello.c", *config("--cflags"),
                    archive, *needs, "-pthread", *flags_of_the_build().split()], check=True, timeout=120)
    assert b"resoluto" not in subprocess.run(["ldd", program], capture_output=True, check=True).stdout.split(b"=>", 1)[1]
    done = run(program, installed, sandbox, "/nonexistent", "true")
    assert done.returncode == 125 and b"/nonexistent" in done.stderr
