# SPDX-License-Identifier: Apache-2.0
"""usage: connect_proxy.py MODE ADDRESS PORT FILE TARGET: a proxy that knows CONNECT; requests go into FILE.

good answers 200 and leads to TARGET, whatever was asked for; the others: deny (403), login (407), garbage, silent,
extra (speaks on behind its answer), long (a head without end), old (HTTP/1.0), piecemeal (good, a byte at a time)."""
import socket
import sys
import threading
import time

ANSWERS = {"good": b"HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n", "old": b"HTTP/1.0 200 OK\r\n\r\n",
           "deny": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "login": b"HTTP/1.1 407 Who are you\r\n\r\n",
           "garbage": b"\x05\x00\x00\x01ok\r\n\r\n", "silent": b"", "extra": b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
           "long": b"HTTP/1.1 200 OK\r\n" + b"X-Filler: y\r\n" * 4000,
           "piecemeal": b"HTTP/1.1 200 OK\r\nVia: 1.1 test\r\n\r\n"}


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        if not piece:
            return
        head += piece
    with open(sys.argv[4], "ab") as file:
        file.write(head)
    answer = ANSWERS[sys.argv[1]]
    for i in range(0, len(answer), 1 if sys.argv[1] == "piecemeal" else 65536):
        client.sendall(answer[i:i + (1 if sys.argv[1] == "piecemeal" else 65536)])
        time.sleep(0.002)
    if sys.argv[1] in ("good", "old", "piecemeal"):
        port = int(head.split()[1].rsplit(b":", 1)[1])
        far = socket.create_connection((sys.argv[5], port))
        threading.Thread(target=pump, args=(far, client), daemon=True).start()
        pump(client, far)
    else:
        time.sleep(60)


def main():
    server = socket.create_server((sys.argv[2], int(sys.argv[3])))
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


main()
