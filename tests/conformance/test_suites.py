# SPDX-License-Identifier: Apache-2.0
"""The test suites of other people's projects in the guest.  All but three tests and one limit, which are named here with why, are
their authors'; by their own variables tornado and libuv are told to be patient."""
import os
import re
import shutil

import pytest

from inside import guest, patient_guest, prepared  # noqa: F401 (fixtures)

# Of tornado's suite what meets the system: sockets, loops, processes; the whole one takes minutes and is for
# check.sh --full.
TORNADO = [f"tornado.test.{name}_test" for name in ("asyncio", "ioloop", "iostream", "netutil", "process", "tcpclient",
                                                    "tcpserver")]

# Three of its tests do not hold here: one takes it that nobody but root may use port 1 (in a sandbox every port is the
# program's), one that a handshake of TLS is over in half a second, and one that a thread has resolved 127.0.0.1 in a
# tenth; in emulation on a busy machine that takes longer.
RUN_TORNADO = """
from tornado.test import simple_httpclient_test, tcpclient_test
from tornado.test.runtests import all, main
del tcpclient_test.TCPClientTest.test_source_port_fail
simple_httpclient_test.SimpleHTTPSClientTestCase.test_request_timeout = None
simple_httpclient_test.TLSHandshakeTimeoutTestCase.test_tls_handshake_timeout = None
main()
"""

# It takes it that one of its timers fires before a connection is through: not so on a busy machine.
UV_LEFT_OUT = "shutdown_eof"
LIBUV = "^(fork_|fs_event_|ipc_|pipe_|poll_|signal|spawn_|tty|udp_|thread_)"


@pytest.fixture
def workspace(prepared, tmp_path):
    def staged(name):
        shutil.copytree(prepared / name, tmp_path / "work")
        return tmp_path / "work"
    return staged


def tornado(guest, folder, *modules):
    text = guest.passes("python3", "-B", "-c", RUN_TORNADO, *modules, workspace=folder,
                        options=("--env", "ASYNC_TEST_TIMEOUT=60", "--env", "EMULATION=1"))
    ran = int(re.search(r"Ran (\d+) tests", text)[1])
    assert re.search(r"^OK", text, re.M), text[-4000:]
    return ran


def test_tornado(patient_guest, workspace):
    assert tornado(patient_guest, workspace("python/tornado"), *TORNADO) > 150


@pytest.mark.skipif(not os.environ.get("RESOLUTO_SOAK"), reason="the whole suite runs in check.sh --full")
def test_the_whole_of_tornado(patient_guest, workspace):
    assert tornado(patient_guest, workspace("python/tornado")) > 1000


def test_ptyprocess(patient_guest, workspace):
    text = patient_guest.passes("python3", "-B", "-m", "unittest", "discover", "-s", "tests", "-v",
                        workspace=workspace("python/ptyprocess"))
    assert int(re.search(r"Ran (\d+) tests", text)[1]) > 10 and re.search(r"^OK", text, re.M), text


def libuv(guest, folder, pattern):
    """How many tests that are for Linux went well; each runs in a process of its own, as its authors run it."""
    script = (f"./uv_run_tests --list | grep -E '{pattern}' | grep -vx '{UV_LEFT_OUT}' | "
              "while read -r name _; do ./uv_run_tests $name 2>&1 || true; done")
    text = guest.passes("sh", "-c", script, workspace=folder,
                        options=("--env", "UV_TEST_TIMEOUT_MULTIPLIER=30", "--disk", "1Gi"))
    assert not re.findall(r"^not ok.*", text, re.M), text[-6000:]
    return len(re.findall(r"^ok \d+ - (?!.*SKIP)", text, re.M))


def test_libuv(patient_guest, workspace):
    assert libuv(patient_guest, workspace("libuv"), LIBUV) > 120


@pytest.mark.skipif(not os.environ.get("RESOLUTO_SOAK"), reason="the whole suite runs in check.sh --full")
def test_the_whole_of_libuv(patient_guest, workspace):
    assert libuv(patient_guest, workspace("libuv"), "^[a-z]") > 350
