# SPDX-License-Identifier: Apache-2.0
"""`resoluto-gateway --redirect`: a bridge whose containers reach the network only by names that are allowed; between network
namespaces of the test's own, IPv4 and IPv6, with the real nftables."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import pytest

from conftest import build_dir, wait_until
from rig import OTHER, SITE, SITE6, Network, client_hello, have
from served import HERE, site  # noqa: F401

BRIDGE, BRIDGE6, CONTAINER, CONTAINER6 = "10.222.0.1", "fd00:222::1", "10.222.0.2", "fd00:222::2"


class Container(Network):
    """Another namespace; its only way leads over the bridge of the site's."""

    def __init__(self, site, folder):
        super().__init__(folder, addresses=())
        self.site = site
        self.resolv.write_text(f"nameserver {BRIDGE}\noptions timeout:2 attempts:1\n")
        host = site.network
        for line in ("link add br0 type bridge", "link set br0 up", f"address add {BRIDGE}/24 dev br0",
                     f"-6 address add {BRIDGE6}/64 dev br0 nodad", "link add veth0 type veth peer name eth0",
                     "link set veth0 master br0", "link set veth0 up", f"link set eth0 netns {self.holder.pid}"):
            host.run("ip", *line.split())
        for line in ("link set eth0 up", f"address add {CONTAINER}/24 dev eth0", f"-6 address add {CONTAINER6}/64 dev eth0 nodad",
                     f"route add default via {BRIDGE}", f"-6 route add default via {BRIDGE6}"):
            self.run("ip", *line.split())
        for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            host.run("sysctl", "-qw", f"{name}=1")

    def python(self, text, *arguments):
        result = self.run("python3", "-c", text, *arguments, check=False)
        return result.stdout.decode().strip() or result.stderr.decode().strip()

    def get(self, name, family="4", port=443):
        """urllib's and ssl's own idea of the web, by the container's resolver."""
        return self.python(
            "import socket, ssl, sys, urllib.request as u\n"
            "name, family, port, ca = sys.argv[1:]\n"
            "real = socket.getaddrinfo\n"
            "want = socket.AF_INET if family == '4' else socket.AF_INET6\n"
            "socket.getaddrinfo = lambda h, p, f=0, *a, **k: real(h, p, want, *a, **k)\n"
            "scheme = 'http' if port == '80' else 'https'\n"
            "context = ssl.create_default_context(cafile=ca)\n"
            "print(u.urlopen(f'{scheme}://{name}:{port}/', timeout=5, context=context).read().decode())",
            name, family, str(port), str(self.site.authority.folder / "ca.pem"))

    def resolve(self, name, kind="A", tcp=False, server=BRIDGE):
        """What the responder says: a list of addresses, or the code."""
        return self.python((HERE / "ask_dns.py").read_text(), name, kind, "tcp" if tcp else "udp", server)

    def connect(self, address, port, kind="tcp"):
        return self.python(
            "import socket, sys\n"
            "address, port = sys.argv[1], int(sys.argv[2])\n"
            "try:\n"
            "    s = socket.create_connection((address, port), 3)\n"
            "    s.sendall(b'x')\n"
            "    print('open' if s.recv(1) else 'closed')\n"
            "except OSError as e:\n"
            "    print(type(e).__name__)", address, str(port))


class Redirect:
    def __init__(self, site, folder, patterns, run="r1", nft=None, **config):
        self.site, self.folder, self.nft = site, folder, nft
        self.rows_path = folder / "egress.jsonl"
        self.config = {"schema": 1, "uid": 65534, "patterns": patterns, "learn": False, "wide": False, "proxy": None,
                       "connect_ms": 3000, "idle_ms": 60000, "handshake_ms": 2000,
                       "redirect": {"run": run, "interface": "br0", "v4": BRIDGE, "v6": BRIDGE6, "port": 3129,
                                    "names_port": 3130}, **config}
        (folder / "gateway.json").write_text(json.dumps(self.config))
        self.life, theirs = socket.socketpair()
        self.process = self.start("--redirect", theirs.fileno())
        theirs.close()
        self.life.settimeout(20)
        self.ready = self.life.recv(1)

    def start(self, mode, fd):
        script = f'exec "$@" 3<&{fd} {fd}<&- 4>>{self.rows_path} 5<{self.folder / "gateway.json"}'
        program = [build_dir() / "src/gateway/resoluto-gateway", mode]
        if self.nft:
            program = ["unshare", "--mount", "sh", "-ec", f'mount --bind {self.nft} "$(command -v nft)"; exec "$@"', "sh", *program]
        argv = self.site.network.argv(*program)
        child = subprocess.Popen(["bash", "-c", script, "bash", *argv], pass_fds=[fd], stdin=subprocess.DEVNULL,
                                 stderr=open(self.folder / "stderr", "wb"))
        self.site.network.children.append(child)
        return child

    def child(self):
        return int(self.site.network.run("pgrep", "-P", self.process.pid).stdout)

    def rows(self):
        return [json.loads(line) for line in self.rows_path.read_bytes().splitlines()]

    def wait_row(self, **wanted):
        return wait_until(lambda: next((r for r in self.rows() if all(r.get(k) == v for k, v in wanted.items())), None),
                          f"a row with {wanted}", 20)

    def end(self):
        self.life.close()
        assert self.process.wait(20) == 0, (self.folder / "stderr").read_text()
        return self.rows()


def holders(path):
    """Who has it open: ours, whatever else of the kind runs on this machine."""
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(path):
                found.append(link.parts[2])
    return found


def tables(site):
    return site.network.run("nft", "list", "tables").stdout.decode().split("\n")


@pytest.fixture(scope="module")
def container(site, tmp_path_factory):
    have("nft", "ip")
    made = Container(site, tmp_path_factory.mktemp("container"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def redirect(site, container, tmp_path_factory):
    made = Redirect(site, tmp_path_factory.mktemp("redirect"), ["pypi.org", "*.pypi.org:8443", "http://pypi.org", "half.pypi.org",
                                                               "local.pypi.org"])
    assert made.ready == b"r", (made.folder / "stderr").read_text()
    yield made
    if made.process.poll() is None:
        made.end()


@pytest.mark.parametrize("family", ["4", "6"])
def test_an_allowed_name_is_reached(site, container, redirect, family):
    assert container.get("pypi.org", family) == "site pypi.org pypi.org"
    assert container.get("files.pypi.org", family, 8443) == "site files.pypi.org files.pypi.org"
    assert container.get("pypi.org", family, 80).startswith("site pypi.org")
    row = redirect.wait_row(name="files.pypi.org")
    assert (row["sni"], row["port"], row["decision"], row["reason"], row["address"]) == (
        "files.pypi.org", 8443, "allowed", "none", SITE)


def test_other_names_do_not_exist(container, redirect):
    for name in ("example.org", "www.evil.pypi.org.example.org", "localhost", "nowhere"):
        assert container.resolve(name) == "NXDOMAIN"
        assert container.resolve(name, tcp=True) == "NXDOMAIN"
    for kind in ("HTTPS", "SVCB", "ANY", "PTR", "TXT", "MX"):
        assert container.resolve("pypi.org", kind) == "NXDOMAIN"
    assert redirect.wait_row(name="example.org", protocol="dns")["reason"] == "not-allowed"


def test_allowed_ones_have_made_up_addresses_that_stay(container, redirect):
    first = container.resolve("pypi.org")
    assert first.startswith("198.18.") and container.resolve("PyPI.org") == first
    assert container.resolve("pypi.org", "AAAA").startswith("2001:2:")
    assert container.resolve("half.pypi.org") not in ("NXDOMAIN", first)


def test_another_name_server_is_not_reached_either(container, redirect):
    """Whoever is asked, we answer."""
    assert container.resolve("example.org", server="8.8.8.8") == "NXDOMAIN"
    assert container.resolve("pypi.org", server=SITE6).startswith("198.18.")


@pytest.mark.parametrize("address", [SITE, OTHER, SITE6, "198.18.77.7", "2001:2::7777", BRIDGE, BRIDGE6])
def test_nothing_is_reached_by_number(site, container, redirect, address):
    before = site.accesses()
    assert container.connect(address, 443) in ("closed", "ConnectionResetError")
    assert redirect.wait_row(name=address)["reason"] == "name-address"
    assert site.accesses() == before


@pytest.mark.parametrize("address, port", [(SITE, 22), (SITE, 7999), (OTHER, 8444), (BRIDGE, 22), (BRIDGE, 3129), (BRIDGE, 3130),
                                           (SITE6, 22), (BRIDGE6, 22)])
def test_other_ports_are_closed(site, container, redirect, address, port):
    if port == 22 and address in (SITE, BRIDGE):
        site.raw("echo", 22, address)
    assert container.connect(address, port) in ("ConnectionRefusedError", "ConnectionResetError", "closed")


def test_quic_and_ping_get_nowhere(container, redirect):
    how = container.python(
        "import socket\n"
        f"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(('{SITE}', 443)); s.send(b'x' * 1200)\n"
        "try:\n"
        "    s.recv(1); print('open')\n"
        "except OSError as e:\n"
        "    print(type(e).__name__)")
    assert how == "ConnectionRefusedError"


def test_the_sni_must_be_the_name_that_was_asked_for(site, container, redirect):
    address = container.resolve("pypi.org")
    how = container.python(
        "import socket, sys\n"
        "s = socket.create_connection((sys.argv[1], 443), 5); s.sendall(bytes.fromhex(sys.argv[2]))\n"
        "try:\n"
        "    print(s.recv(1))\n"
        "except OSError as e:\n"
        "    print(type(e).__name__)", address, client_hello("other.example.org").hex())
    assert how == "ConnectionResetError"
    row = redirect.wait_row(reason="sni-other")
    assert (row["name"], row["sni"]) == ("pypi.org", "other.example.org")


def test_a_name_that_leads_inside(site, container, redirect):
    address = container.resolve("local.pypi.org")
    assert address.startswith("198.18.")
    container.get("local.pypi.org")
    assert redirect.wait_row(reason="address-refused")["name"] == "local.pypi.org"


def test_a_large_transfer(site, container, redirect):
    (site.folder / "files" / "large").write_bytes(os.urandom(1 << 20) * 20)
    got = container.python(
        "import hashlib, ssl, sys, urllib.request as u\n"
        "c = ssl.create_default_context(cafile=sys.argv[1])\n"
        "print(hashlib.sha256(u.urlopen('https://pypi.org/files/large', timeout=20, context=c).read()).hexdigest())",
        str(site.authority.folder / "ca.pem"))
    want = subprocess.run(["sha256sum", site.folder / "files" / "large"], capture_output=True, check=True).stdout.split()[0]
    assert got == want.decode()


def test_a_reader_that_was_slow_costs_nothing_afterwards(site, container, redirect):
    """There is room again, and that is no news for ever."""
    (site.folder / "files" / "large").write_bytes(os.urandom(1 << 20) * 20)
    pid = redirect.child()

    def ticks():
        user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return int(user) + int(system)

    read, got = redirect.folder / "read", []
    reader = threading.Thread(target=lambda: got.append(container.python(
        "import http.client, ssl, sys, time\n"
        "c = http.client.HTTPSConnection('pypi.org', timeout=20, context=ssl.create_default_context(cafile=sys.argv[1]))\n"
        "c.request('GET', '/files/large')\n"
        "answer = c.getresponse()\n"
        "n = len(answer.read(1 << 20))\n"
        "time.sleep(1)\n"
        "print(n + len(answer.read()))\n"
        "open(sys.argv[2], 'w').close()\n"
        "time.sleep(3)\n", str(site.authority.folder / "ca.pem"), str(read))))
    reader.start()
    wait_until(read.exists, "all to be read", 30)
    time.sleep(0.3)
    before = ticks()
    time.sleep(1)
    assert ticks() - before < 20  # hundredths of that second
    reader.join()
    assert got == [str(20 << 20)]


def test_many_at_once(site, container, redirect):
    address = container.resolve("pypi.org")
    how = container.python(
        "import socket, sys\n"
        "hello = bytes.fromhex(sys.argv[2])\n"
        "all = [socket.create_connection((sys.argv[1], 443), 10) for _ in range(300)]\n"
        "for s in all: s.sendall(hello)\n"
        "print(sum(1 for s in all if s.recv(5)[:1] == b'\\x16'))", address, client_hello("pypi.org").hex())
    assert how == "300"


def test_the_gateway_is_locked_down_and_its_keeper_reads_nothing(site, redirect):
    status = open(f"/proc/{redirect.child()}/status", encoding="ascii").read()
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
    assert "Uid:\t65534" in status
    keeper = {os.readlink(f"/proc/{redirect.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{redirect.process.pid}/fd")}
    assert str(redirect.rows_path) not in keeper


def test_the_rules_are_there_and_go_with_the_run(site, container, redirect):
    assert "table inet resoluto_r1" in tables(site)
    rows = redirect.end()
    assert rows[0] == {"gateway": "started"} and rows[-1]["gateway"] == "ended"
    assert "table inet resoluto_r1" not in tables(site)


def test_a_gateway_that_dies_leaves_the_door_closed(site, container, tmp_path):
    gateway = Redirect(site, tmp_path, ["pypi.org"], run="r2")
    assert container.get("pypi.org") == "site pypi.org pypi.org"
    address = container.resolve("pypi.org")
    os.kill(gateway.child(), 9)
    wait_until(lambda: container.connect(address, 443) == "ConnectionRefusedError", "the port to be closed", 20)
    assert container.connect(SITE, 443) == "ConnectionRefusedError"
    assert "table inet resoluto_r2" in tables(site)
    rows = gateway.end()
    assert rows[-1].get("gateway") != "ended"
    assert "table inet resoluto_r2" not in tables(site)


def test_a_keeper_that_dies_leaves_the_door_closed_and_the_next_one_replaces_it(site, container, tmp_path):
    first = Redirect(site, tmp_path, ["pypi.org"], run="r3")
    child = first.child()
    first.process.kill()
    first.process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{child}") or "Z" in open(f"/proc/{child}/stat").read().rsplit(")")[1][:3],
               "the gateway to end", 20)
    assert container.connect(SITE, 443) == "ConnectionRefusedError"
    assert "table inet resoluto_r3" in tables(site)
    second = Redirect(site, tmp_path, ["pypi.org"], run="r3")
    assert container.get("pypi.org") == "site pypi.org pypi.org"
    second.process.kill()
    second.process.wait()
    # Or it is swept.
    assert "table inet resoluto_r3" in tables(site)
    with open(os.devnull, "rb") as nothing:
        assert second.start("--redirect-sweep", nothing.fileno()).wait(20) == 0
    assert "table inet resoluto_r3" not in tables(site)


def test_a_bridge_that_is_not_there_is_no_gateway(site, container, tmp_path):
    config = {"redirect": {"run": "r4", "interface": "br0", "v4": "10.9.9.9", "v6": None, "port": 3129, "names_port": 3130}}
    gateway = Redirect(site, tmp_path, ["pypi.org"], **config)
    assert gateway.ready == b"" and gateway.process.wait(20) == 125
    assert "listen on the bridge" in (tmp_path / "stderr").read_text()
    assert "table inet resoluto_r4" not in tables(site)


def test_rules_that_cannot_be_set_are_none_at_all(site, container, tmp_path):
    """nft fails: no table, no gateway, and its words."""
    nft = tmp_path / "nft"
    nft.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    nft.chmod(0o755)
    gateway = Redirect(site, tmp_path, ["pypi.org"], run="r5", nft=nft)
    assert gateway.ready == b"" and gateway.process.wait(20) == 125
    assert "no such luck" in (tmp_path / "stderr").read_text()
    assert "table inet resoluto_r5" not in tables(site)
    # Its child wrote what there was to write, and is gone.
    assert [r["gateway"] for r in gateway.rows()] == ["started", "ended"]
    assert not holders(gateway.rows_path)
