# SPDX-License-Identifier: Apache-2.0
"""scripts/provision-kernel.sh without network: what is there serves if it is whole and the right one, and nothing else does."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT, needed
from programs import program

DEPENDS = """#!/bin/sh
case "$*" in depends*) printf '%s\\n  Depends: linux-image-{version}\\n' linux-image ;; esac
"""


class Place:
    def __init__(self, folder):
        self.out = folder / "distro"
        self.programs = folder / "bin"
        self.programs.mkdir()
        shutil.copytree(pathlib.Path(needed("RESOLUTO_TEST_KERNELS")) / "distro", self.out)
        self.version = (self.out / "VERSION").read_text().split()[0]
        self.program("apt-cache", "#!/bin/sh\nexit 100\n")
        self.program("apt-get", f'#!/bin/sh\necho "$*" >>{folder}/asked\necho no network today >&2\nexit 100\n')
        self.asked = folder / "asked"

    def program(self, name, text):
        program(self.programs, name, text)

    def provision(self, *arguments):
        return subprocess.run(["bash", ROOT / "scripts/provision-kernel.sh", self.out, *arguments], text=True, timeout=120,
                              env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}, capture_output=True)

    def snapshot(self):
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in self.out.rglob("*") if p.is_file()}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize("version, why", [
    (None, "apt does not know linux-image-"),
    ("99.9-cloud-amd64", "apt-get download linux-image-99.9-cloud-amd64 failed"),
])
def test_without_network_a_whole_one_serves(place, version, why):
    if version:
        place.program("apt-cache", DEPENDS.format(version=version))
    before = place.snapshot()
    done = place.provision()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{place.version} is there, and serves; newer ones could not be looked for: {why}" in done.stdout
    assert place.snapshot() == before


def test_the_newest_is_not_downloaded_again(place):
    place.program("apt-cache", DEPENDS.format(version=place.version))
    done = place.provision()
    assert done.returncode == 0 and done.stdout == f"provision-kernel: {place.version} is there\n", done.stderr
    assert not place.asked.exists()


def damage(out):
    with (out / "vmlinux").open("ab") as file:
        file.write(b"!")


@pytest.mark.parametrize("change, arguments", [
    (damage, []),
    (lambda out: (out / "VERSION").unlink(), []),
    (lambda out: None, ["--module", "dm_crypt"]),
    (lambda out: None, ["--distro", "ubuntu"]),
    (lambda out: None, ["--force"]),
])
def test_without_network_nothing_else_serves(place, change, arguments):
    change(place.out)
    before = place.snapshot()
    done = place.provision(*arguments)
    assert done.returncode == 1 and "run apt-get update first (as root)" in done.stderr, done.stdout + done.stderr
    assert "serves" not in done.stdout and place.snapshot() == before


@pytest.mark.parametrize("words, distro", [
    ("ID=debian", "debian"), ("ID=ubuntu\nID_LIKE=debian", "ubuntu"), ('ID=linuxmint\nID_LIKE="ubuntu debian"', "ubuntu"),
    ("ID=raspbian\nID_LIKE=debian", "debian"), ("ID=void", "void"), ("NAME=none", "unknown")])
def test_what_derives_from_a_distribution_takes_its_kernel(tmp_path, words, distro):
    (tmp_path / "os-release").write_text(words + "\n")
    done = subprocess.run(["bash", "-euc", '. "$1"; distro_of "$2"', "-", ROOT / "scripts/lib/distro.sh", tmp_path / "os-release"],
                          text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, distro + "\n"), done.stderr
