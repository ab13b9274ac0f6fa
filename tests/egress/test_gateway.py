# SPDX-License-Identifier: Apache-2.0
"""What the gateway lets through and what it writes down, with real servers and a guest that keeps no rule."""
import struct
import time

import pytest

from conftest import build_dir
from rig import ASKED, CREDIT, DATA, FIN, HELLO, OPEN, OPENED, RST, SITE, SITE6, Tls, client_hello, frame
from served import site  # noqa: F401


@pytest.fixture
def run(site):
    """A gateway with the usual patterns."""
    return site.gateway(["pypi.org", "*.pypi.org", "http://pypi.org", "*.pypi.org:8443", "*.pypi.org:7001"])


def get(site, gateway, name, port=443):
    return Tls(gateway.guest.open(name, port), site.authority.context(), name).handshake().get(name)


def test_an_allowed_name_is_reached_by_tls(site, run):
    assert b"site pypi.org pypi.org\n" in get(site, run, "pypi.org")
    assert b"site files.pypi.org files.pypi.org\n" in get(site, run, "files.pypi.org")
    assert b"site files.pypi.org files.pypi.org\n" in get(site, run, "files.pypi.org", 8443)


def test_a_name_that_has_only_ipv6_is_reached(site, run):
    assert b"site six.pypi.org" in get(site, run, "six.pypi.org")
    rows = run.end()
    assert [row["address"] for row in rows[1:-1]] == [SITE6]


def test_a_row_says_it_all_and_the_guest_is_told_the_same(site, run):
    stream = run.guest.open("PyPI.org.")
    Tls(stream, site.authority.context(), "pypi.org").handshake().get("pypi.org")
    stream.fin()
    row = run.guest.wait_row(name="PyPI.org.")
    rows = run.end()
    assert rows == [{"gateway": "started"}, row, {"gateway": "ended", "up": row["bytes_up"], "down": row["bytes_down"],
                                                  "rows_dropped": 0}]
    assert row == {"name": "PyPI.org.", "sni": "pypi.org", "port": 443, "protocol": "tls", "decision": "allowed",
                   "reason": "none", "address": row["address"], "bytes_up": row["bytes_up"],
                   "bytes_down": len(stream.data), "duration_ms": row["duration_ms"], "detail": ""}
    assert row["address"] in (SITE, SITE6) and row["bytes_up"] > 100


@pytest.mark.parametrize("name, port, reason", [
    ("example.org", 443, "not-allowed"), ("pypi.org", 8443, "port-not-allowed"), ("pypi.org", 22, "port-not-allowed"),
    ("a.b.pypi.org.evil.org", 443, "not-allowed"), ("xpypi.org", 443, "not-allowed"), ("pypi.org\0.evil", 443, "name-malformed"),
    ("pypi.org/", 443, "name-malformed"), ("pypi_org", 443, "name-malformed"), ("münchen.pypi.org", 443, "name-malformed"),
    ("151.101.0.223", 443, "name-address"), ("0x7f000001", 443, "name-address"), ("[::1]", 443, "name-address"),
    (".", 443, "name-malformed"), ("a" * 64 + ".pypi.org", 443, "name-malformed"), ("a." * 127 + "a", 443, "name-malformed"),
    ("pypi.org..", 443, "name-malformed")])
def test_what_is_not_allowed_is_refused_at_once(site, run, name, port, reason):
    stream = run.guest.open(name, port)
    assert stream.wait_end() == reason
    row = run.guest.wait_row(decision="refused")
    assert (row["reason"], row["port"], row["address"]) == (reason, port, "")


def test_without_patterns_nothing_is_reached(site):
    gateway = site.gateway([])
    for name in ("pypi.org", "localhost", "a"):
        assert gateway.guest.open(name).wait_end() == "not-allowed"


def test_the_name_of_another_server_does_not_lead_there(site, run):
    """The server that was not allowed has a certificate for the name: it must not be asked."""
    stream = run.guest.open("pypi.org")
    stream.send(client_hello("other.example.org"))
    assert stream.wait_end() == "sni-other"
    row = run.guest.wait_row(reason="sni-other")
    assert (row["name"], row["sni"], row["address"], row["decision"]) == ("pypi.org", "other.example.org", "", "refused")
    assert run.guest.open("other.example.org").wait_end() == "not-allowed"


def test_three_hundred_patterns(site):
    gateway = site.gateway([f"host{i}.example.org" for i in range(299)] + ["pypi.org"])
    assert b"site pypi.org" in get(site, gateway, "pypi.org")
    assert gateway.guest.open("host299.example.org").wait_end() == "not-allowed"
    stream = gateway.guest.open("host298.example.org")
    stream.send(client_hello("host298.example.org"))
    assert stream.wait_end() == "no-address"


def test_a_name_that_does_not_resolve_is_a_row(site, run):
    stream = run.guest.open("nowhere.pypi.org")
    stream.send(client_hello("nowhere.pypi.org"))
    assert stream.wait_end() == "no-address"
    assert run.guest.wait_row(reason="no-address")["decision"] == "failed"


def test_a_port_where_nobody_listens(site, run):
    stream = run.guest.open("raw.pypi.org", 7001)
    stream.send(client_hello("raw.pypi.org"))
    assert stream.wait_end() == "connect-failed"
    assert SITE in run.guest.wait_row(decision="failed")["detail"]


def test_asked_names_are_written_down_once(site, run):
    for _ in range(3):
        for name in ("evil.example.org", "pypi.org", "Evil.example.org", b"a\x00\xffb\"\n", "1.2.3.4"):
            run.guest.ask(name)
    run.guest.wait_row(name="1.2.3.4")
    rows = [(row["name"], row["protocol"], row["port"], row["decision"], row["reason"]) for row in run.end()[1:-1]]
    assert rows == [("evil.example.org", "dns", 0, "refused", "not-allowed"), ("pypi.org", "dns", 0, "allowed", "none"),
                    ("Evil.example.org", "dns", 0, "refused", "not-allowed"),
                    (rows[3][0], "dns", 0, "refused", "name-malformed"), ("1.2.3.4", "dns", 0, "refused", "name-address")]
    assert all(" " <= c < "\x7f" for c in rows[3][0])


def test_more_rows_than_fit_are_counted_and_hide_no_connection(site, run):
    for i in range(8050):
        run.guest.ask(f"n{i}.example.org")
    assert run.guest.open("example.net").wait_end() == "not-allowed"
    stream = run.guest.open("pypi.org")
    Tls(stream, site.authority.context(), "pypi.org").handshake().get("pypi.org")
    stream.fin()
    run.guest.wait_row(name="pypi.org")
    rows = run.end()
    assert len(rows) == 8003 and rows[-1]["rows_dropped"] == 51


def test_learning_writes_down_and_connects_nothing(site):
    gateway = site.gateway(["pypi.org"], learn=True)
    before = site.accesses()
    for name, first in (("pypi.org", client_hello("pypi.org")), ("any.example.net", client_hello("any.example.net")),
                        ("plain.example.net", b"GET / HTTP/1.1\r\nHost: plain.example.net\r\n\r\n"),
                        ("odd.example.net", client_hello("other.example.net")), ("junk.example.net", b"\x01\x02\r\n\r\n")):
        stream = gateway.guest.open(name, 80 if name.startswith("plain") else 443)
        stream.send(first)
        assert stream.wait_end() == "learning", name
    gateway.guest.open("closed.example.net", 22).reset()  # as the guest tells of a port that nobody listens on
    assert gateway.guest.wait_row(name="closed.example.net")["port"] == 22
    rows = gateway.end()[1:-1]
    assert rows[-1]["reason"] == "learning"
    assert [(r["name"], r["sni"], r["protocol"], r["decision"], r["reason"], r["address"]) for r in rows[:4]] == [
        ("pypi.org", "pypi.org", "tls", "refused", "learning", ""),
        ("any.example.net", "any.example.net", "tls", "refused", "learning", ""),
        ("plain.example.net", "", "http", "refused", "learning", ""),
        ("odd.example.net", "other.example.net", "tls", "refused", "learning", "")]
    assert site.accesses() == before


def test_the_rows_are_locked_and_have_an_end(site, run):
    run.guest.open("example.net").wait_end()
    assert run.is_locked()
    rows = run.end()
    assert rows[0] == {"gateway": "started"} and rows[-1]["gateway"] == "ended"
    assert not run.is_locked()


def test_a_gateway_that_is_killed_leaves_no_last_row(site, run):
    stream = run.guest.open("pypi.org")
    tls = Tls(stream, site.authority.context(), "pypi.org").handshake()
    run.guest.open("example.net").wait_end()
    run.process.kill()
    run.process.wait(30)
    assert tls.stream.reason is None
    run.guest.wait_gone()
    rows = run.rows()
    assert rows[0] == {"gateway": "started"} and [r["reason"] for r in rows[1:]] == ["not-allowed"]
    assert not run.is_locked()


def test_http_is_refused_where_tls_was_meant_and_the_other_way(site, run):
    stream = run.guest.open("pypi.org")
    stream.send(b"GET / HTTP/1.1\r\nHost: pypi.org\r\n\r\n")
    assert stream.wait_end() == "not-tls"
    stream = run.guest.open("pypi.org", 80)
    stream.send(client_hello("pypi.org"))
    assert stream.wait_end() == "http-malformed"


def test_plain_http_is_pinned_for_every_request(site, run):
    stream = run.guest.open("pypi.org", 80)
    stream.send(b"GET /a HTTP/1.1\r\nHost: pypi.org\r\n\r\n")
    assert b"site pypi.org" in stream.wait_data(150)
    stream.send(b"GET /b HTTP/1.1\r\nHost: PYPI.org:80\r\n\r\n")
    run.guest.wait(lambda: stream.data.count(b"200 OK") == 2, "the second answer")
    stream.send(b"GET /secret HTTP/1.1\r\nHost: internal.example.org\r\n\r\n")
    assert stream.wait_end() == "http-host-other"
    row = run.guest.wait_row(protocol="http")
    assert (row["decision"], row["sni"], row["address"] in (SITE, SITE6)) == ("refused", "", True)
    assert "/secret" not in site.accesses()


@pytest.mark.parametrize("request_bytes, reason", [
    (b"GET http://pypi.org/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n", "http-form"),
    (b"CONNECT pypi.org:80 HTTP/1.1\r\nHost: pypi.org\r\n\r\n", "http-form"),
    (b"GET / HTTP/1.1\r\nHost: pypi.org\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "http-upgrade"),
    (b"GET / HTTP/1.1\r\n\r\n", None), (b"GET / HTTP/1.1\r\nHost: pypi.org\r\nHost: evil.org\r\n\r\n", None),
    (b"GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n", "http-host-other")])
def test_requests_that_are_refused(site, run, request_bytes, reason):
    stream = run.guest.open("pypi.org", 80)
    stream.send(request_bytes)
    end = stream.wait_end()
    assert end == reason if reason else end.startswith("http-"), end


def test_both_halves_end_in_their_own_time(site, run):
    site.raw("after-fin", 7001)
    stream = run.guest.open("raw.pypi.org", 7001)
    hello = client_hello("raw.pypi.org")
    stream.send(hello)
    stream.wait_opened()
    # What looks like application data, in bulk.
    body = (b"\x17\x03\x03\x40\x00" + bytes(16384)) * 200
    stream.send(body)
    stream.fin()
    assert stream.wait_end() == "fin"
    assert stream.data == b"%d bytes" % (len(hello) + len(body))
    row = run.guest.wait_row(port=7001)
    assert (row["reason"], row["bytes_up"], row["bytes_down"]) == ("none", len(hello) + len(body), len(stream.data))


def test_a_server_that_reads_late_gets_it_all(site):
    """More than all buffers on the way hold: what waited in the gateway is credit for the guest again once it is gone."""
    site.raw("late", 7007)
    gateway = site.gateway(["raw.pypi.org:7007"])
    stream = gateway.guest.open("raw.pypi.org", 7007)
    hello = client_hello("raw.pypi.org")
    stream.send(hello)
    stream.wait_opened()
    body = (b"\x17\x03\x03\x40\x00" + bytes(16384)) * 1500
    stream.send(body)
    stream.fin()
    assert stream.wait_end(60) == "fin"
    assert stream.data == b"%d bytes" % (len(hello) + len(body))


def test_the_last_words_of_a_server_arrive_and_what_follows_is_no_fault(site):
    site.raw("talk", 7002)
    gateway = site.gateway(["raw.pypi.org:7002"])
    stream = gateway.guest.open("raw.pypi.org", 7002)
    stream.send(client_hello("raw.pypi.org"))
    assert stream.wait_end() == "fin" and stream.data == b"last words\n"
    stream.send(b"\x17\x03\x03\x00\x02ok")
    stream.fin()
    assert gateway.guest.wait_row(port=7002)["reason"] == "none"


def test_a_goodbye_to_a_server_that_is_gone_is_no_fault(site):
    site.raw("hang-up", 7006)
    gateway = site.gateway(["raw.pypi.org:7006"])
    stream = gateway.guest.open("raw.pypi.org", 7006)
    stream.send(client_hello("raw.pypi.org"))
    assert stream.wait_end() == "fin" and stream.data == b"last words\n"
    for _ in range(3):
        stream.send(b"\x17\x03\x03\x00\x02ok")
        time.sleep(0.1)
        gateway.guest.read()
    assert stream.reason is None
    stream.fin()
    assert gateway.guest.wait_row(port=7006)["reason"] == "none"


def test_an_answer_that_comes_with_a_reset_arrives_whole(site):
    """An upload that was too much for a server: its answer is there, and it does not read on."""
    site.raw("enough", 7008)
    gateway = site.gateway(["raw.pypi.org:7008"])
    stream = gateway.guest.open("raw.pypi.org", 7008)
    stream.send(client_hello("raw.pypi.org"))
    stream.wait_opened()
    stream.send((b"\x17\x03\x03\x40\x00" + bytes(16384)) * 1000)
    end = stream.wait_end(60)
    assert stream.data == bytes(range(256)) * 256, (end, len(stream.data))


def test_a_connection_that_the_server_resets(site):
    site.raw("reset", 7003)
    gateway = site.gateway(["raw.pypi.org:7003"])
    stream = gateway.guest.open("raw.pypi.org", 7003)
    stream.send(client_hello("raw.pypi.org"))
    assert stream.wait_end() == "broken"
    assert gateway.guest.wait_row(port=7003)["decision"] == "allowed"


def test_a_large_answer_arrives_whole(site):
    site.raw("big", 7004)
    gateway = site.gateway(["raw.pypi.org:7004"])
    stream = gateway.guest.open("raw.pypi.org", 7004)
    stream.send(client_hello("raw.pypi.org"))
    assert stream.wait_end(60) == "fin"
    assert len(stream.data) == 8 << 20 and stream.data[:1 << 20] == stream.data[-(1 << 20):]


def rst_of(reason):
    return struct.pack("<I", reason) + b"x"


BROKEN_RULES = {
    "no hello": [frame(OPEN, 1, b"\xbb\x01a")],
    "another version": [frame(HELLO, 0, struct.pack("<I", 9))],
    "hello twice": [frame(HELLO, 0, struct.pack("<I", 1))] * 2,
    "a number again": [frame(OPEN, 5, b"\xbb\x01a"), frame(OPEN, 5, b"\xbb\x01a")],
    "a number back": [frame(OPEN, 5, b"\xbb\x01a"), frame(OPEN, 4, b"\xbb\x01a")],
    "stream 0": [frame(OPEN, 0, b"\xbb\x01a")],
    "no name": [frame(OPEN, 1, b"\xbb\x01")],
    "a long name": [frame(OPEN, 1, b"\xbb\x01" + b"a" * 256)],
    "data for nobody": [frame(DATA, 7, b"x")],
    "empty data": [frame(OPEN, 1, b"\xbb\x01pypi.org"), frame(DATA, 1, b"")],
    "data behind the end": [frame(OPEN, 1, b"\xbb\x01pypi.org"), frame(DATA, 1, b"\x16"), frame(FIN, 1), frame(OPEN, 2, b"\xbb\x01pypi.org"),
                            frame(DATA, 3, b"x")],
    "too much credit": [frame(OPEN, 1, b"\xbb\x01pypi.org"), frame(CREDIT, 1, b"\xff\xff\xff\xff")],
    "opened by the guest": [frame(OPEN, 1, b"\xbb\x01pypi.org"), frame(OPENED, 1)],
    "a decision by the guest": [frame(38, 0, b"{}")],
    "an unknown type": [frame(99)],
    "a frame in parts": [frame(ASKED, 0, b"a", flags=1)],
    "asked without a name": [frame(ASKED)],
    "an unknown reason": [frame(OPEN, 1, b"\xbb\x01pypi.org"), frame(RST, 1, rst_of(4000))],
    "no frame": [b"\xff" * 64],
    "http": [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
}


@pytest.mark.parametrize("what", BROKEN_RULES)
def test_a_broken_rule_ends_the_port_and_only_that(site, what):
    greets = what not in ("no hello", "another version", "hello twice", "no frame", "http")
    gateway = site.gateway(["pypi.org", "http://pypi.org"], greets=greets)
    gateway.guest.write(b"".join(BROKEN_RULES[what]))
    gateway.guest.wait_gone()
    assert gateway.process.wait(30) == 0
    rows = gateway.rows()
    assert [r["reason"] for r in rows[1:-1] if r["reason"] == "protocol"] == ["protocol"], rows
    assert rows[-1]["gateway"] == "ended"
    assert next(r for r in rows if r.get("reason") == "protocol")["detail"]


def test_data_over_the_credit_is_a_broken_rule(site):
    """The server takes nothing, so credit runs out; a guest that goes on regardless is cut off."""
    site.raw("deaf", 7005)
    gateway = site.gateway(["raw.pypi.org:7005"])
    stream = gateway.guest.open("raw.pypi.org", 7005)
    stream.send(client_hello("raw.pypi.org"))
    stream.wait_opened()
    for _ in range(2000):
        gateway.guest.write(frame(DATA, stream.number, b"\x17\x03\x03\x40\x00" + bytes(16384)))
        if gateway.guest.is_gone:
            break
    gateway.guest.wait_gone()
    assert gateway.process.wait(30) == 0
    assert [r["reason"] for r in gateway.rows()[1:-1]] == ["protocol", "none"]


def test_frames_for_a_stream_that_is_gone_are_passed_over(site, run):
    stream = run.guest.open("example.net")
    run.guest.write(frame(DATA, stream.number, b"x") * 3 + frame(FIN, stream.number) + frame(RST, stream.number, rst_of(0)))
    assert stream.wait_end() == "not-allowed"
    assert b"site pypi.org" in get(site, run, "pypi.org")


def test_a_guest_that_gives_up_is_a_row(site, run):
    stream = run.guest.open("pypi.org")
    Tls(stream, site.authority.context(), "pypi.org").handshake()
    stream.reset()
    assert run.guest.wait_row(name="pypi.org")["decision"] == "allowed"
    stream = run.guest.open("files.pypi.org")
    stream.reset()
    assert run.guest.wait_row(name="files.pypi.org")["reason"] == "hello-cut"


def test_it_does_not_start_without_its_descriptors(site):
    result = site.network.run(build_dir() / "src/gateway/resoluto-gateway", check=False)
    assert result.returncode == 125 and b"libresoluto-sandbox" in result.stderr


@pytest.mark.parametrize("change, words", [
    ({"schema": 2}, "schema"), ({"patterns": ["*.com"]}, "com"), ({"patterns": ["10.0.0.0/8"]}, "10.0.0.0"),
    ({"patterns": [7]}, "no text"), ({"patterns": None}, "patterns"), ({"connect_ms": 0}, "connect_ms"), ({"idle_ms": "9"}, "idle_ms"),
    ({"proxy": "https://proxy:1"}, "proxy"), ({"proxy": 5}, "proxy"), ({"uid": -1}, "uid")])
def test_a_configuration_that_is_wrong_is_refused(site, change, words):
    gateway = site.gateway(**{"patterns": ["pypi.org"], **change})
    assert gateway.process.wait(30) == 125
    assert words in gateway.errors()
    assert not gateway.rows()
