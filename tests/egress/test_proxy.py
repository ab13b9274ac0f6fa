# SPDX-License-Identifier: Apache-2.0
"""A proxy of the caller's network: the same policy and the same first bytes; only the address is the proxy's affair."""
import base64
import time

import pytest

from rig import SITE, Tls, client_hello, wait_port
from served import HERE, site  # noqa: F401

PORTS = {mode: 3128 + i for i, mode in enumerate(["good", "deny", "login", "garbage", "silent", "extra", "long", "old",
                                                  "piecemeal"])}


@pytest.fixture(scope="module")
def proxies(site):
    """All of them on 127.0.0.1: where a name of the guest's must never lead."""
    for mode, port in PORTS.items():
        site.network.start("python3", HERE / "connect_proxy.py", mode, "127.0.0.1", port, site.folder / f"proxy-{mode}", SITE)
        wait_port(site.network, "127.0.0.1", port)
    site.network.hosts.write_text("127.0.0.1 proxy.corp\n")
    yield site.folder
    site.network.hosts.write_text("127.0.0.1 localhost\n")


def through(site, mode, patterns=("pypi.org",), host="127.0.0.1", **config):
    return site.gateway(list(patterns), proxy=f"http://{host}:{PORTS[mode]}", connect_ms=2000, **config)


@pytest.mark.parametrize("mode", ["good", "old", "piecemeal"])
def test_an_allowed_name_goes_through_the_proxy(site, proxies, mode):
    gateway = through(site, mode)
    stream = gateway.guest.open("PyPI.org")
    assert b"site pypi.org" in Tls(stream, site.authority.context(), "pypi.org").handshake().get("pypi.org")
    stream.fin()
    assert gateway.guest.wait_row(name="PyPI.org")["address"] == "127.0.0.1"
    assert (proxies / f"proxy-{mode}").read_bytes().endswith(b"CONNECT pypi.org:443 HTTP/1.1\r\nHost: pypi.org:443\r\n\r\n")


def test_plain_http_goes_by_connect_too_and_its_host_is_checked(site, proxies):
    gateway = through(site, "good", ["http://pypi.org"])
    stream = gateway.guest.open("pypi.org", 80)
    stream.send(b"GET /through HTTP/1.1\r\nHost: pypi.org\r\n\r\n")
    gateway.guest.wait(lambda: b"site pypi.org" in stream.data, "an answer")
    stream.send(b"GET /through HTTP/1.1\r\nHost: smuggled.example.org\r\n\r\n")
    assert stream.wait_end() == "http-host-other"
    row = gateway.guest.wait_row(name="pypi.org")
    assert (row["protocol"], row["port"], row["address"], row["decision"]) == ("http", 80, "127.0.0.1", "refused")
    assert (proxies / "proxy-good").read_bytes().endswith(b"CONNECT pypi.org:80 HTTP/1.1\r\nHost: pypi.org:80\r\n\r\n")
    stream = gateway.guest.open("pypi.org", 80)  # nothing was connected for this one
    stream.send(b"GET / HTTP/1.1\r\nHost: smuggled.example.org\r\n\r\n")
    assert stream.wait_end() == "http-host-other"
    assert (proxies / "proxy-good").read_bytes().count(b"CONNECT pypi.org:80 ") == 1
    assert b"smuggled" not in (proxies / "proxy-good").read_bytes()


def test_the_proxy_has_a_name_and_wants_a_login(site, proxies):
    gateway = site.gateway(["pypi.org"], proxy=f"http://us%40er:p%3Ass@Proxy.corp:{PORTS['good']}/")
    Tls(gateway.guest.open("pypi.org"), site.authority.context(), "pypi.org").handshake()
    login = base64.b64encode(b"us@er:p:ss")
    assert b"Proxy-Authorization: Basic " + login + b"\r\n\r\n" in (proxies / "proxy-good").read_bytes()
    assert login.decode() not in str(gateway.end())


def test_the_target_is_not_resolved_here(site, proxies):
    """metadata.pypi.org leads inside by our name server; with a proxy that is the proxy's to decide."""
    gateway = through(site, "good", ["nowhere.example.org"])
    stream = gateway.guest.open("nowhere.example.org")
    stream.send(client_hello("nowhere.example.org"))
    stream.wait_opened()
    assert b"CONNECT nowhere.example.org:443" in (proxies / "proxy-good").read_bytes()


def test_the_policy_and_the_first_bytes_are_the_same(site, proxies):
    gateway = through(site, "good", ["strict.example.org"])
    assert gateway.guest.open("pypi.org").wait_end() == "not-allowed"
    stream = gateway.guest.open("strict.example.org")
    stream.send(client_hello("smuggled.example.org"))
    assert stream.wait_end() == "sni-other"
    stream = gateway.guest.open("strict.example.org")
    stream.send(b"CONNECT smuggled.example.org:22 HTTP/1.1\r\n\r\n")
    assert stream.wait_end() == "not-tls"
    gateway.end()
    assert b"smuggled" not in (proxies / "proxy-good").read_bytes()
    assert b"strict" not in (proxies / "proxy-good").read_bytes()


@pytest.mark.parametrize("mode, reason, words", [
    ("deny", "proxy-refused", "403"), ("login", "proxy-refused", "407"), ("garbage", "proxy-refused", ""),
    ("silent", "connect-timeout", ""), ("extra", "proxy-refused", "more"), ("long", "proxy-refused", "")])
def test_a_proxy_that_does_not_do_it(site, proxies, mode, reason, words):
    gateway = through(site, mode)
    stream = gateway.guest.open("pypi.org")
    stream.send(client_hello("pypi.org"))
    began = time.monotonic()
    assert stream.wait_end() == reason
    assert time.monotonic() - began < 10 and not stream.data
    row = gateway.guest.wait_row(reason=reason)
    assert row["decision"] == "failed" and words in row["detail"]


def test_a_proxy_that_is_not_there(site):
    gateway = site.gateway(["pypi.org"], proxy="http://127.0.0.1:9")
    stream = gateway.guest.open("pypi.org")
    stream.send(client_hello("pypi.org"))
    assert stream.wait_end() == "connect-failed"
