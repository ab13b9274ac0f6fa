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


@pytest.fixture(scope="module")
def example(installed, root_of_examples, tmp_path_factory):
    place = tmp_path_factory.mktemp("example")
    shutil.copytree(root_of_examples / "library", place, dirs_exist_ok=True)
    subprocess.run(["make", "-C", place], env={**installed, "CFLAGS": "-Werror"}, check=True, timeout=120)
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
