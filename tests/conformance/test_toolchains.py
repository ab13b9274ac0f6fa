# SPDX-License-Identifier: Apache-2.0
"""Toolchains and servers as people use them: guest/projects/NAME/run.sh builds, tests and runs a small project."""
import pathlib

from inside import guest, patient_guest, prepared  # noqa: F401 (fixtures)

PROJECTS = pathlib.Path(__file__).resolve().parent / "guest/projects"
DISK = ("--disk", "4Gi")


# QEMU before 8.1 may keep code that another processor has replaced: what compiles while it runs has one processor under
# emulation, as docs/guest-kernel.md says.  With a kernel that patches itself all processors are one thread of QEMU's.
ONE_PROCESSOR = ("--cpus", "1")


def processors_for_compilers(guest):
    return ONE_PROCESSOR if guest.is_built else ()


def project(guest, name, *options):
    return guest.passes("sh", "run.sh", workspace=PROJECTS / name, options=(*DISK, *options))


def test_node_with_npm(patient_guest):
    text = project(patient_guest, "node")
    assert "greeting@1.2.3" in text and "pass 4" in text and "fail 0" in text, text


def test_go(patient_guest):
    text = project(patient_guest, "go")
    for name in ("TestWords", "TestSocketAndTimer", "TestProgram"):
        assert f"--- PASS: {name}" in text


def test_rust_with_cargo(patient_guest):
    assert "test result: ok. 2 passed; 0 failed" in project(patient_guest, "rust")


def test_java(patient_guest):
    assert project(patient_guest, "java", *processors_for_compilers(patient_guest)).splitlines()[-1].startswith("hello 4950 text ")


def test_code_that_is_written_while_it_runs(guest):
    assert project(guest, "code", *processors_for_compilers(guest)) == "0 of 2000 calls were of code that had been replaced\n"


def test_postgresql(patient_guest):
    assert project(patient_guest, "postgresql").splitlines()[-1] == "recovered"
