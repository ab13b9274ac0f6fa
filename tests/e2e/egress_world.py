# SPDX-License-Identifier: Apache-2.0
"""A world without a way out, for runs with egress: a namespace with a real name server and real web servers on addresses that
look public, and the command line in it.  The gateway of a run is there too, and reaches nothing else."""
import json
import pathlib
import subprocess
import sys

import jsonschema

from authority import Authority
from conftest import ROOT, Processes, wait_until

sys.path.insert(0, str(ROOT / "tests/egress"))
import rig  # noqa: E402

SCHEMA = json.loads((ROOT / "spec/run-result.schema.json").read_text())
ZONE = {
    "site.example.org": [rig.SITE, rig.SITE6],
    "six.example.org": [rig.SITE6],
    "raw.example.org": [rig.SITE],
    "index.example.org": [rig.SITE],
    "other.example.net": [rig.OTHER],
    "inside.example.org": ["10.0.0.1"],
    "metadata.example.org": ["169.254.169.254"],
}

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;
events {{ worker_connections 4096; }}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; sendfile on;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 0; keepalive_timeout 600; keepalive_requests 100000;
  types {{ text/html html; application/octet-stream whl gz; }}
  server {{ listen {site}:443 ssl backlog=4096; listen [{site6}]:443 ssl; listen {site}:80 backlog=4096; listen {site}:8443 ssl;
    ssl_certificate {pem}; ssl_certificate_key {key};
    location / {{ return 200 "site $host $ssl_server_name $remote_addr\\n"; }}
    location /files/ {{ alias {folder}/files/; autoindex on; }}
    location /simple/ {{ alias {folder}/simple/; autoindex on; }} }}
  server {{ listen {other}:443 ssl; ssl_certificate {pem}; ssl_certificate_key {key};
    location / {{ return 200 "other\\n"; }} }}
}}
"""

# What runs inside begins with this: a client that trusts the authority of the world.
PROLOGUE = """
import json, os, socket, ssl, struct, sys, threading, time, urllib.error, urllib.request
CONTEXT = ssl.create_default_context(cafile="/workspace/ca.pem")
def get(url, timeout=60):
    return urllib.request.urlopen(url, context=CONTEXT, timeout=timeout).read()
def hello(name):
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = CONTEXT.wrap_bio(into, out, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()
def question(name, kind=1, family=1, tail=b"", additional=0):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".") if l)
    return struct.pack(">HHHHHH", 4711, 0x100, 1, 0, 0, additional) + labels + b"\\0" + struct.pack(">HH", kind, family) + tail
def ask(message, tcp=False):
    if tcp:
        with socket.create_connection(("127.0.0.1", 53), 20) as s:
            s.sendall(struct.pack(">H", len(message)) + message)
            size = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
            return s.recv(size, socket.MSG_WAITALL)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.sendto(message, ("127.0.0.1", 53))
        return s.recv(65536)
def say(*words, end="\\n"):
    print(*words, end=end, flush=True)
"""


class World:
    """Servers for a whole file of tests."""

    zone = ZONE

    def __init__(self, factory, sandbox):
        rig.have("nginx", "dnsmasq", "openssl", "ip", "nsenter")
        self.factory, self.sandbox = factory, sandbox
        self.folder = factory.mktemp("world")
        self.folder.chmod(0o755)
        self.network = rig.Network(self.folder)
        self.authority = Authority(self.folder)
        self.dns_log = self.folder / "dnsmasq.log"
        self.start_names()
        self.start_web()

    def start_names(self):
        lines = [f"host-record={name},{','.join(addresses)}" for name, addresses in self.zone.items()]
        config = self.folder / "dnsmasq.conf"
        config.write_text("no-resolv\nno-hosts\nkeep-in-foreground\nuser=root\nlisten-address=127.0.0.1\nbind-interfaces\n"
                          f"local=/#/\nlog-queries\nlog-facility={self.dns_log}\n" + "\n".join(lines) + "\n")
        self.network.start("dnsmasq", "-C", config, stderr=subprocess.DEVNULL)
        rig.wait_port(self.network, "127.0.0.1", 53)

    def start_web(self):
        pem, key = self.authority.issue("site.example.org", "*.example.org", "other.example.net")
        (self.folder / "files").mkdir()
        (self.folder / "simple").mkdir()
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(folder=self.folder, site=rig.SITE, site6=rig.SITE6, other=rig.OTHER, pem=pem,
                                       key=key))
        self.network.start("nginx", "-p", self.folder, "-c", config, stderr=subprocess.DEVNULL)
        rig.wait_port(self.network, rig.SITE, 443)

    def raw(self, mode, port, address=rig.SITE):
        """A server of tests/egress/raw_server.py; returns the file it writes to."""
        file = self.folder / f"raw-{port}"
        self.network.start("python3", ROOT / "tests/egress/raw_server.py", mode, address, port, file)
        rig.wait_port(self.network, address, port)
        return file

    def accesses(self):
        return (self.folder / "access.log").read_text()

    def asked(self):
        """What the name server was asked for."""
        return [line.split()[-3] for line in self.dns_log.read_text().splitlines() if " query[" in line]

    # runs

    def workspace(self, program, files=()):
        folder = self.factory.mktemp("workspace")
        (folder / "ca.pem").write_bytes((self.authority.folder / "ca.pem").read_bytes())
        (folder / "main.py").write_text(PROLOGUE + program)
        for name, content in dict(files).items():
            (folder / name).write_bytes(content)
        return folder

    def argv(self, options, workspace):
        return self.network.argv(self.sandbox.cli, "run", "--workspace", workspace, *options, "--", "python3", "main.py")

    def start(self, program, *options, env=None, workspace=None, **how):
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.argv(options, workspace or self.workspace(program)), stdin=subprocess.DEVNULL,
                                env={**self.sandbox.env, **(env or {})}, **how)

    def run(self, program, *options, timeout=300, **how):
        """To its end; returns the finished process."""
        process = self.start(program, *options, **how)
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def result(self, program, *options, **how):
        """To its end; returns its result, whose stdout is what the program said."""
        done = self.run(program, "--json", *options, **how)
        assert done.stdout, done.stderr.decode()
        result = json.loads(done.stdout)
        jsonschema.Draft202012Validator(SCHEMA).validate(result)
        result["said"] = done.stderr.decode()
        return result

    def cli(self, *arguments, timeout=120, **how):
        return subprocess.run(self.network.argv(self.sandbox.cli, *arguments), capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env=self.sandbox.env, **how)

    def gateways(self):
        return [p for p in Processes.of_program("resoluto-gateway") if Processes.is_alive(p) and self.is_ours(p)]

    def is_ours(self, pid):
        """Of this state directory: its file of rows lies there."""
        try:
            return str(self.sandbox.state) in str(pathlib.Path(f"/proc/{pid}/fd/4").readlink())
        except OSError:
            return False

    def await_gateway(self):
        return wait_until(self.gateways, "the gateway")[0]

    def close(self):
        self.network.close()


def rows_of(result, **wanted):
    return [row for row in result["egress"] if all(row[key] == value for key, value in wanted.items())]


def wait_line(process, want):
    line = process.stdout.readline()
    assert line == want, (line, process.stderr.read() if process.poll() is not None else "")


def show(result):
    """For a failure: all of it."""
    return json.dumps(result, indent=1)
