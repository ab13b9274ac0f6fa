# SPDX-License-Identifier: Apache-2.0
"""The host's end of the channel (docs/design/channel.md), as small as a test needs it.

It boots the runner in a real virtual machine without shim and library, so that what the guest does is
seen as it is.
"""

import base64
import ctypes
import json
import mmap
import os
import pathlib
import selectors
import socket
import struct
import subprocess
import tempfile
import time

(HELLO, JOB, STARTED, STDIN, STDIN_EOF, SIGNAL, CLOCK, CREDIT) = range(1, 9)
(PUT_BEGIN, PUT_DATA, PUT_END, ACK, NAK) = range(16, 21)
VERSION = 1
PAYLOAD_MAX = 64 * 1024
MORE = 1
NAK_STORE, NAK_FULL, NAK_CRC = 1, 2, 3
UNKNOWN_SIZE = 2**64 - 1
INDEX_SIZE = 4096
CHECKED_BYTES = 16 * 1024  # larger objects would keep Python busy for long


def frame(kind, payload=b"", stream=0, flags=0):
    return struct.pack("<IBBHI", 8 + len(payload), kind, flags, 0, stream) + payload


def message(kind, payload):
    parts = [payload[i : i + PAYLOAD_MAX] for i in range(0, len(payload), PAYLOAD_MAX)] or [b""]
    return b"".join(frame(kind, part, flags=MORE if part is not parts[-1] else 0) for part in parts)


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def tsc_khz():
    """The rate of this machine's time stamp counter: the guest's clock needs the real one."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f3148c1e2204809d0c3"))  # rdtsc; shl rdx, 32; or rax, rdx; ret
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    wall, ticks = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), rdtsc()
    while time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - wall < 50_000_000:
        pass
    return (rdtsc() - ticks) * 1_000_000 // (time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - wall)


def make_inbox(archives, magic=b"RSLINBX1", disk_size=None):
    """An inbox disk as a temporary file; archives: {"workspace.tar.gz": bytes}."""
    index, body, offset = b"", b"", INDEX_SIZE
    for name, data in archives.items():
        index += name.encode().ljust(104, b"\0") + struct.pack("<QQ", offset, len(data))
        padded = data + bytes(-len(data) % INDEX_SIZE)
        body += padded
        offset += len(padded)
    disk = tempfile.NamedTemporaryFile(prefix="resoluto-inbox-")
    disk.write((magic + struct.pack("<II", len(archives), 0) + index).ljust(INDEX_SIZE, b"\0") + body)
    disk.truncate(disk_size or 1 << 30)
    disk.flush()
    return disk


def host_clock():
    """What the host says when it is asked for the time: since the epoch, and by a counter that nobody corrects."""
    return time.time_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def host_boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def make_job(argv, env=None, **members):
    """A JOB; keyword arguments are its members, env adds or (with None) removes variables."""
    variables = {
        "RESOLUTO_WORKLOAD_ARGV": json.dumps(argv),
        "RESOLUTO_RUN_ID": "run-test",
        "RESOLUTO_NODE_ID": "run",
        "RESOLUTO_HOST_BOOT_IDS": host_boot_id(),
    }
    for name, value in (env or {}).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return {"schema": 1, "env": variables, "stdin": False, "scratch": False, "redact": [], **members}


def machine_of(kernel):
    """QEMU's acceleration and machine, and the kernel's words, as its row has them (src/runtime/microvm/cmdline.c)."""
    row = pathlib.Path(kernel).with_name("MACHINE")
    if row.exists() and row.read_text().strip().endswith("-built"):
        return "tcg", "microvm,rtc=on,acpi=off", "lapic_timer_hz=1000000000 no_timer_check keepinit"
    return "tcg,thread=single", "microvm,rtc=on", ""


class Guest:
    """One virtual machine, from boot to power off.  Objects it stored are in `objects`, in order."""

    def __init__(self, job, memory_mib=256, cpus=1, inbox=None, scratch=None, refuse=None, hello=VERSION,
                 kernel=None, initrd=None, rootfs=None, clock=host_clock, qemu=(), net=None):
        self.job = job if isinstance(job, bytes) else json.dumps({"inbox": bool(inbox), **job}).encode()
        self.objects, self.puts, self.refused = {}, {}, []
        self.refuse = refuse or (lambda key: None)  # key -> NAK code or None
        self.failed = set()  # keys
        self.hello = hello
        self.clock = clock
        self.credit = 256 * 1024
        self.started = None
        self.times = {}
        self._waiting_stdin, self._stdin_ends = b"", False
        self._in = {"control": b"", "conduit": b""}
        self._selector = selectors.DefaultSelector()
        self._sockets, theirs = {}, {}
        for name in ("control", "conduit"):
            self._sockets[name], theirs[name] = socket.socketpair()
            self._selector.register(self._sockets[name], selectors.EVENT_READ, name)
        self._console = tempfile.TemporaryFile()
        env = os.environ
        disks = [("rootfs", rootfs or env["RESOLUTO_TEST_ROOTFS"], "on")]
        disks += [("inbox", inbox, "on")] if inbox else []
        disks += [("scratch", scratch, "off")] if scratch else []
        kernel = kernel or env["RESOLUTO_TEST_KERNEL"]
        accel, machine, words = machine_of(kernel)
        command = [
            env.get("RESOLUTO_LOCAL_QEMU", "qemu-system-x86_64"), "-accel", accel, "-M", machine,
            "-cpu", "max,-erms,-fsrm", "-m", f"{memory_mib}M", "-smp", str(cpus), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-kernel", kernel,
            "-initrd", initrd or env["RESOLUTO_TEST_INITRD"], "-append",
            f"console=ttyS0 quiet reboot=t panic=-1 tsc_early_khz={tsc_khz()} tsc=reliable noreplace-smp {words}",
            "-serial", "stdio", "-device", f"virtio-serial-device,max_ports={4 if net else 3}",
        ]
        if net:  # the end of a socket; the test has the other one
            theirs["net"] = net
        for name, sock in theirs.items():
            command += ["-chardev", f"socket,id={name},fd={sock.fileno()}",
                        "-device", f"virtserialport,chardev={name},name={name}"]
        for serial, path, readonly in disks:
            command += ["-drive", f"if=none,id={serial},file={path},format=raw,readonly={readonly}",
                        "-device", f"virtio-blk-device,drive={serial},serial={serial}"]
        command += qemu
        self._begin = time.monotonic()
        self.qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._console,
                                     stderr=subprocess.STDOUT,
                                     pass_fds=[sock.fileno() for sock in theirs.values()])
        for sock in theirs.values():
            sock.close()

    # What the tests do.

    def send_stdin(self, data, end=True):
        self._waiting_stdin += data
        self._stdin_ends = self._stdin_ends or end
        self._push_stdin()

    def signal(self, number):
        self._send("control", frame(SIGNAL, struct.pack("<I", number)))

    def run(self, until=None, timeout=240):
        """Serve the guest until it is gone, or until(self) is true."""
        give_up = time.monotonic() + timeout
        while not (until and until(self)):
            if not self._selector.get_map():
                break
            assert time.monotonic() < give_up, "the guest took too long\n" + self.console()
            for key, _ in self._selector.select(1):
                self._receive(key.data)
        if not until:
            code = self.qemu.wait(timeout=30)
            assert code == 0, f"QEMU ended with {code} (negative: killed by that signal)\n" + self.console()
            self.times["gone"] = time.monotonic() - self._begin
            self.console_text = self.console()
        return self

    def close(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
            self.qemu.wait()
        for sock in self._sockets.values():
            sock.close()
        self._console.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What came of it.

    def console(self):
        self._console.seek(0)
        return self._console.read().decode(errors="replace")

    def result(self):
        assert "result.json" in self.objects, f"no result; {self.times}\n{self.console_text}"
        return json.loads(self.objects["result.json"])

    def events(self):
        chunks = [self.objects[key] for key in sorted(self.objects) if key.startswith("events-")]
        return [json.loads(line) for line in b"".join(chunks).decode("ascii").splitlines()]

    def output(self, stream=None, kind="workload"):
        """The exact bytes of a program: of both streams in the merged order, or of one."""
        events = self.events()
        spans = {e["span_id"] for e in events if e["event"] == "open" and e["kind"] == kind}
        out = b""
        for event in events:
            data = event.get("data", {})
            if event["event"] != "log" or event.get("parent_span_id") not in spans:
                continue
            if stream and data.get("stream") != stream:
                continue
            out += base64.b64decode(data["b64"]) if "b64" in data else data["line"].encode()
            out += b"" if data.get("nl") is False else b"\n"
        return out

    # How it works.

    def _send(self, port, data):
        try:
            self._sockets[port].sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _push_stdin(self):
        while self._waiting_stdin and self.credit and "hello" in self.times:
            part = self._waiting_stdin[: min(self.credit, PAYLOAD_MAX)]
            self._waiting_stdin = self._waiting_stdin[len(part) :]
            self.credit -= len(part)
            self._send("control", frame(STDIN, part))
        if self._stdin_ends and not self._waiting_stdin and "hello" in self.times:
            self._send("control", frame(STDIN_EOF))
            self._stdin_ends = False

    def _receive(self, port):
        try:
            data = self._sockets[port].recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(self._sockets[port])
            return
        self._in[port] += data
        while len(self._in[port]) >= 4:
            size = 4 + struct.unpack_from("<I", self._in[port])[0]
            if len(self._in[port]) < size:
                break
            _, kind, flags, zero, stream = struct.unpack_from("<IBBHI", self._in[port])
            assert zero == 0
            payload = self._in[port][12:size]
            self._in[port] = self._in[port][size:]
            getattr(self, "_on_" + port)(kind, stream, payload)

    def _on_control(self, kind, stream, payload):
        if kind == HELLO:
            self.times["hello"] = time.monotonic() - self._begin
            self._send("control", frame(HELLO, struct.pack("<I", self.hello)) +
                       frame(CLOCK, struct.pack("<QQ", *self.clock())) + message(JOB, self.job))
            self._push_stdin()
        elif kind == STARTED:
            self.times["started"] = time.monotonic() - self._begin
            self.started = json.loads(payload)
        elif kind == CLOCK:
            assert payload == b""
            self._send("control", frame(CLOCK, struct.pack("<QQ", *self.clock())))
        elif kind == CREDIT:
            self.credit += struct.unpack("<I", payload)[0]
            self._push_stdin()
        else:
            raise AssertionError(f"frame {kind} on control")

    def _on_conduit(self, kind, stream, payload):
        if kind == HELLO:
            self._send("conduit", frame(HELLO, struct.pack("<I", self.hello)))
        elif kind == PUT_BEGIN:
            assert stream not in self.puts
            self.puts[stream] = [payload[8:].decode(), struct.unpack("<Q", payload[:8])[0], [], None]
            key = self.puts[stream][0]
            code = self.refuse(key) or (self.failed and key == "_manifest.json" and NAK_STORE)
            if code:
                self.puts[stream][3] = code
                self.refused.append(key)
                self._note_failure(key)
                self._send("conduit", frame(NAK, struct.pack("<I", code) + b"refused by the test", stream))
        elif kind == PUT_DATA:
            self.puts[stream][2].append(payload)
        elif kind == PUT_END:
            self._end_put(stream, struct.unpack("<I", payload)[0])
        else:
            raise AssertionError(f"frame {kind} on conduit")

    def _note_failure(self, key):
        """No manifest is stored before it was sent again (src/shim/demux.c)."""
        if key == "result.json" or key.startswith("events-"):
            self.failed.add(key)

    def _end_put(self, stream, crc):
        key, size, parts, refused = self.puts.pop(stream)
        data = b"".join(parts)
        if refused:
            return
        if len(data) < CHECKED_BYTES and crc != crc32c(data):
            self._note_failure(key)
            self._send("conduit", frame(NAK, struct.pack("<I", NAK_CRC), stream))
            return
        assert size in (UNKNOWN_SIZE, len(data)) and key not in self.objects
        self.objects[key] = data
        self.failed.discard(key)
        self.times.setdefault(key, time.monotonic() - self._begin)
        self._send("conduit", frame(ACK, stream=stream))


def run(argv, env=None, stdin=None, job=None, timeout=240, **options):
    """Run one program to its end."""
    members = {"stdin": True} if stdin is not None else {}
    with Guest(job if job is not None else make_job(argv, env, **members), **options) as guest:
        if stdin is not None:
            guest.send_stdin(stdin)
        guest.run(timeout=timeout)
        return guest
