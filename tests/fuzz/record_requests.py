#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what real HTTP clients say, as samples of fuzz_http_head and of the unit test egress-http-samples.

usage: tests/fuzz/record_requests.py FOLDER [CLIENT...]      FOLDER: tests/fuzz/samples/http_head

Each client speaks to a server on loopback that answers everything with "ok"; what it said on its first connection is
written to FOLDER/client-NAME, with the host in it (localhost and the port) replaced by a.org.  A program that is
missing is said and left out.
"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

QUIET_S = 0.3  # without a byte for so long, a request is over
CLIENT_S = 60
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"

URLLIB = """
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + "/a?b=c").read()
"""
REQUESTS = """
import requests, sys
session = requests.Session()
session.trust_env = False
session.get(sys.argv[1] + "/a b")
session.post(sys.argv[1] + "/form", data={"a": "b c"})
session.post(sys.argv[1] + "/chunks", data=iter([b"one", b"two" * 100]))
session.post(sys.argv[1] + "/file", files={"f": b"\\x00\\r\\n\\r\\n"})
session.get(sys.argv[1] + "/last")
"""
NODE = """
const http = require("http"), agent = new http.Agent({keepAlive: true, maxSockets: 1});
const ask = (method, pieces) => new Promise(done => {
	const request = http.request(process.argv[1] + "/x", {method, agent}, answer => {
		answer.resume();
		answer.on("end", done);
	});
	for (const piece of pieces)
		request.write(piece);
	request.end();
});
ask("GET", []).then(() => ask("PUT", ["one", "two".repeat(1000)])).then(() => ask("DELETE", [])).then(() => agent.destroy());
"""
NODE_FETCH = """
(async () => {
	await (await fetch(process.argv[1] + "/x")).text();
	await (await fetch(process.argv[1] + "/x", {method: "POST", body: JSON.stringify({a: 1})})).text();
})();
"""
GO = r"""
package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	url := os.Args[1]
	show := func(answer *http.Response, err error) {
		if err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
	show(http.Get(url + "/x"))
	show(http.Post(url+"/x", "text/plain", strings.NewReader("hello")))
	show(http.Post(url+"/x", "text/plain", io.MultiReader(strings.NewReader("one"), strings.NewReader("two"))))
	show(http.Get(url + "/y"))
}
"""
JAVA = r"""
import java.io.*;
import java.net.*;

public class Ask {
	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 3; i++) {
			HttpURLConnection connection = (HttpURLConnection) new URL(args[0] + "/x").openConnection();
			if (i > 0) {
				connection.setDoOutput(true);
				if (i > 1)
					connection.setChunkedStreamingMode(64);
				connection.getOutputStream().write(new byte[200]);
			}
			connection.getInputStream().readAllBytes();
		}
	}
}
"""


class Server:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"localhost:{self.listener.getsockname()[1]}"
        self.heard = []
        self.threads = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.heard.append(b"")
                self.threads.append(threading.Thread(target=self.talk, args=(client, len(self.heard) - 1), daemon=True))
                self.threads[-1].start()

    def talk(self, client, number):
        client.settimeout(QUIET_S)
        is_asked = False
        with contextlib.suppress(OSError), client:
            while True:
                try:
                    data = client.recv(65536)
                except TimeoutError:
                    last_head = self.heard[number].rpartition(b" HTTP/1.1\r\n")[2]
                    if is_asked:
                        waits = b"Expect: 100-continue" in last_head and last_head.endswith(b"\r\n\r\n")
                        client.sendall(CONTINUE if waits else ANSWER)
                    is_asked = False
                    continue
                if not data:
                    return
                self.heard[number] += data
                is_asked = True

    def close(self):
        self.listener.close()
        for thread in self.threads:
            thread.join(2)
        return self.heard[0] if self.heard else b""


def run(arguments, **options):
    if not shutil.which(arguments[0]):
        return
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=CLIENT_S, check=False, env={**environment, **options.pop("env", {})}, **options)


def curl(url, work):
    (work / "body").write_bytes(b"x" * 3000)
    run(["curl", "-s", f"{url}/a", "--next", "-s", "-d", "a=b", f"{url}/b", "--next", "-s", "-T", "body", f"{url}/c",
         "--next", "-s", "-H", "Transfer-Encoding: chunked", "-d", "@body", f"{url}/d", "--next", "-s", "-I",
         f"{url}/e"], cwd=work)


def go(url, work):
    (work / "ask.go").write_text(GO)
    run(["go", "run", "ask.go", url], cwd=work, env={"GOTOOLCHAIN": "local"})


def java(url, work):
    (work / "Ask.java").write_text(JAVA)
    run(["java", "Ask.java", url], cwd=work)


def apt(url, work):
    (work / "lists/partial").mkdir(parents=True)
    (work / "sources").write_text(f"deb [trusted=yes] {url} stable main\n")
    run(["apt-get", "-o", f"Dir::Etc::SourceList={work}/sources", "-o", "Dir::Etc::SourceParts=-", "-o",
         f"Dir::State::Lists={work}/lists", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=0", "-o",
         "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "update"])


CLIENTS = {
    "curl": curl,
    "wget": lambda url, work: run(["wget", "-q", "-t", "1", "-O", "/dev/null", f"{url}/a", f"{url}/b"], cwd=work),
    "urllib": lambda url, _: run(["python3", "-c", URLLIB, url]),
    "requests": lambda url, _: run(["python3", "-c", REQUESTS, url]),
    "node": lambda url, _: run(["node", "-e", NODE, url]),
    "node-fetch": lambda url, _: run(["node", "-e", NODE_FETCH, url]),
    "go": go,
    "java": java,
    "git": lambda url, _: run(["git", "ls-remote", f"{url}/x.git"]),
    "pip": lambda url, work: run(["python3", "-m", "pip", "download", "-q", "--isolated", "--retries", "0", "-d", str(work), "-i",
                                  f"{url}/simple/", "nothing"]),
    "npm": lambda url, work: run(["npm", "--registry", url, "--fetch-retries", "0", "--cache", str(work / "cache"),
                                  "view", "nothing"], cwd=work),
    "apt": apt,
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CLIENTS:
        server = Server()
        with tempfile.TemporaryDirectory() as work:
            CLIENTS[name](f"http://{server.host}", pathlib.Path(work))
        heard = server.close().replace(server.host.encode(), b"a.org")
        heard = heard.replace(os.uname().release.encode(), b"6.1.0")  # pip says it
        if not heard:
            print(f"{name}: not recorded (is the program there?)")
            continue
        (folder / f"client-{name}").write_bytes(heard)
        print(f"{name}: {len(heard)} bytes")


main()
