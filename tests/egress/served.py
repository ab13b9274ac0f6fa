# SPDX-License-Identifier: Apache-2.0
"""The site: a namespace with a real name server and real web servers in it."""
import contextlib
import pathlib
import subprocess

import pytest

import rig
from authority import Authority

HERE = pathlib.Path(__file__).resolve().parent
ZONE = {
    "pypi.org": [rig.SITE, rig.SITE6],
    "files.pypi.org": [rig.SITE],
    "six.pypi.org": [rig.SITE6],
    "other.example.org": [rig.OTHER],
    "local.pypi.org": ["127.0.0.1"],
    "metadata.pypi.org": ["169.254.169.254"],
    "metadata6.pypi.org": ["fd00:ec2::254"],
    "mapped.pypi.org": ["::ffff:10.0.0.1"],
    "nat64.pypi.org": ["64:ff9b::a9fe:a9fe"],
    "six-to-four.pypi.org": ["2002:a9fe:a9fe::1"],
    "teredo.pypi.org": ["2001:0:808:808::f5ff:fffe"],
    "teredo-server.pypi.org": ["2001:0:a00:1::f7f7:f7f7"],
    "compatible.pypi.org": ["::10.0.0.1"],
    "shared.pypi.org": ["100.64.0.1"],
    "multicast.pypi.org": ["239.1.2.3"],
    "multicast6.pypi.org": ["ff0e::1"],
    "unique-local.pypi.org": ["fd12:3456::1"],
    "half.pypi.org": ["10.0.0.1", rig.SITE],
    "raw.pypi.org": [rig.SITE],
    "hello.example.org": [rig.SITE],
    "raw6.pypi.org": [rig.SITE6],
}

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;
events {{ worker_connections 2048; }}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {site}:443 ssl; listen [{site6}]:443 ssl; listen {site}:80; listen {site}:8443 ssl;
    ssl_certificate {pem}; ssl_certificate_key {key}; keepalive_timeout 600;
    location / {{ return 200 "site $host $ssl_server_name\\n"; }}
    location /files/ {{ alias {folder}/files/; }} }}
  server {{ listen {other}:443 ssl; ssl_certificate {pem}; ssl_certificate_key {key};
    location / {{ return 200 "other $host $ssl_server_name\\n"; }} }}
}}
"""


class Site:
    """Everything that stays for a whole file of tests."""

    def __init__(self, factory):
        rig.have("nginx", "dnsmasq", "openssl", "ip", "nsenter")
        self.factory = factory
        self.folder = factory.mktemp("site")
        self.folder.chmod(0o755)
        self.network = rig.Network(self.folder)
        self.authority = Authority(self.folder)
        self.start_names()
        self.start_web()

    def start_names(self):
        lines = [f"host-record={name},{address}" for name, addresses in ZONE.items() for address in addresses]
        config = self.folder / "dnsmasq.conf"
        config.write_text("no-resolv\nno-hosts\nkeep-in-foreground\nuser=root\nlisten-address=127.0.0.1\nbind-interfaces\n"
                          "local=/#/\nmax-cache-ttl=0\n" + "\n".join(lines) + "\n")
        self.network.start("dnsmasq", "-C", config, stderr=open(self.folder / "dnsmasq.log", "wb"))
        rig.wait_port(self.network, "127.0.0.1", 53)

    def start_web(self):
        pem, key = self.authority.issue("pypi.org", "*.pypi.org", "other.example.org")
        (self.folder / "files").mkdir()
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(folder=self.folder, site=rig.SITE, site6=rig.SITE6, other=rig.OTHER, pem=pem,
                                       key=key))
        self.network.start("nginx", "-p", self.folder, "-c", config, stderr=open(self.folder / "nginx.out", "wb"))
        rig.wait_port(self.network, rig.SITE, 443)

    def gateway(self, patterns, **config):
        folder = self.factory.mktemp("gateway")
        folder.chmod(0o755)
        return rig.Gateway(self.network, folder, patterns, **config)

    def raw(self, mode, port, address=rig.SITE):
        """A server of raw_server.py; returns the file it writes to."""
        file = self.folder / f"raw-{port}"
        self.network.start("python3", HERE / "raw_server.py", mode, address, port, file)
        rig.wait_port(self.network, address, port)
        return file

    def odd_names(self, address="127.0.0.53"):
        file = self.folder / "asked"
        file.touch()
        self.network.start("python3", HERE / "odd_names.py", address, file, stderr=subprocess.DEVNULL)
        rig.wait_port(self.network, address, 53)
        return file

    @contextlib.contextmanager
    def names_from(self, *servers):
        """Gateways that start meanwhile ask these."""
        self.network.resolv.write_text("".join(f"nameserver {server}\n" for server in servers))
        yield
        self.network.resolv.write_text("nameserver 127.0.0.1\n")

    def accesses(self):
        return pathlib.Path(self.folder / "access.log").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory)
    yield made
    made.network.close()
