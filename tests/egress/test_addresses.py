# SPDX-License-Identifier: Apache-2.0
"""Where a name leads: the gateway resolves it, judges every address, and dials only those it judged."""
import ipaddress
import time

import pytest

from rig import SITE, Tls, client_hello
from served import site  # noqa: F401


@pytest.fixture(scope="module")
def run(site):
    # Something listens there: only the refusal keeps it from being reached.
    site.raw("record", 443, "127.0.0.1")
    return site.gateway(["*.pypi.org", "pypi.org"])


@pytest.fixture(scope="module")
def asked(site):
    return site.odd_names()


def reach(gateway, name, port=443):
    stream = gateway.guest.open(name, port)
    stream.send(client_hello(name))
    gateway.guest.wait(lambda: stream.is_opened or stream.reason, name, 40)
    return stream


@pytest.mark.parametrize("name, address, class_of", [
    ("local.pypi.org", "127.0.0.1", "loopback"), ("metadata.pypi.org", "169.254.169.254", "metadata"),
    ("metadata6.pypi.org", "fd00:ec2::254", "metadata"), ("mapped.pypi.org", "::ffff:10.0.0.1", "private"),
    ("nat64.pypi.org", "64:ff9b::a9fe:a9fe", "metadata"), ("six-to-four.pypi.org", "2002:a9fe:a9fe::1", "metadata"),
    ("teredo.pypi.org", "2001:0:808:808::f5ff:fffe", "private"), ("teredo-server.pypi.org", "2001:0:a00:1::f7f7:f7f7", "private"),
    ("compatible.pypi.org", "::10.0.0.1", "private"), ("shared.pypi.org", "100.64.0.1", "shared"),
    ("multicast.pypi.org", "239.1.2.3", "multicast"), ("multicast6.pypi.org", "ff0e::1", "multicast"),
    ("unique-local.pypi.org", "fd12:3456::1", "unique-local")])
def test_a_name_that_leads_inside_is_refused_and_the_address_named(site, run, name, address, class_of):
    assert reach(run, name).wait_end() == "address-refused"
    row = run.guest.wait_row(name=name)
    assert (row["decision"], row["address"]) == ("refused", "")
    assert address in row["detail"] and class_of in row["detail"]
    assert not (site.folder / "raw-443").read_text().strip()


def test_of_several_only_the_public_one_is_dialled_and_the_others_are_named(site, run):
    stream = run.guest.open("half.pypi.org")
    assert b"site half.pypi.org" in Tls(stream, site.authority.context(), "half.pypi.org").handshake().get("half.pypi.org")
    stream.fin()
    row = run.guest.wait_row(name="half.pypi.org")
    assert row["address"] == SITE and "10.0.0.1" in row["detail"] and "private" in row["detail"]


def test_localhost_is_not_this_host(site):
    gateway = site.gateway(["localhost", "x.localhost"], wide=True)
    for name in ("localhost", "x.localhost"):
        assert reach(gateway, name).wait_end() in ("address-refused", "no-address")


def test_the_table_of_hosts_counts_and_is_judged_too(site):
    site.network.hosts.write_text(f"127.0.0.1 localhost\n{SITE} Pinned.example.org # a comment\n10.1.2.3 inner.example.org\n"
                                  "not-an-address x.example.org\n")
    gateway = site.gateway(["pinned.example.org", "inner.example.org", "x.example.org"])
    site.network.hosts.write_text("127.0.0.1 localhost\n")
    assert reach(gateway, "pinned.example.org").is_opened
    assert reach(gateway, "inner.example.org").wait_end() == "address-refused"
    assert reach(gateway, "x.example.org").wait_end() == "no-address"


# Where an answer leads at every second question, what class that is, and where it would arrive if it were dialled.
CHANGED = [("127.0.0.1", "loopback", "127.0.0.1"), ("169.254.169.254", "metadata", "169.254.169.254"),
           ("fd00:ec2::254", "metadata", "fd00:ec2::254"), ("::ffff:10.0.0.1", "private", "10.0.0.1"),
           ("64:ff9b::a9fe:a9fe", "metadata", "64:ff9b::a9fe:a9fe")]


@pytest.mark.parametrize("number, address, class_of, there", [(i, *row) for i, row in enumerate(CHANGED)])
def test_an_answer_that_changes_is_judged_each_time(site, asked, number, address, class_of, there):
    """Public at the first question, inside at the second: what was judged is what is dialled."""
    port, name = 7210 + number, f"rebind.{ipaddress.ip_address(address).packed.hex()}.example.org"
    if there != "127.0.0.1":  # somebody answers there: only the refusal keeps him from being reached
        site.network.run("ip", "address", "replace", f"{there}/{128 if ':' in there else 32}", "dev", "lo",
                         *(["nodad"] if ":" in there else []))
    record = site.raw("record", port, there)
    with site.names_from("127.0.0.53"):
        gateway = site.gateway([f"{name}:{port}"])
    site.raw("echo", port)
    ends = []
    for _ in range(6):
        stream = reach(gateway, name, port)
        ends.append(stream.reason or "opened")
        if stream.is_opened:
            assert stream.wait_data(10)
            stream.reset()
    assert ends == ["opened", "address-refused"] * 3
    rows = gateway.end()[1:-1]
    assert {r["address"] for r in rows} == {SITE, ""}
    assert all(address in r["detail"] and class_of in r["detail"] for r in rows if r["reason"] == "address-refused")
    assert not record.read_text().strip()


@pytest.mark.parametrize("label, reason", [("fail", "resolver"), ("refuse", "resolver"), ("none", "no-address"),
                                           ("loop", "no-address"), ("garbage", "resolver")])
def test_a_name_server_that_says_something_odd(site, asked, label, reason):
    with site.names_from("127.0.0.53"):
        gateway = site.gateway([f"{label}.example.org"], connect_ms=1500)
    began = time.monotonic()
    assert reach(gateway, f"{label}.example.org").wait_end() == reason
    assert time.monotonic() - began < 10
    assert gateway.guest.wait_row(reason=reason)["decision"] == "failed"


def test_a_resolver_that_hangs_costs_the_limit_and_no_other_stream(site, asked):
    with site.names_from("127.0.0.53"):
        gateway = site.gateway(["hang.example.org", "good.example.org"], connect_ms=4000)
    began = time.monotonic()
    waiting = [gateway.guest.open("hang.example.org") for _ in range(20)]
    for stream in waiting:
        stream.send(client_hello("hang.example.org"))
    assert reach(gateway, "good.example.org").is_opened
    assert time.monotonic() - began < 3
    assert {stream.wait_end() for stream in waiting} == {"resolver"}
    assert 3.9 < time.monotonic() - began < 9
    # One question for all of them, asked again once or twice.
    assert asked.read_text().splitlines().count("hang.example.org 1") <= 3


def test_an_answer_with_many_addresses_over_tcp(site, asked):
    with site.names_from("127.0.0.53"):
        gateway = site.gateway(["cut.example.org:7202"], connect_ms=3000)
    began = time.monotonic()
    assert reach(gateway, "cut.example.org", 7202).wait_end() in ("connect-failed", "connect-timeout")
    row = gateway.guest.wait_row(port=7202)
    assert "24 addresses more" in row["detail"]
    assert time.monotonic() - began < 10


def test_a_name_server_that_is_not_there(site):
    with site.names_from("127.0.0.99"):
        gateway = site.gateway(["good.example.org"], connect_ms=2000)
    assert reach(gateway, "good.example.org").wait_end() == "resolver"


def test_a_second_name_server_helps(site, asked):
    with site.names_from("127.0.0.99", "127.0.0.53"):
        gateway = site.gateway(["good.example.org"], connect_ms=8000)
    assert reach(gateway, "good.example.org").is_opened


def test_names_off_the_list_are_never_asked_for(site, asked):
    with site.names_from("127.0.0.53"):
        gateway = site.gateway(["good.example.org"])
    for label in ("secret" * 10, "x" * 63):
        assert gateway.guest.open(f"{label}.evil.example.org").wait_end() == "not-allowed"
        gateway.guest.ask(f"{label}.evil.example.org")
    stream = gateway.guest.open("good.example.org")
    stream.send(client_hello("stolen.good.example.org"))
    assert stream.wait_end() == "sni-other"
    gateway.end()
    assert "evil" not in asked.read_text() and "stolen" not in asked.read_text()


def test_the_slow_family_does_not_hold_up_the_other(site):
    """IPv6 is silent (the packets go nowhere), IPv4 answers: some 250 ms later it is connected."""
    site.network.run("ip", "link", "add", "hole", "type", "veth", "peer", "name", "hole2")
    for device in ("hole", "hole2"):
        site.network.run("ip", "link", "set", device, "up")
    site.network.run("ip", "-6", "address", "add", "2a04:4e42:99::1/64", "dev", "hole", "nodad")
    site.network.run("ip", "-6", "neigh", "add", "2a04:4e42:99::2", "lladdr", "02:00:00:00:00:99", "dev", "hole")
    site.network.hosts.write_text(f"2a04:4e42:99::2 slow.example.org\n{SITE} slow.example.org\n2a04:4e42:99::2 gone.example.org\n")
    gateway = site.gateway(["slow.example.org", "gone.example.org"], connect_ms=4000)
    site.network.hosts.write_text("127.0.0.1 localhost\n")
    began = time.monotonic()
    assert reach(gateway, "slow.example.org").is_opened
    assert 0.2 < time.monotonic() - began < 3
    began = time.monotonic()
    assert reach(gateway, "gone.example.org").wait_end() == "connect-timeout"
    assert 3.9 < time.monotonic() - began < 9


