# SPDX-License-Identifier: Apache-2.0
"""Memory (PSS) of a gateway that relays this many connections, each of which has said hello and had an answer, and is
idle now.  Runs in a network namespace of its own: the server is a thread here, on an address that looks public."""
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

SITE = "151.101.0.223"
HELLO, OPEN, DATA = 1, 32, 35
ANSWER = bytes(4096)


def serve(server, kept):
    while True:
        connection, _ = server.accept()
        connection.recv(65536)
        connection.sendall(ANSWER)
        kept.append(connection)


def prepare(folder):
    hosts = os.path.join(folder, "hosts")
    with open(hosts, "w", encoding="ascii") as file:
        file.write(f"{SITE} example.org\n")
    for command in (["mount", "--bind", hosts, "/etc/hosts"], ["ip", "link", "set", "lo", "up"],
                    ["ip", "address", "add", f"{SITE}/32", "dev", "lo"]):
        subprocess.run(command, check=True)
    server = socket.create_server((SITE, 443), backlog=4096)
    threading.Thread(target=serve, args=(server, []), daemon=True).start()


def start(folder):
    ours, theirs = socket.socketpair()
    config = os.path.join(folder, "config")
    with open(config, "w", encoding="ascii") as file:
        json.dump({"schema": 1, "uid": 65534, "patterns": ["example.org"], "learn": False, "wide": False, "proxy": None,
                   "connect_ms": 10000, "idle_ms": 300000, "handshake_ms": 60000}, file)
    program = os.path.join(os.path.dirname(os.path.dirname(sandbox.cli())), "gateway", "resoluto-gateway")
    script = f'exec "$0" 3<&{theirs.fileno()} {theirs.fileno()}<&- 4>>{folder}/rows 5<{config}'
    child = subprocess.Popen(["bash", "-c", script, program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    return child, ours


def frame(kind, stream, payload):
    return struct.pack("<IBBHI", 8 + len(payload), kind, 0, 0, stream) + payload


def hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="example.org")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def read_until(port, count):
    """So many bytes of the port: the answers of all, with what else it says."""
    seen = 0
    while seen < count:
        if not select.select([port], [], [], 60)[0]:
            sys.exit(f"only {seen} of {count} bytes came")
        seen += len(port.recv(1 << 20))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        prepare(folder)
        child, port = start(folder)
        port.sendall(frame(HELLO, 0, struct.pack("<I", 1)))
        first = hello()
        for stream in range(1, count + 1):
            port.sendall(frame(OPEN, stream, struct.pack("<H", 443) + b"example.org") + frame(DATA, stream, first))
        # HELLO, and for each OPENED and DATA.
        read_until(port, 16 + count * (12 + 12 + len(ANSWER)))
        time.sleep(1)
        pss = sandbox.pss_kib(child.pid) / 1024
        port.close()
        if child.wait(30) != 0:
            sys.exit("the gateway failed")
        subprocess.run(["umount", "/etc/hosts"], check=True)
    print(f"{count} idle connections: {pss:.2f} MiB")
    print("limit 8")
    print(f"value {pss:.2f} MiB")


main()
