# SPDX-License-Identifier: Apache-2.0
"""The promises of include/resoluto/runtime.h, asked of the microVM runtime with real guests (tests/contract/runtime.c)."""
import os
import subprocess

from conftest import build_dir, kernel_environment, needed


def test_the_microvm_keeps_the_contract_of_runtimes(tmp_path):
    tmp_path.chmod(0o700)
    environment = dict(os.environ, CONTRACT_IMAGE=needed("RESOLUTO_TEST_ROOTFS"), RESOLUTO_STATE_DIR=str(tmp_path),
                       **kernel_environment("built"))
    done = subprocess.run([build_dir() / "tests/contract/contract-runtime", "microvm"], env=environment, text=True,
                          capture_output=True, timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in lines if "SKIP" in line or line.startswith("not ok")] == []
    assert lines[-1].startswith("1..") and int(lines[-1][3:]) == sum(line.startswith("ok ") for line in lines) > 20
    assert list((tmp_path / "runs").iterdir()) == []
