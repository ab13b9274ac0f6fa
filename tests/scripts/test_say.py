# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/say.sh: a step and all that it started end with the script."""
import os
import shutil
import signal
import subprocess

import pytest

from conftest import ROOT, Processes, wait_until

SCRIPT = """set -euo pipefail
. {root}/scripts/lib/say.sh
working() {{
	# As `tar -xJf`: a program that starts another one, and neither is the shell of the step.
	bash -c 'sleep 1000 & echo $! >{folder}/inner; wait' &
	echo $! >{folder}/outer
	{folder}/apt-get 1000 &
	echo $! >{folder}/apt
	wait
}}
step "working" working
"""


@pytest.mark.parametrize("signo, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_a_step_started_ends_with_it(tmp_path, signo, code):
    # The package manager must not be cut off.
    shutil.copy(shutil.which("sleep"), tmp_path / "apt-get")
    script = subprocess.Popen(["bash", "-c", SCRIPT.format(root=ROOT, folder=tmp_path)], start_new_session=True,
                              stdout=subprocess.DEVNULL)
    pids = [tmp_path / name for name in ("outer", "inner", "apt")]
    wait_until(lambda: all(file.exists() and file.read_text().strip() for file in pids), "the step's programs", seconds=30)
    outer, inner, apt = [int(file.read_text()) for file in pids]
    os.kill(script.pid, signo)
    # Once more, while it stops them.
    os.kill(script.pid, signal.SIGTERM)
    try:
        assert script.wait(30) in (code, 143)
        wait_until(lambda: not any(map(Processes.is_alive, (outer, inner))), "their end", seconds=30)
        assert Processes.is_alive(apt)
    finally:
        os.kill(apt, signal.SIGKILL)
