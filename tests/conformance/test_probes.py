# SPDX-License-Identifier: Apache-2.0
"""Small programs, many to a virtual machine: what of Python's library, of the kernel and of tools works.

Each probe of guest/probes_*.py is a test of its own here; one that did not report has failed."""
import importlib

import pytest

from inside import guest, prepared  # noqa: F401 (fixtures)

# The kernel's probes write to a scratch disk: files in memory have no extended attributes and no direct I/O in 6.1.
SCRIPTS = {"probes_python": (), "probes_kernel": ("--disk", "1Gi"), "probes_tools": ("--disk", "2Gi")}


def probes():
    from probe import name_of, probes as found
    for script in SCRIPTS:
        del found[:]
        module = importlib.import_module(script)
        assert found, f"{module} has no probes"
        yield from [(script, name_of(function)) for function in found]


@pytest.mark.parametrize("script, probe", list(probes()))
def test_probe(guest, script, probe):
    lines, result = guest.lines(script + ".py", options=SCRIPTS[script])
    report = {line["probe"]: line for line in lines}
    assert probe in report, f"no report; the run: {result['reason']} {result['exit_code']} {result['stderr'][-2000:]}"
    assert report[probe]["ok"], report[probe]["detail"]
