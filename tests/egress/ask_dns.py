# SPDX-License-Identifier: Apache-2.0
"""usage: ask_dns.py NAME TYPE udp|tcp SERVER: one question; prints the addresses of the answer, or its code."""
import ipaddress
import socket
import struct
import sys

TYPES = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65, "ANY": 255}
CODES = {0: "NODATA", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}


def skip_name(data, at):
    while data[at]:
        if data[at] >= 0xc0:
            return at + 2
        at += 1 + data[at]
    return at + 1


def main():
    name, kind, how, server = sys.argv[1:]
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + question + struct.pack(">HH", TYPES[kind], 1)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if how == "tcp" else socket.SOCK_DGRAM) as asker:
        asker.settimeout(5)
        asker.connect((server, 53))
        if how == "tcp":
            asker.sendall(struct.pack(">H", len(query)) + query)
            size = struct.unpack(">H", asker.recv(2, socket.MSG_WAITALL))[0]
            data = asker.recv(size, socket.MSG_WAITALL)
        else:
            asker.send(query)
            data = asker.recv(4096)
    code, count = data[3] & 15, struct.unpack_from(">H", data, 6)[0]
    at, found = skip_name(data, 12) + 4, []
    for _ in range(count):
        at = skip_name(data, at)
        size = struct.unpack_from(">H", data, at + 8)[0]
        found.append(str(ipaddress.ip_address(data[at + 10:at + 10 + size])))
        at += 10 + size
    print(" ".join(found) or CODES.get(code, code))


main()
