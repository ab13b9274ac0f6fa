# SPDX-License-Identifier: Apache-2.0
"""What a gateway that its guest, a name server or a web server has taken over can still do: tried by gateway_probe through the
very same lock-down; and what the running one looks like from outside."""
import json
import os
import subprocess

import pytest

from conftest import build_dir
from served import site  # noqa: F401

REFUSED = ["read-passwd", "read-raw", "make-file", "memory-file", "stat", "exec", "fork", "thread", "signal", "ptrace", "root",
           "namespace", "mount", "unix", "socketpair", "netlink", "packet", "raw-socket", "vsock", "mptcp", "sctp", "fastopen", "listen", "other-port",
           "exec-memory", "make-exec", "rewrite-rows", "rewrite-rows-high", "cut-rows", "seek-rows", "unlock-rows", "io_uring", "inotify",
           "bpf", "limit", "dumpable", "sigio", "sigio-high", "sigio-number", "sigio-ioctl", "lease-rows"]
ALLOWED = ["tcp", "udp6", "set-up-socket", "write-rows"]


def probe(rows, *attempts, uid=0, **config):
    text = json.dumps({"schema": 1, "uid": uid, "patterns": ["pypi.org"], "learn": False, "wide": False, "proxy": None,
                       "connect_ms": 1000, "idle_ms": 1000, "handshake_ms": 1000, **config})
    program = build_dir() / "tests/egress/gateway_probe"
    result = subprocess.run(["bash", "-c", f'exec "$@" 4>>{rows}', "bash", program, text, *attempts], capture_output=True,
                            timeout=60)
    assert result.returncode == 0, result.stderr
    return dict(line.split(": ") for line in result.stdout.decode().splitlines())


@pytest.fixture(params=["user", "root"])
def uid(request):
    """65534: root that becomes somebody; 0: whoever runs the tests stays who they are."""
    if request.param == "user" and os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    return 65534 if request.param == "user" else 0


@pytest.mark.parametrize("what", REFUSED)
def test_what_must_fail_fails(tmp_path, uid, what):
    how = probe(tmp_path / "rows", what, uid=uid)[what]
    assert how in ("EPERM", "EACCES"), how


def test_what_it_needs_it_can(tmp_path, uid):
    assert probe(tmp_path / "rows", *ALLOWED, uid=uid) == {what: "ok" for what in ALLOWED}
    assert (tmp_path / "rows").read_text() == "row\n"


def test_only_ports_of_the_policy_are_connected_to(tmp_path, uid):
    # Nobody listens: the attempt gets as far as that, or is stopped before.
    how = probe(tmp_path / "rows", "allowed-port", "other-port", uid=uid)
    assert how == {"allowed-port": "ECONNREFUSED", "other-port": "EACCES"}


def test_memory_has_a_bound(tmp_path, uid):
    assert probe(tmp_path / "rows", "much-memory", uid=uid) == {"much-memory": "ENOMEM"}


def test_the_running_one(site):
    gateway = site.gateway(["pypi.org"])
    status = dict(line.split(":\t", 1) for line in
                  open(f"/proc/{gateway.pid()}/status", encoding="ascii").read().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == {"65534"} and set(status["Gid"].split()) == {"65534"}
    assert not status["Groups"].strip()
    assert (status["NoNewPrivs"], status["Seccomp"], status["Threads"]) == ("1", "2", "1")
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
    limits = open(f"/proc/{gateway.pid()}/limits", encoding="ascii").read()
    for name, value in (("Max core file size", "0"), ("Max processes", "0"), ("Max open files", "2304")):
        assert next(line for line in limits.splitlines() if line.startswith(name)).split()[-3:-1] == [value, value], limits
    kept = sorted(os.readlink(f"/proc/{gateway.pid()}/fd/{fd}").split(":")[0]
                  for fd in os.listdir(f"/proc/{gateway.pid()}/fd"))
    assert kept == sorted(["/dev/null", "/dev/null", str(gateway.errors_path), "socket", str(gateway.rows_path),
                           "anon_inode"]), kept
