# SPDX-License-Identifier: Apache-2.0
"""Real input: a published Python package with its own test suite, and a C program compiled in an image with gcc."""
import json
import os
import pathlib
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from conftest import needed


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The source distribution, unpacked, with pytest beside it as a folder: there is no network inside."""
    inputs = pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "inputs"
    archives = sorted(inputs.glob("*.tar.gz"))
    assert archives, f"no source distribution in {inputs}"
    work = tmp_path_factory.mktemp("package")
    subprocess.run(["tar", "-xzf", archives[0], "-C", work, "--no-same-owner"], check=True)
    top = next(p for p in work.iterdir() if p.is_dir())
    shutil.copytree(inputs / "wheels", top / "wheels")
    return top


def test_the_test_suite_of_a_real_package(sandbox, package):
    done = sandbox.run("run", "--json", "--workspace", package, "--output", "report.xml", "--env",
                       "PYTHONPATH=/workspace/wheels:/workspace/src:/workspace", "--", "python3", "-m", "pytest", "-q",
                       "-p", "no:cacheprovider", "--junitxml=report.xml", "-c", "/dev/null", "--rootdir=/workspace",
                       *[p for p in ("testing", "tests", "toolz/tests") if (package / p).is_dir()])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    result = json.loads(done.stdout)
    assert result["artifacts"] == ["report.xml"]
    suite = ET.parse(package / "report.xml").getroot().find("testsuite")
    assert int(suite.get("tests")) > 5
    assert suite.get("failures") == "0" and suite.get("errors") == "0"


@pytest.fixture(scope="module")
def gcc_image():
    """An image with a compiler, made once from Debian's packages."""
    path = pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "gcc.tar"
    if not path.exists():
        part = path.with_suffix(".part")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=gcc,libc6-dev",
                        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
                        "bookworm", str(part) + ".tar"], check=True, timeout=600)
        os.rename(str(part) + ".tar", path)
    return f"tar:{path}"


def test_a_c_program_is_compiled_in_an_image_with_gcc(sandbox, gcc_image, tmp_path):
    (tmp_path / "main.c").write_text('#include <stdio.h>\nint main(void) { return printf("%d\\n", 6 * 7) != 3; }\n')
    done = sandbox.run("run", "--image", gcc_image, "--workspace", tmp_path, "--output", "main", "--", "/bin/sh", "-ec",
                       "gcc -Wall -Werror -O2 -o main main.c && ./main")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"42\n"
    assert (tmp_path / "main").read_bytes()[:4] == b"\x7fELF"


def test_the_hello_example(sandbox, root, tmp_path):
    """As README has it."""
    done = sandbox.run("run", "--workspace", "examples/hello", "--output", "greeting.txt", "--output-dir", tmp_path / "hello",
                       "--", "python3", "hello.py", "you", cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Hello, you, from Linux ")
    assert (tmp_path / "hello/greeting.txt").read_bytes() == done.stdout
    assert os.listdir(tmp_path / "hello") == ["greeting.txt"]
