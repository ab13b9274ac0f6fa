#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what real TLS clients say first, as samples of fuzz_client_hello and of the unit test egress-hello-samples.

usage: tests/fuzz/record_hellos.py FOLDER [CLIENT...]      FOLDER: tests/fuzz/samples/client_hello

Each client connects on loopback and asks for hello.example.org; what it sends before it hears anything is written to
FOLDER/CLIENT.  Those named *-retry go on to a real server that asks for another hello (HelloRetryRequest), and
what is written is all that the client said in the clear and a bit more.  The clients are those of the machine (openssl,
gnutls-cli, go, python3, node, java, curl, wget); one that is missing is said and left out.  chromium-like is made here,
byte by byte, in the shape of Chromium 131: no package index has a browser that runs in a test.
"""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

NAME = "hello.example.org"
QUIET_S = 0.5  # without a byte for so long, a client has said what it has to say
CLIENT_S = 60  # go and java are compiled first

GO = r"""
package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"os"
)

// One ECHConfig for public name hello.example.org, with a fresh key.
func ech() []byte {
	key, _ := ecdh.X25519().GenerateKey(rand.Reader)
	public := key.PublicKey().Bytes()
	u16 := func(b []byte, n int) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) }
	c := []byte{7}
	c = u16(c, 0x20)
	c = append(u16(c, len(public)), public...)
	c = u16(c, 4)
	c = u16(u16(c, 1), 1)
	c = append(c, 32, byte(len(os.Args[2])))
	c = append(c, os.Args[2]...)
	c = u16(c, 0)
	config := append(u16(u16(nil, 0xfe0d), len(c)), c...)
	return append(u16(nil, len(config)), config...)
}

func main() {
	config := &tls.Config{ServerName: os.Args[2], NextProtos: []string{"h2", "http/1.1"}}
	switch os.Args[3] {
	case "tls10":
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	case "tls12":
		config.MaxVersion = tls.VersionTLS12
	case "ech":
		config.ServerName = "secret.example.org"
		config.MinVersion = tls.VersionTLS13
		config.EncryptedClientHelloConfigList = ech()
	}
	tls.Dial("tcp", os.Args[1], config)
}
"""

JAVA = r"""
import java.util.List;
import javax.net.ssl.*;

public class Hello {
	public static void main(String[] args) throws Exception {
		SSLContext context = SSLContext.getDefault();
		SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", Integer.parseInt(args[0]));
		SSLParameters parameters = socket.getSSLParameters();
		parameters.setServerNames(List.of(new SNIHostName(args[1])));
		parameters.setApplicationProtocols(new String[] { "h2", "http/1.1" });
		if (args.length > 2)
			parameters.setProtocols(new String[] { args[2] });
		socket.setSSLParameters(parameters);
		socket.startHandshake();
	}
}
"""

PYTHON = """
import socket, ssl, sys
context = ssl.create_default_context()
context.set_alpn_protocols(["http/1.1"])
if len(sys.argv) > 3:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname=sys.argv[2])
"""

NODE = """
const [port, servername, maxVersion] = process.argv.slice(1);
require("tls").connect({host: "127.0.0.1", port, servername, maxVersion, ALPNProtocols: ["h2", "http/1.1"]})
	.on("error", () => {});
"""


class Loopback:
    """A listener that keeps what its first client says: until it falls silent, or on its way to a real server."""

    def __init__(self, server_port=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = b""
        self.server_port = server_port
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        self.listener.settimeout(CLIENT_S)
        with contextlib.suppress(OSError):
            client, _ = self.listener.accept()
            client.settimeout(QUIET_S)
            server = socket.create_connection(("127.0.0.1", self.server_port)) if self.server_port else None
            if server:
                threading.Thread(target=self.answer, args=(server, client), daemon=True).start()
            while data := client.recv(65536):
                self.heard += data
                if server:
                    server.sendall(data)
        with contextlib.suppress(OSError, UnboundLocalError):
            client.close()
        self.listener.close()

    @staticmethod
    def answer(server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)


def run(arguments, **options):
    """A client, of which nothing is expected but its first words; True unless the program is missing."""
    if not shutil.which(arguments[0]):
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=CLIENT_S, check=False, **options)
    return True


def openssl(*options):
    return lambda port, _: run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", NAME, *options])


def gnutls(priority):
    return lambda port, _: run(["gnutls-cli", "--insecure", "--sni-hostname", NAME, "-p", str(port), "--priority",
                                priority, "127.0.0.1"])


def go(mode):
    def client(port, work):
        (work / "hello.go").write_text(GO)
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        return run(["go", "run", "hello.go", f"127.0.0.1:{port}", NAME, mode], cwd=work, env=environment)
    return client


def java(*protocol):
    def client(port, work):
        (work / "Hello.java").write_text(JAVA)
        return run(["java", "-Djdk.tls.client.enableSessionTicketExtension=true", "Hello.java", str(port), NAME,
                    *protocol], cwd=work)
    return client


def curl(*options):
    return lambda port, _: run(["curl", "-sk", "--noproxy", "*", "--resolve", f"{NAME}:{port}:127.0.0.1", *options,
                                f"https://{NAME}:{port}/"])


OLD = "DEFAULT:@SECLEVEL=0"
CLIENTS = {
    "openssl": openssl(),
    "openssl-tls10": openssl("-tls1", "-cipher", OLD),
    "openssl-tls11": openssl("-tls1_1", "-cipher", OLD),
    "openssl-tls12": openssl("-tls1_2"),
    "openssl-tls13": openssl("-tls1_3"),
    "openssl-alpn-status": openssl("-alpn", "h2,http/1.1", "-status"),
    "openssl-groups": openssl("-groups", "P-521:X448:ffdhe8192:X25519"),
    "openssl-many-alpn": openssl("-alpn", ",".join(f"protocol-{i:04}" for i in range(300))),
    "gnutls": gnutls("NORMAL"),
    "gnutls-tls10": gnutls("NORMAL:-VERS-ALL:+VERS-TLS1.0:%COMPAT"),
    "gnutls-tls12": gnutls("NORMAL:-VERS-ALL:+VERS-TLS1.2"),
    "go": go("default"),
    "go-tls10": go("tls10"),
    "go-tls12": go("tls12"),
    "go-ech": go("ech"),
    "python": lambda port, _: run(["python3", "-c", PYTHON, str(port), NAME]),
    "python-tls12": lambda port, _: run(["python3", "-c", PYTHON, str(port), NAME, "tls12"]),
    "node": lambda port, _: run(["node", "-e", NODE, str(port), NAME]),
    "node-tls12": lambda port, _: run(["node", "-e", NODE, str(port), NAME, "TLSv1.2"]),
    "java": java(),
    "java-tls12": java("TLSv1.2"),
    "curl": curl(),
    "curl-http11-tls12": curl("--http1.1", "--tls-max", "1.2"),
}


@contextlib.contextmanager
def real_server(work, *options):
    """openssl s_server with a certificate of its own; its port."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert",
                    "-subj", f"/CN={NAME}"], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-key", "key", "-cert", "cert",
                               "-quiet", *options], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


def keep_session(port, work, *options):
    """A finished handshake, whose ticket is kept for the next hello."""
    client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", NAME, "-sess_out",
                               "session", *options], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(1)
    client.communicate(b"Q\n", timeout=10)


def resumed(server_options, session_options, hello_options):
    def record(work):
        with real_server(work, *server_options) as port:
            keep_session(port, work, *session_options)
            loopback = Loopback()
            run(["openssl", "s_client", "-connect", f"127.0.0.1:{loopback.port}", "-servername", NAME, "-sess_in",
                 "session", *hello_options], cwd=work)
            loopback.thread.join()
            return loopback.heard
    return record


def retried(client):
    """The server wants a group that the client did not send a share of."""
    def record(work):
        with real_server(work, "-groups", "P-521") as port:
            loopback = Loopback(port)
            if not client(loopback.port, work):
                return b""
            loopback.thread.join()
            return loopback.heard
    return record


def early(work):
    (work / "early").write_bytes(b"GET / HTTP/1.1\r\n\r\n")
    return resumed(["-early_data", "-max_early_data", "16384"], [], ["-early_data", "early"])(work)


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def extension(kind, data):
    return struct.pack(">H", kind) + vector(2, data)


def numbers(*values):
    return b"".join(struct.pack(">H", value) for value in values)


def chromium_like(_work):
    """Chromium 131: GREASE at both ends, ECH (grease), X25519MLKEM768, ALPS, extensions in a shuffled order."""
    dice = random.Random(131)
    grease = [0x0a0a + 0x1010 * n for n in dice.sample(range(16), 5)]
    shares = (numbers(grease[1]) + vector(2, b"\0") + numbers(0x11ec) + vector(2, dice.randbytes(1216))
              + numbers(0x001d) + vector(2, dice.randbytes(32)))
    middle = [
        extension(0, vector(2, b"\0" + vector(2, NAME.encode()))),
        extension(23, b""),
        extension(0xff01, b"\0"),
        extension(10, vector(2, numbers(grease[1], 0x11ec, 0x1d, 0x17, 0x18))),
        extension(11, b"\1\0"),
        extension(35, b""),
        extension(16, vector(2, b"\2h2\x08http/1.1")),
        extension(5, b"\1\0\0\0\0"),
        extension(13, vector(2, numbers(0x403, 0x804, 0x401, 0x503, 0x805, 0x501, 0x806, 0x601))),
        extension(18, b""),
        extension(51, vector(2, shares)),
        extension(45, b"\1\1"),
        extension(43, vector(1, numbers(grease[2], 0x304, 0x303))),
        extension(27, b"\2\0\2"),
        extension(0x44cd, vector(2, b"\2h2")),
        extension(0xfe0d, b"\0" + numbers(1, 1) + b"\x2a" + vector(2, dice.randbytes(32)) + vector(2, dice.randbytes(208))),
    ]
    dice.shuffle(middle)
    ciphers = numbers(grease[0], 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
                      0x9c, 0x9d, 0x2f, 0x35)
    body = (b"\3\3" + dice.randbytes(32) + vector(1, dice.randbytes(32)) + vector(2, ciphers) + vector(1, b"\0")
            + vector(2, extension(grease[3], b"") + b"".join(middle) + extension(grease[4], b"\0")))
    return b"\x16\3\1" + vector(2, b"\1" + vector(3, body))


RECORDINGS = {
    "openssl-resumed-tls12": resumed(["-tls1_2"], [], ["-tls1_2"]),
    "openssl-resumed-tls13": resumed([], [], []),
    "openssl-early-data": early,
    "openssl-retry": retried(openssl("-groups", "X25519:P-521")),
    "python-retry": retried(CLIENTS["python"]),
    "gnutls-retry": retried(CLIENTS["gnutls"]),
    "node-retry": retried(CLIENTS["node"]),
    "chromium-like": chromium_like,
}


def record_client(client, work):
    loopback = Loopback()
    if not client(loopback.port, work):
        return b""
    loopback.thread.join()
    return loopback.heard


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or [*CLIENTS, *RECORDINGS]
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            heard = RECORDINGS[name](work) if name in RECORDINGS else record_client(CLIENTS[name], work)
        if not heard:
            print(f"{name}: not recorded (is the program there?)")
            continue
        (folder / name).write_bytes(heard)
        print(f"{name}: {len(heard)} bytes")


main()
