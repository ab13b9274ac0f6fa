# SPDX-License-Identifier: Apache-2.0
"""Names and connections in the guest, with a host that plays the gateway: also one that keeps no rule."""
import contextlib
import json
import socket
import struct
import threading

import pytest
from conftest import needed

from guest_host import CREDIT, HELLO, Guest, frame, make_job

OPEN, OPENED, RST, DATA, FIN, ASKED, DECISION = range(32, 39)
NAME = "site.example.org"
PATTERNS = {"patterns": [f"{NAME}:443", "*.example.net:443"], "learn": False, "wide": False}

PROLOGUE = f"""
import socket, struct, sys, time
NAME = {NAME!r}
def rcode(name):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0\\0\\1\\0\\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.sendto(q, ("127.0.0.1", 53))
        return s.recv(2000)[3] & 15
def connect():
    return socket.create_connection((NAME, 443), 60)
def rest(s):
    got = b""
    try:
        while piece := s.recv(1 << 20):
            got += piece
        return len(got), "end"
    except ConnectionResetError:
        return len(got), "reset"
def meet():  # a reset may come before connect() has returned
    try:
        return rest(connect())
    except ConnectionResetError:
        return 0, "reset"
def say(*words):
    print(*words, flush=True)
"""


@pytest.fixture(autouse=True)
def machine():
    for name in ("RESOLUTO_TEST_KERNEL", "RESOLUTO_TEST_INITRD", "RESOLUTO_TEST_ROOTFS"):
        needed(name)


class Gateway(threading.Thread):
    """Speaks the port: behaves as handle(gateway, kind, stream, payload) says, and keeps what came."""

    def __init__(self, handle, greets=True):
        super().__init__(daemon=True)
        self.ours, self.theirs = socket.socketpair()
        self.handle, self.frames = handle, []
        if greets:
            self.send(HELLO, 0, struct.pack("<I", 1))
        self.start()

    def send(self, kind, stream=0, payload=b"", flags=0):
        self.raw(frame(kind, payload, stream, flags))

    def raw(self, data):
        try:
            self.ours.sendall(data)
        except OSError:
            pass

    def run(self):
        # A machine that ends with our answer unread resets the socket.
        with contextlib.suppress(ConnectionResetError), self.ours, self.ours.makefile("rb") as file:
            while len(head := file.read(12)) == 12:
                size, kind, _, _, stream = struct.unpack("<IBBHI", head)
                payload = file.read(size - 8)
                self.frames.append((kind, stream, payload))
                self.handle(self, kind, stream, payload)

    def of(self, kind):
        return [(stream, payload) for k, stream, payload in self.frames if k == kind]


def run(program, handle=lambda *_: None, egress=None, env=None, **options):
    gateway = Gateway(handle, **{k: options.pop(k) for k in ("greets",) if k in options})
    job = make_job(["python3", "-c", PROLOGUE + program], env, egress=egress or PATTERNS)
    with Guest(job, net=gateway.theirs, **options) as guest:
        guest.run()
    gateway.join(60)  # it has read all that came
    return guest, gateway


def refuse(gateway, kind, stream, payload):
    """A program that saw the reset knows that what was sent before it has come too."""
    if kind == OPEN:
        gateway.send(RST, stream, struct.pack("<I", 3) + b"no")


def said(guest):
    return guest.output("stdout").decode().splitlines()


def refused(guest):
    result = guest.result()
    assert (result["status"], result["reason"], result["ran"]) == ("failure", "canary-failed", False)
    return {probe["probe"]: (probe["ok"], probe["detail"]) for probe in result["canary"]}


def test_what_is_asked_goes_out_once_and_what_is_decided_comes_back():
    row = {"name": "x", "decision": "refused", "reason": "not-allowed", "detail": "token=ghp_" + "a" * 36}

    def handle(gateway, kind, stream, payload):
        if kind == ASKED:
            gateway.send(DECISION, 0, json.dumps({**row, "name": payload.decode()}).encode())
        refuse(gateway, kind, stream, payload)

    guest, gateway = run("say([rcode(n) for n in ('a.evil.org', 'a.evil.org', 'A.evil.ORG', 'b.evil.org', 'x_y', NAME)], meet())", handle)
    assert said(guest) == ["[3, 3, 3, 3, 3, 0] (0, 'reset')"]
    assert [payload for _, payload in gateway.of(ASKED)] == [b"a.evil.org", b"b.evil.org", b"x_y"]
    events = [e["data"] for e in guest.events() if e["kind"] == "egress"]
    assert [e["name"] for e in events] == ["a.evil.org", "b.evil.org", "x_y"]
    assert all("ghp_" not in e["detail"] and "[REDACTED]" in e["detail"] for e in events)


def test_rows_that_are_none_become_no_events():
    def handle(gateway, kind, stream, payload):
        if kind == ASKED:
            for junk in (b"[]", b"7", b"{", b"\xff\xfe", b"{\"a\":" * 100, b"{\"fine\":1}"):
                gateway.send(DECISION, 0, junk)
        refuse(gateway, kind, stream, payload)

    guest, _ = run("say(rcode('a.evil.org'), meet())", handle)
    assert [e["data"] for e in guest.events() if e["kind"] == "egress"] == [{"fine": 1}]
    assert guest.result()["status"] == "success"


def test_a_stream_carries_name_port_bytes_and_both_ends():
    got = {}

    def handle(gateway, kind, stream, payload):
        if kind == OPEN:
            got["open"] = struct.unpack("<H", payload[:2])[0], payload[2:]
        elif kind == DATA:
            got["data"] = got.get("data", b"") + payload
            gateway.send(CREDIT, stream, struct.pack("<I", len(payload)))
        elif kind == FIN:
            gateway.send(OPENED, stream)
            gateway.send(DATA, stream, b"answer")
            gateway.send(FIN, stream)

    guest, _ = run("s = connect(); s.sendall(b'z' * 1000000); s.shutdown(1); say(rest(s))", handle)
    assert said(guest) == ["(6, 'end')"] and "warnings" not in guest.result()
    assert got == {"open": (443, NAME.encode()), "data": b"z" * 1000000}


def test_a_reset_and_its_reason_are_a_reset():
    guest, _ = run("say(meet())", refuse)
    assert said(guest) == ["(0, 'reset')"]


def test_nothing_is_sent_over_the_credit():
    """A gateway that takes nothing: 256 KiB are under way, and the program waits."""
    program = """
s = connect(); s.settimeout(3)
try:
    while True: s.send(bytes(65536))
except TimeoutError:
    say('full')
t = connect(); t.sendall(b'other'); t.shutdown(1); say(rest(t))
"""

    def handle(gateway, kind, stream, payload):
        if kind == FIN:
            gateway.send(OPENED, stream)
            gateway.send(FIN, stream)

    guest, gateway = run(program, handle)
    assert said(guest) == ["full", "(0, 'end')"]
    streams = [stream for stream, _ in gateway.of(OPEN)]
    assert sum(len(payload) for stream, payload in gateway.of(DATA) if stream == streams[0]) == 256 * 1024


def breaks(*frames):
    return lambda g, kind, stream, _: kind == OPEN and g.raw(b"".join(f(stream) if callable(f) else f for f in frames))


BROKEN = {
    "data before opened": breaks(lambda s: frame(DATA, b"x", s)),
    "over the credit": breaks(lambda s: frame(OPENED, b"", s), *[lambda s: frame(DATA, bytes(65536), s)] * 400),
    "opened twice": breaks(*[lambda s: frame(OPENED, b"", s)] * 2),
    "a frame that is none": breaks(b"\xff" * 100),
    "an unknown type": breaks(frame(99)),
    "credit over the window": breaks(lambda s: frame(CREDIT, b"\xff\xff\xff\xff", s)),
    "the port ends": lambda g, kind, stream, _: kind == OPEN and g.ours.shutdown(socket.SHUT_RDWR),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_gateway_that_keeps_no_rule_ends_the_network_not_the_run(how):
    program = """
try:
    s = connect()
    time.sleep(3)
    end = rest(s)[1]
except ConnectionResetError:  # before connect() had returned
    end = 'reset'
say(end, rcode(NAME), rcode('new.example.net'), rcode('evil.org'))
try:
    say(rest(socket.create_connection(('198.18.0.2', 443), 30)))
except OSError:
    say('none')
"""
    guest, _ = run(program, BROKEN[how])
    assert said(guest)[0] == "reset 2 2 2", guest.output()
    assert said(guest)[1] in ("none", "(0, 'reset')")
    assert guest.result()["status"] == "success"


def test_when_its_own_process_is_killed_names_fail_at_once_and_connections_are_reset():
    """The program is the user of the process that answers, so it may kill it: nothing else here has the right to."""
    program = """
import os
s = connect()
say(s.recv(6, socket.MSG_WAITALL), rcode(NAME))
os.kill(-1, 9)  # all of this user but itself
try:
    say(s.recv(1))
except ConnectionResetError:
    say('reset')
answer = b''
while len(answer) < 6:  # until the other one has taken its place, and answers
    try:
        with socket.create_connection(('127.0.0.1', 53), 20) as t:
            t.sendall(b"\\0\\x13" + struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\\1a\\0\\0\\1\\0\\1")
            answer = t.recv(6, socket.MSG_WAITALL)
    except ConnectionError:
        time.sleep(0.05)
say(rcode(NAME), rcode('new.example.net'), rcode('evil.org'))
try:
    socket.create_connection(('198.18.0.2', 443), 20)
except ConnectionRefusedError:
    say('refused')
"""
    guest, _ = run(program, lambda g, kind, stream, _: kind == OPEN and (g.send(OPENED, stream), g.send(DATA, stream, b"answer")),
                   env={"RESOLUTO_WORKLOAD_USER": "2000000053"})
    assert said(guest) == ["b'answer' 0", "reset", "2 2 2", "refused"], guest.output()
    (event,) = [e["data"] for e in guest.events() if e["kind"] == "egress"]
    assert (event["decision"], event["reason"]) == ("failed", "broken") and "ended" in event["detail"]
    result = guest.result()
    assert result["status"] == "success" and [w.partition(": ")[0] for w in result["warnings"]] == ["egress-lost"]


def test_the_canary_fails_where_an_address_by_number_answers():
    """The probe's address is made one that is answered: nothing else is wrong."""
    guest, gateway = run("say('ran')", env={"RESOLUTO_CANARY_PROBE_HOST": "198.18.0.2"})
    probes = refused(guest)
    assert probes["egress-address"] == (False, "198.18.0.2 port 443: it answered")
    assert probes["egress-address6"][0]
    assert probes["external"][0] and probes["egress-refused-name"][0] and probes["egress-allowed-name"][0] and probes["store"][0]


def test_the_canary_fails_where_an_allowed_name_does_not_resolve():
    """A name without a port that could be listened on, since there are too many of them."""
    many = {"patterns": [f"{NAME}:{port}" for port in range(1000, 1300)], "learn": False, "wide": False}
    probes = refused(run("say('ran')", egress=many)[0])
    assert probes["egress-allowed-name"][0] is False and NAME in probes["egress-allowed-name"][1]


def test_a_list_that_is_none_refuses_the_run():
    for bad in ({"patterns": ["1.2.3.4"]}, {"patterns": [7]}, {}, []):
        gateway = Gateway(lambda *_: None)
        with Guest(make_job(["true"], egress=bad), net=gateway.theirs) as guest:
            guest.run()
        result = guest.result()
        assert (result["reason"], result["ran"]) == ("protocol", False) and "egress" in result["detail"], bad


def test_a_port_that_nobody_listens_on_is_closed_and_asked_for_once():
    """The kernel refuses it; the gateway hears of it all the same, over IPv4 and IPv6."""
    program = """
def knock(address, port):
    try:
        socket.create_connection((address, port), 20)
    except ConnectionRefusedError:
        return port
four, six = (socket.getaddrinfo(NAME, 443, family)[0][4][0] for family in (socket.AF_INET, socket.AF_INET6))
say([knock(*to) for to in ((four, 22), (four, 22), (six, 22), (six, 8080), ('127.0.0.1', 25), ('198.18.9.9', 26))], meet())
"""
    guest, gateway = run(program, lambda g, kind, stream, _: kind == OPEN and g.send(RST, stream, struct.pack("<I", 4)))
    assert said(guest) == ["[22, 22, 22, 8080, 25, 26] (0, 'reset')"]
    opened = [(struct.unpack("<H", payload[:2])[0], payload[2:].decode()) for _, payload in gateway.of(OPEN)]
    assert opened[:2] == [(22, NAME), (8080, NAME)] and set(opened[2:]) == {(443, NAME)}  # by both families, maybe


def test_what_is_refused_while_the_port_is_full_is_told_too():
    """A gateway that takes nothing for a while: the streams wait, and what is refused meanwhile is not forgotten."""
    program = """
import select
streams = [connect() for _ in range(160)]  # forty megabytes of credit: more than the port and what is behind it hold
for s in streams: s.setblocking(False)
while ready := select.select([], streams, [], 2)[1]:
    for s in ready:
        try: s.send(bytes(65536))
        except BlockingIOError: pass
def refused(port):
    try: socket.create_connection((NAME, port), 20)
    except ConnectionRefusedError: return port
say(rcode('evil.org'), rcode('x_y'), refused(22), refused(8080))
try: rest(socket.create_connection(('last.example.net', 443), 60))
except ConnectionResetError: pass
say('end')
"""
    takes = threading.Event()

    def handle(gateway, kind, stream, payload):
        if kind == DATA:
            takes.wait(240)
        elif kind == OPEN and payload[2:] == b"last.example.net":
            gateway.send(RST, stream, struct.pack("<I", 3))

    gateway = Gateway(handle)
    with Guest(make_job(["python3", "-c", PROLOGUE + program], egress=PATTERNS), net=gateway.theirs) as guest:
        guest.run(until=lambda g: said(g) and "22" in said(g)[0])
        assert not gateway.of(ASKED)
        takes.set()
        guest.run()
    gateway.join(60)
    assert said(guest) == ["3 3 22 8080", "end"]
    assert [payload for _, payload in gateway.of(ASKED)] == [b"evil.org", b"x_y"]
    opened = [(struct.unpack("<H", payload[:2])[0], payload[2:].decode()) for _, payload in gateway.of(OPEN)]
    assert [port for port, name in opened if name == NAME and port != 443] == [22, 8080]


def test_while_learning_every_name_is_asked_for_and_answered():
    guest, gateway = run("""say([rcode(n) for n in ('a.example', 'a.example', 'b.example')], meet())
try: socket.create_connection((NAME, 8080), 20)
except ConnectionRefusedError: say('refused', meet())
canary = socket.gethostbyname('on-the-list.resoluto.invalid')
for port in (22, 443):
    try: socket.create_connection((canary, port), 20).recv(1)
    except ConnectionError: say('none')
say(meet())""",
                         lambda g, kind, stream, _: kind == OPEN and g.send(RST, stream, struct.pack("<I", 28)),
                         egress={"patterns": [], "learn": True, "wide": False})
    assert said(guest) == ["[0, 0, 0] (0, 'reset')", "refused (0, 'reset')", "none", "none", "(0, 'reset')"]
    assert {payload[2:].decode() for _, payload in gateway.of(OPEN)} == {NAME}
    ports = [struct.unpack("<H", payload[:2])[0] for _, payload in gateway.of(OPEN)]
    assert set(ports) == {443, 8080} and ports.count(8080) == 1  # both families may have been tried
    assert [payload.decode() for _, payload in gateway.of(ASKED)] == ["a.example", "b.example", NAME]
    assert guest.result()["canary"][2]["detail"] == "not asked: every name is allowed"
