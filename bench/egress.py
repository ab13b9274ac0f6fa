# SPDX-License-Identifier: Apache-2.0
"""Egress against what it stands in for: QEMU's user network for throughput, a connection of the host for latency.

Both sides have the same client, the same guest kernel and the same server, in turns; servers, gateway and QEMU share a network
namespace that has no way out."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tests"))
import sandbox  # noqa: E402

sys.path.insert(0, str(sandbox.ROOT / "tests/egress"))
os.environ.setdefault("RESOLUTO_BUILD_DIR", str(sandbox.ROOT / "build"))
sys.path.insert(0, str(sandbox.ROOT / "tests/vm"))
import guest_host  # noqa: E402
import rig  # noqa: E402
from authority import Authority  # noqa: E402

NAME = "bench.example.org"
ROUNDS = 5
CLIENT = """
import socket, ssl, sys, time
context = ssl.create_default_context(cafile="ca.pem")
buffer = bytearray(1 << 18)
def fetch(tls):
    s = socket.create_connection((HOST, 443 if tls else 80), 60)
    if tls:
        s = context.wrap_socket(s, server_hostname=NAME)
    s.sendall(b"GET /big HTTP/1.1\\r\\nHost: " + NAME.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
    got, start = s.recv_into(buffer), time.monotonic()
    while n := s.recv_into(buffer):
        got += n
    return got / (time.monotonic() - start) / 1e6
"""
LATENCY = """
import socket, sys, time
hello = bytes.fromhex(open(sys.argv[1]).read())
times = []
for _ in range(int(sys.argv[2])):
    start = time.monotonic()
    with socket.create_connection((NAME, 443), 60) as s:
        s.sendall(hello)
        s.recv(1)
    times.append((time.monotonic() - start) * 1000)
times.sort()
print(times[len(times) // 2])
"""
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; ssl_session_cache off;
  server {{ listen {site}:443 ssl; listen {site}:80; root {folder}/files; ssl_certificate {pem}; ssl_certificate_key {key}; }} }}
"""


class Servers:
    """A name server and a web server."""

    def __init__(self, folder, mib):
        folder.chmod(0o755)
        self.folder, self.network = folder, rig.Network(folder)
        authority = Authority(folder)
        pem, key = authority.issue(NAME)
        (folder / "files").mkdir()
        with open(folder / "files/big", "wb") as file:
            file.write(os.urandom(1 << 20) * mib)
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, site=rig.SITE, pem=pem, key=key))
        self.network.hosts.write_text(f"127.0.0.1 localhost\n{rig.SITE} {NAME}\n")
        self.network.start("dnsmasq", "-k", "-C", "/dev/null", "-u", "root", "--no-resolv", "--listen-address=127.0.0.1",
                           "--bind-interfaces", f"--host-record={NAME},{rig.SITE}", stderr=subprocess.DEVNULL)
        self.network.start("nginx", "-p", folder, "-c", folder / "nginx.conf", stderr=subprocess.DEVNULL)
        rig.wait_port(self.network, rig.SITE, 443)
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (self.workspace / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
        (self.workspace / "client.py").write_text(f"HOST = NAME = {NAME!r}\n" + CLIENT)
        (self.workspace / "latency.py").write_text(f"NAME = {NAME!r}\n" + LATENCY)
        (self.workspace / "hello").write_text(rig.client_hello(NAME).hex())

    def run(self, program, *options, env=None):
        """A program inside, by a run with egress; returns what it said."""
        argv = self.network.argv(sandbox.cli(), "run", "--workspace", self.workspace, "--egress", NAME, "--egress",
                                 f"http://{NAME}", *options, "--", *program)
        done = subprocess.run(argv, env={**sandbox.environment(), **(env or {})}, stdout=subprocess.PIPE, check=True,
                              timeout=600)
        return float(done.stdout.split()[-1])


def python(call):
    return ["python3", "-c", f"exec(open('client.py').read()); print({call})"]


def archive(files):
    """For the kernel to unpack; files: {"init": bytes}, with None for a folder."""
    parts = []
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")]):
        mode = 0o040755 if data is None else 0o100755
        data = data or b""
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        parts += [head + bytes(-len(head) % 4), data + bytes(-len(data) % 4)]
    return b"".join(parts)


class UserNetwork:
    """The same machine, kernel, image and client with a card of QEMU's user network, booted without anything of ours."""

    def __init__(self, servers, folder):
        self.servers, self.folder = servers, folder
        subprocess.run(["bash", sandbox.ROOT / "scripts/provision-kernel.sh", "--module", "failover", "--module", "net_failover",
                        "--module", "virtio_net", folder / "kernel"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cc", "-static", "-O2", "-o", folder / "init", sandbox.ROOT / "bench/init/net.c"], check=True)
        told = subprocess.run([sandbox.cli(), "image", "ls", "--json"], env=sandbox.environment(), stdout=subprocess.PIPE,
                              check=True).stdout
        self.image = next(i["path"] for i in json.loads(told) if i["ref"].startswith("resoluto-sandbox-base:"))

    def initramfs(self, call):
        files = {"init": (self.folder / "init").read_bytes(), "modules": None, "work": None}
        files.update({f"modules/{file.name}": file.read_bytes() for file in (self.folder / "kernel/modules").iterdir()})
        files["work/ca.pem"] = (self.servers.workspace / "ca.pem").read_bytes()
        files["work/main.py"] = (f"HOST, NAME = {rig.SITE!r}, {NAME!r}\n" + CLIENT + f"print('\\nvalue', {call}, flush=True)\n").encode()
        path = self.folder / "net.cpio"
        path.write_bytes(archive(files))
        return path

    def run(self, call):
        words = f"console=ttyS0 quiet reboot=t panic=-1 tsc_early_khz={guest_host.tsc_khz()} tsc=reliable noreplace-smp"
        argv = self.servers.network.argv(
            "qemu-system-x86_64", "-accel", "tcg,thread=single", "-M", "microvm,rtc=on", "-cpu", "max", "-m", "1024M", "-smp", "2",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-kernel", self.folder / "kernel/vmlinux",
            "-initrd", self.initramfs(call), "-append", words, "-serial", "stdio",
            "-drive", f"if=none,id=rootfs,file={self.image},format=raw,readonly=on", "-device", "virtio-blk-device,drive=rootfs",
            "-netdev", "user,id=card", "-device", "virtio-net-device,netdev=card")
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=600, check=True)
        lines = [line.split()[1] for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("value ")]
        if len(lines) != 1:
            sys.exit(f"the other side said {done.stdout[-2000:]!r}")
        return float(lines[0])


def against_user_network(servers, folder):
    """Both on the distribution's kernel, since ours has no driver of a card."""
    other = UserNetwork(servers, folder)
    kernel = {**sandbox.kernel("distro"), "RESOLUTO_LOCAL_ACCEL": "tcg"}
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(servers.run(python("fetch(True)"), "--memory", "1Gi", "--cpus", "2", env=kernel))
        theirs.append(other.run("fetch(True)"))
    ours = sandbox.report("TLS by the port, distribution's kernel", ours, "MB/s")
    return ours / sandbox.report("TLS by QEMU's user network", theirs, "MB/s")


def throughput(servers, tls):
    values = [servers.run(python(f"fetch({tls})")) for _ in range(ROUNDS)]
    return sandbox.report(f"{'TLS' if tls else 'plain'} by the port", values, "MB/s")


def latency(servers, count=100):
    inside, outside = [], []
    for _ in range(ROUNDS):
        inside.append(servers.run(["python3", "latency.py", "hello", str(count)]))
        done = servers.network.run("python3", servers.workspace / "latency.py", servers.workspace / "hello", str(count))
        outside.append(float(done.stdout))
    inside = sandbox.report("first byte, from the guest", inside, "ms")
    return inside - sandbox.report("first byte, from the host", outside, "ms")


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(pathlib.Path(folder), mib)
        try:
            throughput(servers, True)
            plain = throughput(servers, False)
            more = latency(servers)
            ratio = against_user_network(servers, pathlib.Path(folder))
        finally:
            servers.network.close()
    print(f"value {plain:.1f} MB/s")
    print(f"value {more:.2f} ms")
    sandbox.ratio(ratio)


main()
