# SPDX-License-Identifier: Apache-2.0
"""The tests of this folder run inside a test host with KVM, as ordinary pytest tests; outside, where pytest was called,
each chosen one stands for what became of it in there.  The same file is collected on both sides."""
import json
import os
import pathlib
import platform
import threading
import time

import pytest

HERE = pathlib.Path(__file__).parent
REPORT = os.environ.get("RESOLUTO_TEST_REPORT")  # set inside: the port to the outside


SECONDS_OF_HEARTBEAT = 10
telling = threading.Lock()  # the port has one opener at a time


def tell(line):
    with telling, open(REPORT, "w") as port:
        port.write(line + "\n")


def heartbeat():
    """An empty line, that says the host is alive, whatever its test waits for."""
    while True:
        tell("")
        time.sleep(SECONDS_OF_HEARTBEAT)


def pytest_sessionstart():
    if REPORT:
        threading.Thread(target=heartbeat, daemon=True).start()


def case_name(nodeid):
    return nodeid.rsplit("/", 1)[-1]


class InsideCase(pytest.Item):
    """A test that is run inside."""

    report = None  # of all of them: the host boots once

    def __init__(self, *, names, **options):
        super().__init__(**options)
        self.names = names

    def runtest(self):
        if InsideCase.report is None:
            from host import run_inside  # outside only: what it needs is not inside
            InsideCase.report = run_inside(self.names)
        trouble = InsideCase.report.trouble_of(case_name(self.nodeid))
        if trouble:
            pytest.fail(trouble, pytrace=False)

    def reportinfo(self):
        return self.path, None, self.name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """After -k and its like: only what is wanted runs inside."""
    if REPORT:
        return
    names = [case_name(item.nodeid) for item in items if item.path.parent == HERE]
    for i, item in enumerate(items):
        if item.path.parent != HERE:
            continue
        items[i] = InsideCase.from_parent(item.parent, name=item.name, names=names)
        if platform.machine() != "x86_64":
            items[i].add_marker(pytest.mark.skip(reason="the emulated KVM is AMD's"))


def pytest_runtest_logreport(report):
    if not REPORT:
        return
    text = report.longreprtext + "".join(f"\n---- {title}\n{body}" for title, body in report.sections)
    line = json.dumps({"case": case_name(report.nodeid), "when": report.when, "outcome": report.outcome,
                       "seconds": report.duration, "text": text if report.outcome != "passed" else ""})
    tell(line)
