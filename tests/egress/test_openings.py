# SPDX-License-Identifier: Apache-2.0
"""What a stream begins with: every way to say another name to the server than to the gateway."""
import struct
import time

import pytest

from rig import SITE, Tls, client_hello, make_hello, wait_port
from served import HERE, site  # noqa: F401


@pytest.fixture(scope="module")
def record(site):
    return site.raw("record", 7101)


@pytest.fixture(scope="module")
def run(site, record):
    return site.gateway(["raw.pypi.org:7101", "hello.example.org:7101", "pypi.org"], handshake_ms=2000)


def lines(record):
    return record.read_text().splitlines() if record.exists() else []


def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data


def server_name(*names, kind=0):
    entries = b"".join(bytes([kind]) + struct.pack(">H", len(n)) + n for n in names)
    return extension(0, struct.pack(">H", len(entries)) + entries)


REFUSED = {
    "absent": (make_hello(extensions=b""), "sni-missing"),
    "two names": (make_hello([b"raw.pypi.org", b"evil.org"]), "sni-twice"),
    "two extensions": (make_hello(extensions=server_name(b"raw.pypi.org") * 2), None),
    "two extensions, other": (make_hello(extensions=server_name(b"raw.pypi.org") + server_name(b"evil.org")), None),
    "NUL": (make_hello([b"raw.pypi.org\0.evil.org"]), "sni-malformed"),
    "umlaut": (make_hello(["münchen.pypi.org".encode()]), "sni-malformed"),
    "punycode of another": (make_hello([b"xn--mnchen-3ya.pypi.org"]), "sni-other"),
    "255 bytes": (make_hello([b"a" * 63 + b"." + b"b" * 63 + b"." + b"c" * 63 + b"." + b"d" * 63]), "sni-malformed"),
    "254 bytes and a dot": (make_hello([b".".join([b"a" * 61] * 4) + b".abcdef."]), "sni-malformed"),
    "address": (make_hello([SITE.encode()]), "sni-malformed"),
    "number": (make_hello([b"2130706433"]), "sni-malformed"),
    "IPv6": (make_hello([b"2a04:4e42::223"]), "sni-malformed"),
    "empty": (make_hello([b""]), None),
    "space": (make_hello([b"raw.pypi.org "]), "sni-malformed"),
    "underscore": (make_hello([b"raw_pypi.org"]), "sni-malformed"),
    "other": (make_hello([b"other.example.org"]), "sni-other"),
    "parent": (make_hello([b"pypi.org"]), "sni-other"),
    "unknown kind of name": (make_hello(extensions=server_name(b"raw.pypi.org", kind=7)), None),
    "length over the end": (make_hello(extensions=b"\0\0\0\x10\0\x0e\0\0\x0c" + b"raw.pypi.or"), None),
    "plain text": (b"GET / HTTP/1.1\r\nHost: raw.pypi.org\r\n\r\n", "not-tls"),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", "not-tls"),
    "SSL 2": (b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(35), "not-tls"),
    "application data first": (b"\x17\x03\x03\x00\x05hello", "not-tls"),
    "ServerHello": (b"\x16\x03\x01\x00\x06\x02\x00\x00\x02\x03\x03", "hello-malformed"),
    "empty record": (b"\x16\x03\x01\x00\x00" * 3, None),
    "record over 16 KiB": (b"\x16\x03\x01\xff\xff" + bytes(70000), None),
    "message of 16 MiB": (b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "hello-too-long"),
    "message of 64 KiB and one byte": (b"\x16\x03\x01\x00\x04\x01\x00\xff\xfd", "hello-too-long"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_hello_that_is_refused(site, run, record, what):
    first, reason = REFUSED[what]
    before = lines(record)
    stream = run.guest.open("raw.pypi.org", 7101)
    stream.send(first)
    end = stream.wait_end()
    assert end == reason if reason else end.startswith(("sni-", "hello-", "not-tls")), end
    assert lines(record) == before, "the server was reached"
    row = [r for r in run.guest.rows if r["port"] == 7101][-1]
    assert (row["decision"], row["address"], row["bytes_up"]) == ("refused", "", 0)


def arrives(run, record, parts, whole, name="raw.pypi.org"):
    """The server gets exactly these bytes."""
    before = len(lines(record))
    stream = run.guest.open(name, 7101)
    for part in parts:
        stream.send(part)
    stream.wait_opened().fin()
    run.guest.wait(lambda: len(lines(record)) > before, "the server's record")
    assert bytes.fromhex(lines(record)[-1]) == whole


SAMPLES = HERE.parent / "fuzz/samples/client_hello"
RECORDED = sorted(path.name for path in SAMPLES.iterdir() if not path.name.startswith("made-"))
GREASE = extension(0x0a0a, b"") + extension(0xdada, b"\0")
ACCEPTED = {
    "OpenSSL's": client_hello("raw.pypi.org"),
    "upper case": make_hello([b"RAW.PyPI.org"]),
    "trailing dot": make_hello([b"raw.pypi.org."]),
    "GREASE": make_hello([b"raw.pypi.org"], extra=GREASE),
    "unknown extensions": make_hello([b"raw.pypi.org"], extra=extension(0xfe0d, bytes(200)) + extension(41, bytes(300))),
    "over 20 records": make_hello([b"raw.pypi.org"], extra=extension(0x5a5a, bytes(4000)), record=200),
    "records of one byte": make_hello([b"raw.pypi.org"], record=1),
    "40 KiB": make_hello([b"raw.pypi.org"], extra=extension(0x6a6a, bytes(40 * 1024))),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_a_hello_that_is_as_it_should_be(site, run, record, what):
    arrives(run, record, [ACCEPTED[what]], ACCEPTED[what])


@pytest.mark.parametrize("what", RECORDED)
def test_hellos_of_real_clients_arrive_as_they_are(site, run, record, what):
    """Recorded (tests/fuzz/record_hellos.py); -retry ones have the second hello behind the first."""
    first = (SAMPLES / what).read_bytes()
    arrives(run, record, [first[:100], first[100:]], first, "hello.example.org")


def test_one_byte_at_a_time(site, run, record):
    hello = client_hello("raw.pypi.org")
    arrives(run, record, [hello[i:i + 1] for i in range(len(hello))], hello)


def test_one_byte_at_a_time_of_forty_kilobytes_is_no_work(site, run, record):
    """What costs the gateway more than the guest would be a weapon."""
    hello = ACCEPTED["40 KiB"]
    began = time.monotonic()
    arrives(run, record, [hello[i:i + 1] for i in range(len(hello))], hello)
    assert time.monotonic() - began < 30


def test_a_hello_that_is_never_finished(site, run):
    stream = run.guest.open("raw.pypi.org", 7101)
    began = time.monotonic()
    hello = client_hello("raw.pypi.org")
    for i in range(60):  # slowly, but on and on
        if stream.reason:
            break
        stream.send(hello[i:i + 1])
        time.sleep(0.1)
        run.guest.read()
    assert stream.wait_end() == "hello-timeout"
    assert 1.5 < time.monotonic() - began < 10


def test_nothing_at_all(site, run):
    assert run.guest.open("raw.pypi.org", 7101).wait_end() == "hello-timeout"


def test_an_end_in_the_middle(site, run):
    stream = run.guest.open("raw.pypi.org", 7101)
    stream.send(client_hello("raw.pypi.org")[:50])
    stream.fin()
    assert stream.wait_end() == "hello-cut"
    assert run.guest.wait_row(reason="hello-cut", port=7101, decision="refused")


@pytest.mark.parametrize("way", ["fin", "reset"])
def test_an_end_before_the_first_word_is_no_refusal(site, run, way):
    """Clients that try two addresses at once leave one of them like this."""
    before = len(run.guest.rows)
    getattr(run.guest.open("raw.pypi.org", 7101), way)()
    run.guest.wait(lambda: len(run.guest.rows) > before, "the row")
    row = run.guest.rows[-1]
    assert (row["reason"], row["decision"], row["bytes_up"], row["address"]) == ("hello-cut", "failed", 0, "")


def test_a_second_hello_with_another_name(site, run, record):
    """Right behind the first: the server must not see it."""
    before = len(lines(record))
    stream = run.guest.open("raw.pypi.org", 7101)
    stream.send(make_hello([b"raw.pypi.org"]) + make_hello([b"evil.example.org"]))
    assert stream.wait_end() in ("sni-other", "hello-malformed")
    # And after the connection was made.
    stream = run.guest.open("raw.pypi.org", 7101)
    stream.send(make_hello([b"raw.pypi.org"]))
    stream.wait_opened()
    stream.send(make_hello([b"evil.example.org"]))
    assert stream.wait_end() in ("sni-other", "hello-malformed")
    run.guest.wait(lambda: len(lines(record)) > before, "the server's record")
    assert all(b"evil" not in bytes.fromhex(line) for line in lines(record))


def test_a_hello_with_a_retry_works(site):
    """OpenSSL offers one share and the server wants another: HelloRetryRequest, and hello again."""
    gateway = site.gateway(["pypi.org:7443"])
    site.authority.issue("retry.pypi.org", "pypi.org")
    pem, key = site.authority.folder / "retry.pypi.org.pem", site.authority.folder / "retry.pypi.org.key"
    site.network.start("openssl", "s_server", "-accept", f"{SITE}:7443", "-cert", pem, "-key", key, "-groups", "P-521",
                       "-tls1_3", "-www", "-quiet")
    wait_port(site.network, SITE, 7443)
    tls = Tls(gateway.guest.open("pypi.org", 7443), site.authority.context(), "pypi.org").handshake()
    assert tls.tls.version() == "TLSv1.3"
    assert b"200 ok" in tls.get("pypi.org")
