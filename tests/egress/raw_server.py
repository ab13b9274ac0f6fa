# SPDX-License-Identifier: Apache-2.0
"""usage: raw_server.py MODE ADDRESS PORT [FILE]: a TCP server that does one odd thing to each connection.

echo        sends back what comes, and its FIN after the client's
record      appends what comes to FILE, one line of hex a connection
after-fin   reads to the client's FIN, then sends how many bytes it got, then closes
late        the same, but begins to read after 1.5 s
talk        sends one line and its FIN at once, then counts what still comes into FILE
enough      reads a little, answers 64 KiB and closes on what was not read: a reset right behind the answer
hang-up     reads once, sends one line and closes: what comes later is answered by a reset
reset       resets after the first bytes
flood       sends for ever after the first bytes
big         sends 8 MiB after the first bytes, then closes
deaf        never reads
"""
import os
import socket
import struct
import sys
import threading
import time


def count_all(connection):
    count = 0
    while piece := connection.recv(65536):
        count += len(piece)
    return count


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


def record(connection):
    data = b""
    try:
        connection.settimeout(5)
        while piece := connection.recv(65536):
            data += piece
    except OSError:
        pass
    append(data.hex() + "\n")


def append(text):
    with open(sys.argv[4], "a", encoding="ascii") as file:
        file.write(text)


def after_fin(connection):
    connection.sendall(b"%d bytes" % count_all(connection))


def late(connection):
    time.sleep(1.5)
    after_fin(connection)


def talk(connection):
    connection.sendall(b"last words\n")
    connection.shutdown(socket.SHUT_WR)
    append(f"{count_all(connection)}\n")


def hang_up(connection):
    connection.recv(65536)
    connection.sendall(b"last words\n")


def enough(connection):
    connection.recv(4096)
    connection.sendall(bytes(range(256)) * 256)
    time.sleep(0.5)  # by then it has gone out


def reset(connection):
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def flood(connection):
    connection.recv(65536)
    while True:
        connection.sendall(bytes(65536))


def big(connection):
    connection.recv(65536)
    connection.sendall(os.urandom(1 << 20) * 8)


def deaf(connection):
    threading.Event().wait()


MODES = {"echo": echo, "record": record, "after-fin": after_fin, "late": late, "talk": talk, "hang-up": hang_up, "enough": enough, "reset": reset, "flood": flood, "big": big,
         "deaf": deaf}


def serve(connection, mode):
    try:
        MODES[mode](connection)
    except OSError:
        pass
    connection.close()


def main():
    mode, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, port), family=family, backlog=4096)
    while True:
        connection, _ = server.accept()
        threading.Thread(target=serve, args=(connection, mode), daemon=True).start()


main()
