# SPDX-License-Identifier: Apache-2.0
"""Injured runs, a few of each kind; bench/faults.sh does hundreds (docs/design/faults.md)."""
import io
import os
import sys

import pytest

from conftest import ROOT, build_dir, needed

sys.path.insert(0, str(ROOT / "tests/faults"))
from campaign import Campaign  # noqa: E402
from injury import KINDS, Calls  # noqa: E402

# Chosen so that all of them take about a minute: a frozen machine is waited for.
REPEATS = {"cli": 3, "shim": 3, "disk": 3, "frozen": 1, "call-cli": 4, "call-shim": 4}
REPEATS_ELSE = 2


@pytest.fixture(scope="module")
def campaign():
    needed("RESOLUTO_LOCAL_ENV")
    # The same injuries each time; bench/faults.sh looks for new ones.  FAULTS_SEED does again what it reports.
    seed = int(os.environ.get("FAULTS_SEED") or 1)
    campaign = Campaign(build_dir(), dict(os.environ), seed=seed)
    yield campaign
    campaign.report()
    campaign.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_injured_keeps_its_promises(campaign, kind):
    if kind not in campaign.kinds:
        pytest.skip("not with sanitizers: nothing can be preloaded before them, and the runner is static")
    first = list(KINDS).index(kind)
    for turn in range(REPEATS.get(kind, REPEATS_ELSE)):
        held = campaign.repeat(first + turn * len(KINDS))
        assert held, campaign.broken[-1]


def test_the_report_counts_each(campaign):
    """A table that cannot fail would say nothing: what did not hold stands in it."""
    told = io.StringIO()
    campaign.report(told)
    rows = {line.split()[0]: line.split()[-1] for line in told.getvalue().splitlines()[1:]}
    for kind in campaign.kinds:
        held, of = rows[kind].split("/")
        assert int(held) == int(of) > 0, told.getvalue()


def test_each_write_of_a_launch_may_fail(campaign, sandbox, tmp_path):
    """Also those of the processes in between, which are nobody's yet: nobody waits for the word of one that cannot give it."""
    if not campaign.has_fault_points:
        pytest.skip("not with sanitizers: nothing can be preloaded before them")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/in").write_text("x")
    number, happened = 0, True
    while happened:
        number += 1
        run_id = f"write-{number}"
        calls = Calls(tmp_path / "counts", build_dir() / "tests/faults/libfault_points.so", "resoluto-sandbox")
        done = sandbox.run("run", "--detach", "--id", run_id, "--workspace", tmp_path / "work", "--", "/bin/true",
                           env=calls.environment(f"write:{number}:EIO"), timeout=120)
        happened = calls.read()[0]
        assert done.returncode in ((0, 1, 125) if happened else (0,)), (number, done)
        assert (done.stdout == f"{run_id}\n".encode()) == (done.returncode == 0), (number, done)
        sandbox.run("rm", "--force", run_id)
    assert number > 5 and sandbox.runs() == []


@pytest.mark.parametrize("call", ["pwrite:{}:EINTR", "pwrite:{}:short", "write:{}:short"])
def test_a_write_that_is_cut_short_is_gone_on_with(campaign, sandbox, tmp_path, call):
    if not campaign.has_fault_points:
        pytest.skip("not with sanitizers: nothing can be preloaded before them")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/in").write_text("x")
    number, happened = 0, True
    while happened:
        number += 1
        calls = Calls(tmp_path / "counts", build_dir() / "tests/faults/libfault_points.so", "resoluto-sandbox")
        done = sandbox.run("run", "--workspace", tmp_path / "work", "--", "cat", "in", env=calls.environment(call.format(number)),
                           timeout=120)
        happened = calls.read()[0]
        assert (done.returncode, done.stdout, done.stderr) == (0, b"x", b""), (number, done)
    assert number > 1, "it was called at all"
