# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/say.sh: a step and all that it started end with the script."""
import os
import signal
import subprocess

import pytest

from conftest import ROOT, wait_until

SCRIPT = """set -euo pipefail
. {root}/scripts/lib/say.sh
working() {{
	# As `tar -xJf`: a program that starts another one, and neither is the shell of the step.
	bash -c 'sleep 1000 & echo $! >{folder}/inner; wait' &
	echo $! >{folder}/outer
	wait
}}
step "working" working
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("signo, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_a_step_started_ends_with_it(tmp_path, signo, code):
    script = subprocess.Popen(["bash", "-c", SCRIPT.format(root=ROOT, folder=tmp_path)], start_new_session=True,
                              stdout=subprocess.DEVNULL)
    pids = [tmp_path / "outer", tmp_path / "inner"]
    wait_until(lambda: all(file.exists() and file.read_text().strip() for file in pids), "the step's programs", seconds=30)
    pids = [int(file.read_text()) for file in pids]
    os.kill(script.pid, signo)
    assert script.wait(30) == code
    wait_until(lambda: not any(map(is_alive, pids)), "their end", seconds=30)
