# SPDX-License-Identifier: Apache-2.0
"""The last line of scripts/check.sh: counted from the results, and there however the check ends."""
import os
import shutil
import subprocess

import pytest

from conftest import ROOT
from programs import program

PASSED = '<testcase classname="a" name="good"/>'
SKIPPED = '<testcase classname="a" name="later"><skipped message="no time"/></testcase>'
FAILED = '<testcase classname="a" name="bad"><failure/></testcase>'
BROKEN = '<testcase classname="a" name="worse"><error/></testcase>'


@pytest.mark.parametrize("failed_steps, cases, last, code", [
    (0, [PASSED, PASSED], "2 passed, 0 failed", 0),
    (0, [PASSED, SKIPPED], "1 passed, 0 failed", 0),
    (0, [PASSED, FAILED, BROKEN], "1 passed, 2 failed", 1),
    (1, [PASSED], "1 passed, 1 failed", 1),
    (0, [SKIPPED], "0 passed, 0 failed", 1),
])
def test_results_are_counted(tmp_path, failed_steps, cases, last, code):
    files = []
    for number, case in enumerate(cases):
        files.append(tmp_path / f"{number}.xml")
        files[-1].write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    done = subprocess.run(["python3", ROOT / "scripts/lib/count.py", str(failed_steps), *files], text=True,
                          capture_output=True)
    assert (done.stdout.splitlines()[-1], done.returncode) == (last, code), done.stdout
    assert ("SKIPPED" in done.stdout) == (SKIPPED in cases) and ("FAILED" in done.stdout) == (FAILED in cases)


def test_a_step_that_fails_is_counted_too(tmp_path):
    """In a copy: a check of ours may be going on in this one."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name, text in (("dpkg-query", "exit 1"), ("apt-get", "echo no network today >&2; exit 100"), ("sudo", "exit 1")):
        path = program(tmp_path / "bin", name, f"#!/bin/sh\n{text}\n")
    done = subprocess.run(["bash", tmp_path / "scripts/check.sh"], text=True, capture_output=True,
                          env={**os.environ, "PATH": path,
                               "RESOLUTO_TEST_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "0 passed, 1 failed", done.stdout + done.stderr
