# SPDX-License-Identifier: Apache-2.0
"""Floods, the slow, and the stalled: what one stream does costs no other anything, and all of it has a bound."""
import struct
import time

from rig import DATA, OPEN, RST, WINDOW, Tls, client_hello, frame
from served import site  # noqa: F401


def hello(name="raw.pypi.org"):
    return client_hello(name)


def memory_kib(gateway, kind="Pss"):
    pid = gateway.pid()
    for line in gateway.network.run("cat", f"/proc/{pid}/smaps_rollup").stdout.decode().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1])
    raise AssertionError("no figure")


def test_an_idle_connection_ends(site):
    site.raw("echo", 7301)
    gateway = site.gateway(["raw.pypi.org:7301"], idle_ms=2000)
    stream = gateway.guest.open("raw.pypi.org", 7301)
    began = time.monotonic()
    stream.send(hello())
    for _ in range(3):  # bytes keep it alive
        time.sleep(1.2)
        stream.send(b"\x17\x03\x03\x00\x01x")
    assert stream.wait_end() == "idle"
    assert 5.5 < time.monotonic() - began < 15
    row = gateway.guest.wait_row(reason="idle")
    assert row["decision"] == "allowed" and row["bytes_up"] == row["bytes_down"] == len(stream.data)


def test_a_stalled_stream_stops_no_other(site):
    """The guest takes nothing of a flood, a server takes nothing of what it is sent; a third stream is quick."""
    site.raw("flood", 7302)
    site.raw("deaf", 7303)
    site.raw("echo", 7304)
    gateway = site.gateway(["raw.pypi.org:7302", "raw.pypi.org:7303", "raw.pypi.org:7304"])
    stalled = gateway.guest.open("raw.pypi.org", 7302)
    stalled.gives_credit = False
    stalled.send(hello())
    gateway.guest.wait(lambda: len(stalled.data) == WINDOW, "a full window")
    deaf = gateway.guest.open("raw.pypi.org", 7303)
    deaf.send(hello())
    deaf.wait_opened()
    end = time.monotonic() + 20
    while deaf.room and time.monotonic() < end:  # until sockets and window are full
        part = b"\x17\x03\x03\x40\x00" + bytes(16384)
        deaf.send(part[:min(len(part), deaf.room)])
        gateway.guest.read()
    quick = gateway.guest.open("raw.pypi.org", 7304)
    first = hello()
    quick.send(first)
    quick.wait_data(len(first))
    times = []
    for i in range(1, 50):
        began = time.monotonic()
        quick.send(b"\x17\x03\x03\x00\x01x")
        quick.wait_data(len(first) + 6 * i)
        times.append(time.monotonic() - began)
    assert sorted(times)[25] < 0.5, times
    assert len(stalled.data) == WINDOW and not stalled.reason and not deaf.reason
    assert memory_kib(gateway) < 16 * 1024


def test_streams_that_waited_for_the_port_go_on(site):
    """The guest reads nothing for a moment: the port fills with what the first ones brought, and the others have nothing on
    their way that would wake them."""
    site.raw("big", 7308)
    gateway = site.gateway(["raw.pypi.org:7308"])
    streams = [gateway.guest.open("raw.pypi.org", 7308) for _ in range(8)]
    first = hello()
    gateway.guest.write(b"".join(frame(DATA, stream.number, first) for stream in streams))
    time.sleep(1.5)
    assert {stream.wait_end(60) for stream in streams} == {"fin"}
    assert {len(stream.data) for stream in streams} == {8 << 20}


def test_as_many_streams_as_may_be_and_one_more(site):
    site.raw("echo", 7305)
    gateway = site.gateway(["raw.pypi.org:7305"], connect_ms=20000, handshake_ms=60000)
    first = hello()
    streams = [gateway.guest.open("raw.pypi.org", 7305) for _ in range(1024)]
    assert gateway.guest.open("raw.pypi.org", 7305).wait_end() == "too-many"
    row = gateway.guest.wait_row(reason="too-many")
    assert (row["name"], row["port"], row["decision"]) == ("raw.pypi.org", 7305, "refused")
    for stream in streams:
        stream.send(first)
    for stream in streams:
        stream.wait_data(len(first), 60)
    for stream in streams[:10]:
        stream.reset()
    again = gateway.guest.open("raw.pypi.org", 7305)
    again.send(first)
    assert again.wait_data(len(first))


def test_a_flood_of_openings_that_are_given_up(site):
    """Ten thousand, most of them gone before they are anything."""
    gateway = site.gateway(["*.pypi.org"])
    guest = gateway.guest
    for _ in range(100):
        parts = []
        for _ in range(100):
            guest.last += 1
            parts.append(frame(OPEN, guest.last, b"\xbb\x01www%d.pypi.org" % guest.last))
            parts.append(frame(DATA, guest.last, b"\x16\x03\x01\x02\x00"))
            parts.append(frame(RST, guest.last, struct.pack("<I", 0) + b"x"))
        guest.write(b"".join(parts))
    stream = guest.open("pypi.org")
    assert stream.wait_end() == "not-allowed"
    assert memory_kib(gateway) < 8 * 1024
    assert gateway.end()[-1]["rows_dropped"] == 2001


def test_a_guest_that_never_reads_is_not_waited_for_in_memory(site):
    """Answers pile up: the gateway stops reading instead of keeping them."""
    gateway = site.gateway(["pypi.org"])
    port = gateway.guest.port
    gateway.guest.write(b"")
    sent, number = 0, 0
    end = time.monotonic() + 20
    quiet = 0
    while time.monotonic() < end and quiet < 20:
        number += 1
        try:
            port.send(frame(OPEN, number, b"\xbb\x01n%d.example.org" % number))
            sent, quiet = sent + 1, 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.05)
    assert memory_kib(gateway) < 12 * 1024
    assert gateway.process.poll() is None, gateway.errors()


def test_bytes_that_wait_have_a_bound_in_all(site):
    """A thousand streams to a server that reads nothing: the bound resets those over it, and the process lives."""
    site.raw("deaf", 7306)
    site.raw("echo", 7307)
    gateway = site.gateway(["raw.pypi.org:7306", "raw.pypi.org:7307"], connect_ms=20000, handshake_ms=60000)
    first = hello()
    filler = first + b"\x17\x03\x03\x40\x00" + bytes(16384)
    streams = [gateway.guest.open("raw.pypi.org", 7306) for _ in range(600)]
    for stream in streams:
        stream.send(filler)
    record = b"\x17\x03\x03\x40\x00" + bytes(16384)
    for _ in range(400):
        if any(stream.reason for stream in streams):
            break
        for stream in streams:
            if not stream.reason and stream.room >= len(record):
                stream.send(record)
    assert {stream.reason for stream in streams} <= {None, "too-many"}
    assert any(stream.reason == "too-many" for stream in streams), "the bound was never reached"
    assert memory_kib(gateway, "Rss") < 200 * 1024
    # The bound may be reached to the byte: some make room, and another one is served.
    for stream in [stream for stream in streams if not stream.reason][:10]:
        stream.reset()
    quick = gateway.guest.open("raw.pypi.org", 7307)
    quick.send(first)
    assert quick.wait_data(len(first)) == first


def test_five_hundred_idle_connections_are_small(site):
    """The figure of bench/gateway_memory.sh, as a test: real TLS connections, kept."""
    gateway = site.gateway(["pypi.org"], connect_ms=20000, handshake_ms=60000)
    context = site.authority.context()
    kept = [Tls(gateway.guest.open("pypi.org"), context, "pypi.org").handshake() for _ in range(500)]
    assert memory_kib(gateway) <= 8 * 1024
    assert all(tls.stream.reason is None for tls in kept)
    assert b"site pypi.org" in kept[250].get("pypi.org")


def test_the_slow_loris(site):
    """Many hellos a byte at a time: each ends at its limit, and others are served meanwhile."""
    gateway = site.gateway(["pypi.org"], handshake_ms=2000)
    first = client_hello("pypi.org")
    slow = [gateway.guest.open("pypi.org") for _ in range(300)]
    began = time.monotonic()
    for i in range(4):
        for stream in slow:
            stream.send(first[i:i + 1])
        time.sleep(0.2)
    quick = Tls(gateway.guest.open("pypi.org"), site.authority.context(), "pypi.org").handshake()
    assert b"site pypi.org" in quick.get("pypi.org")
    assert {stream.wait_end() for stream in slow} == {"hello-timeout"}
    assert time.monotonic() - began < 15


def test_a_peer_that_never_answers_costs_the_connect_limit_and_no_other_stream(site):
    """Its packets are dropped, so no SYN is ever answered: not a refusal, and nothing that the kernel would end soon."""
    site.network.run("nft", "add table inet silent; add chain inet silent in { type filter hook input priority 0; }; "
                            "add rule inet silent in tcp dport 7309 drop")
    gateway = site.gateway(["raw.pypi.org:7309", "pypi.org"], connect_ms=1500)
    silent = [gateway.guest.open("raw.pypi.org", 7309) for _ in range(20)]
    began = time.monotonic()
    for stream in silent:
        stream.send(hello())
    quick = Tls(gateway.guest.open("pypi.org"), site.authority.context(), "pypi.org").handshake()
    assert b"site pypi.org" in quick.get("pypi.org")
    assert {stream.wait_end() for stream in silent} == {"connect-timeout"}
    assert 1.4 < time.monotonic() - began < 10
    assert not any(stream.is_opened for stream in silent)
    site.network.run("nft", "delete table inet silent")
    row = gateway.guest.wait_row(reason="connect-timeout")
    assert (row["decision"], row["address"], row["bytes_up"], row["bytes_down"]) == ("failed", "", 0, 0)
    assert row["duration_ms"] >= 1400
