# SPDX-License-Identifier: Apache-2.0
"""scripts/local-backend-up.sh where it must refuse, warn or clean up; that it works shows check.sh, which begins with it."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT, build_dir, needed

SCRIPT = ROOT / "scripts/local-backend-up.sh"


@pytest.fixture
def up(tmp_path):
    """Returns up(arguments...): the script with places of its own and an emulator that always fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RESOLUTO_")}
    env.update(RESOLUTO_CACHE_DIR=str(tmp_path / "cache"), RESOLUTO_STATE_DIR=str(tmp_path / "state"),
               RESOLUTO_LOCAL_ENV=str(tmp_path / "local.env"), RESOLUTO_LOCAL_QEMU="/bin/false")

    def run(*arguments, **more):
        return subprocess.run(["bash", SCRIPT, *map(str, arguments)], env={**env, **more}, cwd=tmp_path, text=True,
                              capture_output=True, timeout=300, stdin=subprocess.DEVNULL)

    return run


def settings(path):
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def provisioned():
    """Arguments and variables with which everything but the acceleration is there already."""
    if not (build_dir() / "guest/resoluto-runner").exists():
        pytest.skip("this build has no runner")
    return (["--skip-packages", "--prefix", "none", "--build-dir", build_dir()],
            {"RESOLUTO_CACHE_DIR": str(pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "sandbox")})


def checkout_copy():
    path = ROOT / "local.env"
    return path.read_bytes() if path.exists() else None


def test_kvm_on_request_is_refused_and_nothing_weaker_is_recorded(up, provisioned, tmp_path):
    arguments, env = provisioned
    before = checkout_copy()
    done = up("--accel", "kvm", *arguments, **env)
    assert done.returncode == 1, done.stdout
    assert "--accel kvm: a probe boot with KVM failed" in done.stderr and "WARNING" not in done.stderr
    recorded = settings(tmp_path / "local.env")
    assert "RESOLUTO_LOCAL_ACCEL" not in recorded and recorded["RESOLUTO_LOCAL_QEMU"] == "/bin/false"
    assert checkout_copy() == before, "who names a file gets that one and no other"


def test_emulation_is_said_loudly_and_a_red_canary_is_no_success(up, provisioned, tmp_path):
    arguments, env = provisioned
    done = up(*arguments, **env)
    assert "WARNING: no hardware virtualization" in done.stderr and "not a hardened security boundary" in done.stderr
    assert settings(tmp_path / "local.env")["RESOLUTO_LOCAL_ACCEL"] == "tcg"
    assert done.returncode == 1 and "the canary failed" in done.stderr
    assert "is up" not in done.stdout


@pytest.mark.parametrize("arguments, words", [
    (["--accel", "fast"], "--accel is auto, kvm or tcg"),
    (["--kernel", "/no/such/vmlinux"], "/no/such/vmlinux"),
    (["--acel", "tcg"], "--acel is no option"),
    (["--prefix"], "--prefix needs a value"),
])
def test_misuse_changes_nothing(up, tmp_path, arguments, words):
    done = up(*arguments)
    assert done.returncode == 1 and words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_apt_it_says_what_to_install_and_where_to_point_it(up, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "basename", "cat", "chmod", "date", "dirname", "id", "mkdir", "sed", "uname"):
        (programs / name).symlink_to(shutil.which(name))
    done = up(PATH=str(programs))
    assert done.returncode == 1
    for words in ("no apt-get", "libarchive", "qemu-system", "skopeo", "--kernel FILE", "--base-image REF",
                  "--skip-packages", "RESOLUTO_LOCAL_QEMU"):
        assert words in done.stderr, words
    assert not (tmp_path / "local.env").exists()


def test_uninstall_removes_what_is_ours_and_nothing_else(up, tmp_path):
    before = checkout_copy()
    for name in ("cache/kernel/distro/vmlinux", "cache/images/sha256-0.squashfs", "cache/refs.json", "cache/theirs",
                 "state/runs/x/lock", "local.env", "installed/ours", "installed/theirs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    log = tmp_path / "build/meson-logs/install-log.txt"
    log.parent.mkdir(parents=True)
    log.write_text(f"# List of files installed\n{tmp_path}/installed\n{tmp_path}/installed/ours\n")
    done = up("--uninstall", "--build-dir", tmp_path / "build")
    assert done.returncode == 0, done.stderr
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"cache/theirs", "installed/theirs", "build/meson-logs/install-log.txt"}
    assert checkout_copy() == before
