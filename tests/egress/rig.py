# SPDX-License-Identifier: Apache-2.0
"""A network without a way out, servers in it, a gateway, and a guest that speaks the port itself and keeps no rule.

Addresses look public and are on `lo` of a namespace that belongs to the test: nothing ever leaves it."""
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import socket
import ssl
import struct
import subprocess
import time

import pytest

from conftest import build_dir, wait_until

SITE = "151.101.0.223"
SITE6 = "2a04:4e42::223"
OTHER = "93.184.216.34"  # a server that no test's pattern has
HELLO, OPEN, OPENED, RST, DATA, FIN, ASKED, DECISION, CREDIT = 1, 32, 33, 34, 35, 36, 37, 38, 8
WINDOW = 256 * 1024
REASONS = ["none", "name-malformed", "name-address", "not-allowed", "port-not-allowed", "not-tls", "hello-malformed",
           "hello-too-long", "hello-timeout", "hello-cut", "sni-missing", "sni-twice", "sni-malformed", "sni-other",
           "http-malformed", "http-host-other", "http-form", "http-upgrade", "no-address", "resolver", "address-refused",
           "connect-failed", "connect-timeout", "proxy-refused", "idle", "broken", "too-many", "protocol", "learning",
           "gateway-lost"]


def need_root():
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")


class Network:
    """A network and mount namespace of its own: only `lo`, with these addresses."""

    def __init__(self, folder, addresses=(SITE, SITE6, OTHER)):
        need_root()
        self.folder = pathlib.Path(folder)
        self.resolv, self.hosts = self.folder / "resolv.conf", self.folder / "hosts"
        self.resolv.write_text("nameserver 127.0.0.1\n")
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.children = []
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec",
             f"mount --bind {self.resolv} /etc/resolv.conf; mount --bind {self.hosts} /etc/hosts; "
             "ip link set lo up; echo up; exec sleep infinity"], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"up\n", "no namespace"
        for address in addresses:
            self.run("ip", "address", "add", f"{address}/{128 if ':' in address else 32}", "dev", "lo",
                     *(["nodad"] if ":" in address else []))

    def argv(self, *argv):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--",
                *map(str, argv)]

    def run(self, *argv, **options):
        options.setdefault("check", True)
        return subprocess.run(self.argv(*argv), capture_output=True, timeout=60, **options)

    def start(self, *argv, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        child = subprocess.Popen(self.argv(*argv), **options)
        self.children.append(child)
        return child

    def can_connect(self, address, port):
        return self.run("python3", "-c", f"import socket; socket.create_connection(({address!r}, {port}), 5)",
                        check=False).returncode == 0

    def close(self):
        for child in [*reversed(self.children), self.holder]:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
            child.kill()
            child.wait()


def frame(kind, stream=0, payload=b"", flags=0):
    return struct.pack("<IBBHI", 8 + len(payload), kind, flags, 0, stream) + payload


class Stream:
    """What one stream has brought so far."""

    def __init__(self, guest, number):
        self.guest, self.number = guest, number
        self.data = bytearray()
        self.is_opened = self.is_over = False
        self.reason = None
        self.room = WINDOW
        self.gives_credit = True

    def send(self, data):
        """All of it, as there is credit."""
        data = memoryview(data)
        while data:
            if self.reason:
                return
            if not self.room:
                self.guest.wait(lambda: self.room or self.reason, "credit")
                continue
            part = data[:min(self.room, 65536)]
            self.guest.write(frame(DATA, self.number, bytes(part)))
            self.room -= len(part)
            data = data[len(part):]

    def fin(self):
        self.guest.write(frame(FIN, self.number))

    def reset(self):
        self.guest.write(frame(RST, self.number, struct.pack("<I", 0) + b"enough"))

    def wait_end(self, seconds=30):
        """How it ended: the reason of a reset, or "fin"."""
        self.guest.wait(lambda: self.reason or self.is_over, f"the end of stream {self.number}", seconds)
        return self.reason or "fin"

    def wait_opened(self, seconds=30):
        self.guest.wait(lambda: self.is_opened or self.reason, f"stream {self.number} to open", seconds)
        assert self.is_opened, self.reason
        return self

    def wait_data(self, count, seconds=30):
        self.guest.wait(lambda: len(self.data) >= count or self.reason or self.is_over, f"{count} bytes", seconds)
        return bytes(self.data)


class Guest:
    """The guest's end of the port."""

    def __init__(self, port, greets=True):
        self.port = port
        self.port.setblocking(False)
        self.streams, self.last, self.input = {}, 0, b""
        self.rows, self.is_gone, self.greeted = [], False, False
        if greets:
            self.write(frame(HELLO, 0, struct.pack("<I", 1)))

    def write(self, data):
        data = memoryview(data)
        end = time.monotonic() + 60
        while data and not self.is_gone:
            _, writable, _ = select.select([self.port], [self.port], [], 60)
            self.read()
            if writable:
                with contextlib.suppress(BlockingIOError):
                    try:
                        data = data[self.port.send(data[:65536]):]
                    except (BrokenPipeError, ConnectionResetError):
                        self.is_gone = True
            assert time.monotonic() < end, "the gateway takes nothing"

    def read(self):
        try:
            data = self.port.recv(1 << 20)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.is_gone = True
        self.input += data
        at, answers = 0, []
        while len(self.input) - at >= 12:
            length, kind, _, _, number = struct.unpack_from("<IBBHI", self.input, at)
            if len(self.input) - at < 4 + length:
                break
            self.take(kind, number, self.input[at + 12:at + 4 + length], answers)
            at += 4 + length
        self.input = self.input[at:]
        if answers:
            self.write(b"".join(answers))

    def take(self, kind, number, payload, answers):
        stream = self.streams.get(number) or Stream(self, number)
        if kind == HELLO:
            self.greeted = True
        elif kind == DECISION:
            self.rows.append(json.loads(payload))
        elif kind == OPENED:
            stream.is_opened = True
        elif kind == CREDIT:
            stream.room += struct.unpack("<I", payload)[0]
        elif kind == DATA:
            stream.data += payload
            if stream.gives_credit:
                answers.append(frame(CREDIT, number, struct.pack("<I", len(payload))))
        elif kind == FIN:
            stream.is_over = True
        elif kind == RST:
            stream.reason = REASONS[struct.unpack_from("<I", payload)[0]]

    def wait(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if self.is_gone:
                pytest.fail(f"the gateway ended the port before {what}", pytrace=False)
            if time.monotonic() > end:
                pytest.fail(f"waited {seconds} s in vain for {what}", pytrace=False)
            select.select([self.port], [], [], 0.2)
            self.read()

    def open(self, name, port=443):
        self.last += 1
        self.streams[self.last] = Stream(self, self.last)
        name = name.encode() if isinstance(name, str) else name
        self.write(frame(OPEN, self.last, struct.pack("<H", port) + name))
        return self.streams[self.last]

    def ask(self, name):
        self.write(frame(ASKED, 0, name.encode() if isinstance(name, str) else name))

    def wait_row(self, seconds=30, **wanted):
        def find():
            return [row for row in self.rows if all(row[key] == value for key, value in wanted.items())]
        self.wait(find, f"a row with {wanted} among {self.rows}", seconds)
        return find()[-1]

    def wait_gone(self, seconds=30):
        end = time.monotonic() + seconds
        while not self.is_gone:
            assert time.monotonic() < end, "the gateway goes on"
            select.select([self.port], [], [], 0.2)
            self.read()


class Gateway:
    """The program, in a network, with one guest."""

    def __init__(self, network, folder, patterns, greets=True, program=None, **config):
        self.network = network
        folder = pathlib.Path(folder)
        self.rows_path = folder / "egress.jsonl"
        self.errors_path = folder / "gateway.stderr"
        config = {"schema": 1, "uid": 65534, "patterns": patterns, "learn": False, "wide": False, "proxy": None,
                  "connect_ms": 3000, "idle_ms": 60000, "handshake_ms": 5000, **config}
        (folder / "gateway.json").write_text(json.dumps(config))
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        program = program or [build_dir() / "src/gateway/resoluto-gateway"]
        argv = network.argv(*program)
        script = f'exec "$@" 3<&{theirs.fileno()} {theirs.fileno()}<&- 4>>{self.rows_path} 5<{folder / "gateway.json"}'
        with open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(["bash", "-c", script, "bash", *argv], pass_fds=[theirs.fileno()],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=errors, extra_groups=[54321])
        network.children.append(self.process)
        theirs.close()
        self.guest = Guest(ours, greets)
        # It reads what it needs of files before it says hello.
        while not self.guest.greeted and self.process.poll() is None:
            select.select([ours], [], [], 0.05)
            self.guest.read()

    def rows(self):
        lines = self.rows_path.read_bytes().splitlines() if self.rows_path.exists() else []
        return [json.loads(line) for line in lines]

    def pid(self):
        """Of the gateway itself: bash and nsenter became it."""
        return self.process.pid

    def errors(self):
        return self.errors_path.read_text()

    def end(self):
        """As a run ends; returns all rows."""
        self.guest.port.close()
        assert self.process.wait(30) == 0, self.errors()
        return self.rows()

    def is_locked(self):
        with open(self.rows_path, "rb") as rows:
            try:
                fcntl.flock(rows, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False


class Tls:
    """A TLS client whose bytes go through a stream."""

    def __init__(self, stream, context, name):
        self.stream, self.incoming, self.outgoing = stream, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self.seen = 0

    def pump(self):
        if self.outgoing.pending:
            self.stream.send(self.outgoing.read())

    def step(self, call, *arguments):
        while True:
            try:
                result = call(*arguments)
                self.pump()
                return result
            except ssl.SSLWantReadError:
                self.pump()
                data = self.stream.wait_data(self.seen + 1)[self.seen:]
                self.seen += len(data)
                if not data:
                    raise ConnectionError(self.stream.reason or "fin") from None
                self.incoming.write(data)

    def handshake(self):
        self.step(self.tls.do_handshake)
        return self

    def get(self, host, path="/"):
        self.step(self.tls.write, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        body = b""
        while True:
            try:
                piece = self.step(self.tls.read, 65536)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError, ConnectionError):
                return body
            if not piece:
                return body
            body += piece


def client_hello(name, context=None):
    """As OpenSSL makes it; name None: without SNI."""
    context = context or ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def make_hello(names=(b"pypi.org",), extra=b"", extensions=None, record=16384, sni=None):
    """A ClientHello by hand: names in the list of its server_name, in records of at most `record` bytes."""
    if sni is None:
        entries = b"".join(b"\0" + struct.pack(">H", len(n)) + n for n in names)
        sni = struct.pack(">HHH", 0, len(entries) + 2, len(entries)) + entries
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
    tail = (sni if extensions is None else extensions) + extra
    body += struct.pack(">H", len(tail)) + tail
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(message[i:i + record])) + message[i:i + record]
                    for i in range(0, len(message), record))


def have(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        pytest.fail(f"not installed: {' '.join(missing)} (scripts/lib/packages.sh)", pytrace=False)


def wait_port(network, address, port):
    wait_until(lambda: network.can_connect(address, port), f"{address}:{port}", 30)
