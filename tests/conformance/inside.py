# SPDX-License-Identifier: Apache-2.0
"""Programs in the sandbox, through the command line, in an image with toolchains, on each guest kernel.

What they need is made by prepare.sh.  Test files import the fixtures by name: a second conftest.py would hide the
first."""
import json
import os
import pathlib
import sys

import pytest

from conftest import needed

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "guest"))
sys.dont_write_bytecode = True  # the folder is what the guest gets

DEADLINE = "900s"


@pytest.fixture(scope="session")
def prepared():
    folder = pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "conformance"
    if not (folder / "image").exists():
        pytest.fail(f"{folder} is not complete: run tests/conformance/prepare.sh {folder} CLI", pytrace=False)
    return folder


def both_ends(text, limit=16000):
    """What a failing program said: why it failed stands at the end, or (a crash with its report) at the beginning."""
    return text if len(text) <= limit else f"{text[:limit // 2]}\n[...]\n{text[-limit // 2:]}"


class Guest:
    """One kernel with the image; what scripts report is kept, for a test looks at one line of it."""

    def __init__(self, sandbox, environment, image):
        self.sandbox, self.environment, self.image = sandbox, environment, image
        self.is_built = environment["RESOLUTO_LOCAL_MACHINE"].endswith("-built")
        self._kept = {}

    def run(self, *argv, workspace=HERE / "guest", options=()):
        """The result of a run as the product tells it."""
        done = self.sandbox.run("run", "--json", "--image", self.image, "--pull", "never", "--deadline", DEADLINE,
                                "--workspace", workspace, *options, "--", *argv, env=self.environment, timeout=1000)
        assert done.stdout, done.stderr.decode()
        return json.loads(done.stdout)

    def passes(self, *argv, **options):
        """The output of a program that must end well."""
        result = self.run(*argv, **options)
        assert result["ok"], f"{result['reason']} {result['exit_code']}: {both_ends(result['output'])}"
        return result["output"]

    def lines(self, *argv, options=()):
        """The lines of JSON that a script of guest/ printed, and the result of its run, which happens once."""
        if argv not in self._kept:
            self._kept[argv] = [], {"reason": "the run had no result", "exit_code": None, "stderr": ""}
            result = self.run("python3", "-B", *argv, options=options)
            found = [json.loads(line) for line in result["stdout"].splitlines() if line.startswith(("{", "["))]
            self._kept[argv] = found, result
        return self._kept[argv]


@pytest.fixture(scope="session")
def guest(sandbox, kernel, prepared):
    return Guest(sandbox, kernel, (prepared / "image").read_text().strip())


@pytest.fixture
def patient_guest(guest):
    """For what takes minutes under emulation: on the distribution's kernel only in check.sh --full."""
    if not guest.is_built and not os.environ.get("RESOLUTO_SOAK"):
        pytest.skip("on the distribution's kernel with RESOLUTO_SOAK=1 (check.sh --full)")
    return guest
