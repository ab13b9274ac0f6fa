# SPDX-License-Identifier: Apache-2.0
"""usage: odd_names.py ADDRESS FILE: a name server that is not to be trusted; what it is asked goes into FILE.

The first label says what it does: rebind (the public address, then the one whose bytes the second label has in hex, in turn), hang (no answer), fail (SERVFAIL), refuse
(REFUSED), many (40 addresses), none (NOERROR, no answer), loop (a CNAME of itself), garbage, cut (truncated: asks for
TCP, where 40 addresses come), and any other (the public address)."""
import collections
import ipaddress
import socketserver
import struct
import sys
import threading

PUBLIC = "151.101.0.223"
asked = collections.Counter()


def question(data):
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]])
        at += 1 + data[at]
    return b".".join(labels).decode("latin-1"), struct.unpack_from(">H", data, at + 1)[0], data[12:at + 5]


def answer(kind, data):
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data


def addresses_of(label, name, kind):
    if label in ("many", "cut"):
        return [f"151.101.1.{i}" for i in range(40)]
    if label == "rebind":
        asked[name, kind] += 1
        return [PUBLIC if asked[name, kind] % 2 else ipaddress.ip_address(bytes.fromhex(name.split(".")[1]))]
    return [] if label == "none" else [PUBLIC]


def records_of(label, name, kind):
    addresses = map(ipaddress.ip_address, addresses_of(label, name, kind) if kind in (1, 28) else [])
    return [answer(kind, a.packed) for a in addresses if len(a.packed) == (4 if kind == 1 else 16)]


def reply(data, over_tcp):
    name, kind, section = question(data)
    with open(sys.argv[2], "a", encoding="ascii") as file:
        file.write(f"{name} {kind}\n")
    label = name.split(".")[0]
    flags, records = 0x8180, []
    if label == "hang":
        return None
    if label == "garbage":
        return data[:2] + b"\x81\x80" + b"\xff" * 40
    if label in ("fail", "refuse"):
        flags |= 2 if label == "fail" else 5
    elif label == "loop":
        records = [answer(5, b"\xc0\x0c")]
    elif label == "cut" and not over_tcp:
        flags |= 0x200
    else:
        records = records_of(label, name, kind)
    return data[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + section + b"".join(records)


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        answer_bytes = reply(self.request[0], False)
        if answer_bytes:
            self.request[1].sendto(answer_bytes, self.client_address)


class Tcp(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(2):
            answer_bytes = reply(self.rfile.read(struct.unpack(">H", head)[0]), True)
            if answer_bytes:
                self.wfile.write(struct.pack(">H", len(answer_bytes)) + answer_bytes)


def main():
    socketserver.TCPServer.allow_reuse_address = True
    tcp = socketserver.ThreadingTCPServer((sys.argv[1], 53), Tcp)
    threading.Thread(target=tcp.serve_forever, daemon=True).start()
    socketserver.ThreadingUDPServer((sys.argv[1], 53), Udp).serve_forever()


main()
