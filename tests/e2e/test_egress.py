# SPDX-License-Identifier: Apache-2.0
"""Runs that may reach something by name: real clients inside, real servers in a namespace without a way out."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import zipfile

import pytest

from conftest import ROOT, Processes, build_dir, soak, wait_until
from egress_world import World, rig, rows_of, show, wait_line

SITE = "site.example.org"


@pytest.fixture(scope="module")
def world(tmp_path_factory, sandbox):
    world = World(tmp_path_factory, sandbox)
    yield world
    world.close()


@pytest.fixture(autouse=True)
def nothing_stays(world):
    yield
    wait_until(lambda: not world.gateways(), "the gateways to end", 30)


def test_a_name_that_is_allowed_is_reached_by_tls(world, kernel):
    result = world.result(f"say(get('https://{SITE}/a').decode(), end='')", "--egress", SITE, env=kernel)
    assert result["stdout"].startswith(f"site {SITE} {SITE} "), show(result)
    (row,) = rows_of(result, name=SITE)
    assert (row["decision"], row["reason"], row["protocol"], row["port"], row["sni"]) == ("allowed", "none", "tls", 443, SITE)
    assert row["bytes_up"] > 300 and row["bytes_down"] > 1000 and row["address"] in ("151.101.0.223", "2a04:4e42::223")
    assert result["said"] == "" and result["warnings"] == []


def test_every_decision_is_an_event_of_the_run(world):
    run_id = "egress-events"
    if not world.network.can_connect("151.101.0.223", 7006):
        world.raw("after-fin", 7006)
    # Both ends are through when the program has seen the end, and what it sees then of another connection comes behind the row.
    program = """
s = socket.create_connection(('raw.example.org', 7006), 60)
s.sendall(hello('raw.example.org'))
s.shutdown(socket.SHUT_WR)
while s.recv(100): pass
try:
    with socket.create_connection(('raw.example.org', 7006), 60) as s:
        s.sendall(hello('other.example.org'))
        s.recv(1)
except ConnectionResetError:
    say('reset')
"""
    done = world.run(program, "--keep", "--id", run_id, "--egress", "raw.example.org:7006")
    events = [json.loads(line) for chunk in sorted(world.sandbox.state.glob(f"runs/{run_id}/conduit/run/{run_id}/events-*"))
              for line in chunk.read_text().splitlines()]
    world.cli("rm", run_id)
    assert (done.returncode, done.stdout) == (0, b"reset\n"), done.stderr
    event, refused = [e for e in events if e["kind"] == "egress"]
    assert refused["data"]["decision"] == "refused"
    node = [e for e in events if e["kind"] == "node"][0]
    assert event["event"] == "log" and event["parent_span_id"] == node["span_id"]
    assert event["data"]["name"] == "raw.example.org" and event["data"]["decision"] == "allowed"


REFUSED = f"""
def ends(to, first):
    try:
        with socket.create_connection(to, 60) as s:
            s.sendall(first)
            return s.recv(1)
    except (ConnectionError, socket.gaierror) as e:
        return type(e).__name__
site = socket.gethostbyname('{SITE}')
say(ends(('evil.example.net', 443), b'x'), ends((site, 443), hello('other.example.org')), ends((site, 443), b'GET / HTTP/1.1\\r\\n\\r\\n'),
    ends((site, 22), b'x'), ends(('inside.example.org', 443), hello('inside.example.org')))
"""  # the last reset comes behind all rows


def test_what_is_refused_is_an_event_too_and_the_same_as_the_row(world):
    run_id = "egress-refused-events"
    done = world.run(REFUSED, "--json", "--keep", "--id", run_id, "--egress", SITE, "--egress", "inside.example.org")
    events = [json.loads(line) for chunk in sorted(world.sandbox.state.glob(f"runs/{run_id}/conduit/run/{run_id}/events-*"))
              for line in chunk.read_text().splitlines()]
    world.cli("rm", run_id)
    result = json.loads(done.stdout)
    assert result["stdout"] == "gaierror ConnectionResetError ConnectionResetError ConnectionRefusedError ConnectionResetError\n"
    decided = [event["data"] for event in events if event["kind"] == "egress"]
    assert all(event["event"] == "log" for event in events if event["kind"] == "egress")
    assert [(row["name"], row["port"], row["decision"], row["reason"]) for row in decided] == [
        ("evil.example.net", 0, "refused", "not-allowed"), (SITE, 443, "refused", "sni-other"), (SITE, 443, "refused", "not-tls"),
        (SITE, 22, "refused", "port-not-allowed"), ("inside.example.org", 443, "refused", "address-refused")]
    assert decided == result["egress"]


def test_the_canary_proves_what_egress_means(world, kernel):
    result = world.result("pass", "--egress", "*.example.org", env=kernel)
    probes = {probe["probe"]: (probe["ok"], probe["detail"]) for probe in result["canary"]}
    assert list(probes) == ["external", "metadata", "egress-refused-name", "egress-allowed-name", "egress-address", "egress-address6",
                            "store"]
    assert all(ok for ok, _ in probes.values()), probes
    assert probes["egress-refused-name"][1].endswith("no such name")
    assert "198.18." in probes["egress-allowed-name"][1]
    assert probes["egress-address"][1] == "1.1.1.1 port 443: ENETUNREACH"
    assert probes["egress-address6"][1] == "2606:4700:4700::1111 port 443: ENETUNREACH"
    assert result["egress"] == []


def test_without_egress_there_is_nothing(world):
    program = """
say(open('/etc/resolv.conf').read() == '', os.path.exists('/etc/nsswitch.conf'))
for call in (lambda: socket.getaddrinfo('site.example.org', 443), lambda: socket.create_connection(('198.18.0.2', 443), 5)):
    try:
        call()
        say('reached')
    except OSError as e:
        say(type(e).__name__)
time.sleep(1)
"""
    process = world.start(program, "--id", "no-egress")
    qemu = wait_until(lambda: Processes.qemu_of("no-egress"), "QEMU")[0]
    words = b" ".join(Processes.argv(qemu))
    assert b"name=conduit" in words and b"name=net" not in words and b"id=net" not in words
    assert not world.gateways() and not (world.sandbox.state / "runs/no-egress/egress.jsonl").exists()
    out, err = process.communicate(timeout=120)
    assert out == b"True True\ngaierror\nOSError\n" and err == b""


def test_with_egress_the_only_new_device_is_the_port(world):
    """No card, no user network: one more port, to the gateway."""
    words = {}
    for name, options in (("with", ["--egress", SITE]), ("without", [])):
        process = world.start("time.sleep(2)", "--id", name, *options)
        words[name] = [w.decode() for w in Processes.argv(wait_until(lambda n=name: Processes.qemu_of(n), "QEMU")[0])]
        assert process.wait(120) == 0
    new = [w for w in words["with"] if w not in words["without"] and not w.startswith("guest=")]
    assert [w.partition("fd=")[0] for w in new] == ["socket,id=net,", "virtserialport,nr=3,chardev=net,name=net"]


def test_a_name_off_the_list_does_not_exist_and_is_said_once(world):
    program = """
for name in ('evil.example.net', 'evil.example.net', 'other.example.net', 'example.org'):
    try:
        socket.getaddrinfo(name, 443)
        say('resolved')
    except socket.gaierror as e:
        say(e.errno)
"""
    before = len(world.asked())
    done = world.run(program, "--egress", "*.example.org")
    assert done.stdout == b"-2\n" * 4
    said = done.stderr.decode().splitlines()
    assert len(said) == 3 and all(line.startswith("resoluto-sandbox: egress: refused ") for line in said), said
    assert said[0].endswith("; to allow it: --egress evil.example.net (plain HTTP: --egress http://evil.example.net)")
    assert "; to allow it: --egress example.org (plain" in said[2]
    assert world.asked()[before:] == []


def test_a_refused_connection_is_a_reset(world):
    """The name is allowed, what is said is not: no byte gets out, and the program hears it at once."""
    program = f"""
for first in (b'GET / HTTP/1.1\\r\\n\\r\\n', hello('other.example.net'), b'\\x16\\x03\\x01'):
    s = socket.create_connection(('{SITE}', 443), 60)
    s.sendall(first)
    if first == b'\\x16\\x03\\x01':
        s.shutdown(socket.SHUT_WR)
    try:
        say(s.recv(100))
    except ConnectionResetError:
        say('reset')
"""
    before = world.accesses()
    result = world.result(program, "--egress", SITE)
    assert result["stdout"] == "reset\n" * 3, show(result)
    assert [row["reason"] for row in result["egress"]] == ["not-tls", "sni-other", "hello-cut"]
    assert all(row["address"] == "" for row in result["egress"]) and world.accesses() == before


def test_addresses_that_are_not_public_are_not_dialled(world):
    program = """
for name in ('inside.example.org', 'metadata.example.org', 'nowhere.example.org'):
    s = socket.create_connection((name, 443), 60)
    s.sendall(hello(name))
    try:
        say(s.recv(100))
    except ConnectionResetError:
        say('reset')
"""
    result = world.result(program, "--egress", "*.example.org")
    assert result["stdout"] == "reset\n" * 3
    assert [(row["name"].split(".")[0], row["reason"], row["address"]) for row in result["egress"]] == [
        ("inside", "address-refused", ""), ("metadata", "address-refused", ""), ("nowhere", "no-address", "")]
    assert "10.0.0.1" in result["egress"][0]["detail"] and "10.0.0.1" in result["said"]
    assert "egress: failed nowhere.example.org port 443: the name does not resolve" in result["said"]


def test_only_the_ports_that_are_allowed_are_listened_on(world):
    program = f"""
address = socket.gethostbyname('{SITE}')
six = socket.getaddrinfo('{SITE}', 443, socket.AF_INET6)[0][4][0]
for to in ((address, 443), (address, 80), (address, 8443), (address, 22), (address, 22), (six, 22), (six, 8080), ('127.0.0.1', 25)):
    try:
        socket.create_connection(to, 10).close()
        say(to[1], 'open')
    except ConnectionRefusedError:
        say(to[1], 'refused')
with socket.socket() as own:  # the program's own ports stay its own
    own.bind(('0.0.0.0', 22))
    own.listen()
    say('mine')
"""
    result = world.result(program, "--egress", SITE, "--egress", f"{SITE}:8443")
    assert result["stdout"] == ("443 open\n80 refused\n8443 open\n22 refused\n22 refused\n22 refused\n8080 refused\n25 refused\n"
                                "mine\n"), show(result)
    closed = rows_of(result, reason="port-not-allowed")
    assert [(row["name"], row["port"], row["decision"]) for row in closed] == [(SITE, port, "refused") for port in (80, 22, 8080)]
    said = [line.partition("; to allow it: --egress ")[2] for line in result["said"].splitlines()]
    assert said == [f"http://{SITE} --egress {SITE}:22 --egress {SITE}:8080"], result["said"]


def test_plain_http_where_it_was_asked_for(world):
    program = f"""
say(get('http://{SITE}/x').decode(), end='')
s = socket.create_connection(('{SITE}', 80), 60)
s.sendall(b'GET / HTTP/1.1\\r\\nHost: other.example.net\\r\\n\\r\\n')
try:
    say(s.recv(100))
except ConnectionResetError:
    say('reset')
"""
    result = world.result(program, "--egress", f"http://{SITE}")
    assert result["stdout"].startswith(f"site {SITE} ") and result["stdout"].endswith("\nreset\n"), show(result)
    assert [row["reason"] for row in rows_of(result, protocol="http")] == ["none", "http-host-other"]


QUESTIONS = """
def told(answer):
    size, edns = struct.unpack('>H', answer[6:8])[0], struct.unpack('>H', answer[10:12])[0]
    return answer[:2] == b'\\x12\\x67', answer[3] & 15, size, edns
opt = b'\\0\\0\\x29\\x04\\xd0\\0\\0\\0\\0\\0\\0'
for tcp in (False, True):
    say('A', told(ask(question('site.example.org'), tcp)), 'AAAA', told(ask(question('site.example.org', 28), tcp)))
    say('EDNS', told(ask(question('site.example.org', tail=opt, additional=1), tcp)))
    say('case', told(ask(question('SITE.Example.ORG'), tcp)))
    for kind, family in ((65, 1), (64, 1), (255, 1), (12, 1), (16, 1), (15, 1), (6, 1), (16, 3)):
        say(kind, family, told(ask(question('site.example.org', kind, family), tcp))[1:3])
    say('PTR', told(ask(question('2.0.18.198.in-addr.arpa', 12), tcp))[1:3], 'CHAOS', told(ask(question('version.bind', 16, 3), tcp))[1:3])
one, two = ask(question('site.example.org')), ask(question('SITE.example.org.'))
say(one[-4:] == two[-4:], ask(question('six.example.org'))[-4:] != one[-4:], one[-4:-2] == b'\\xc6\\x12')
long = '.'.join(['a' * 63] * 3)
say(told(ask(question(long + '.example.net')))[1], told(ask(question(long + '.example.org')))[1:3])
with socket.create_connection(('127.0.0.1', 53), 20) as s:  # two questions in one go, in pieces
    both = b''.join(struct.pack('>H', len(q)) + q for q in (question('site.example.org'), question('no.example.net')))
    for i in range(0, len(both), 7):
        s.sendall(both[i:i + 7]); time.sleep(0.01)
    sizes = []
    for _ in range(2):
        size = struct.unpack('>H', s.recv(2, socket.MSG_WAITALL))[0]
        sizes.append(told(s.recv(size, socket.MSG_WAITALL))[1])
    say(sizes)
for junk in (b'', b'x', b'\\0' * 11, b'\\xff' * 600, ask(question('site.example.org'))):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(junk, ('127.0.0.1', 53))
say(told(ask(question('site.example.org'))))
"""


def test_questions_of_every_kind(world, kernel):
    result = world.result(QUESTIONS, "--egress", "*.example.org", env=kernel)
    lines = result["stdout"].splitlines()
    assert result["ok"], show(result)
    for part in (lines[:13], lines[13:26] if len(lines) > 26 else lines[12:24]):
        assert part, lines
    half = lines[:12]
    assert half == lines[12:24], lines
    assert half[0] == "A (True, 0, 1, 0) AAAA (True, 0, 1, 0)"
    assert half[1] == "EDNS (True, 0, 1, 1)" and half[2] == "case (True, 0, 1, 0)"
    assert half[3:11] == [f"{k} {f} (3, 0)" for k, f in ((65, 1), (64, 1), (255, 1), (12, 1), (16, 1), (15, 1), (6, 1), (16, 3))]
    assert half[11] == "PTR (3, 0) CHAOS (3, 0)"
    assert lines[24:] == ["True True True", "3 (0, 1)", "[0, 3]", "(True, 0, 1, 0)"]


def test_a_tunnel_of_long_labels_carries_nothing(world):
    """A refused name reaches no name server; neither does one below an allowed wildcard before a hello names it."""
    program = """
import base64
secret = base64.b32encode(os.urandom(30)).decode().strip('=').lower()
for i in range(100):
    try:
        socket.gethostbyname(f'{i}.{secret}.tunnel.example.net')
        say('resolved')
    except OSError:
        pass
socket.gethostbyname(f'{secret}.example.org')
say('done')
"""
    before = len(world.asked())
    result = world.result(program, "--egress", "*.example.org")
    assert result["stdout"] == "done\n"
    assert world.asked()[before:] == []
    assert len(rows_of(result, decision="refused", protocol="dns")) == 100


def test_quic_is_refused_at_once(world):
    program = f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((socket.gethostbyname('{SITE}'), 443))
s.settimeout(20)
try:
    for _ in range(3):
        s.send(b'\\xc0' + bytes(1199)); time.sleep(0.1)
    s.recv(100)
except ConnectionRefusedError:
    say('refused')
"""
    assert world.result(program, "--egress", SITE)["stdout"] == "refused\n"


def test_half_close_both_ways_and_exact_bytes(world):
    world.raw("after-fin", 7001)
    talk = world.raw("talk", 7002)
    program = """
h = hello('raw.example.org')
s = socket.create_connection(('raw.example.org', 7001), 120)
s.sendall(h)
body = b'\\x17\\x03\\x03\\x40\\0' + bytes(16384)
for _ in range(200):
    s.sendall(body)
s.shutdown(socket.SHUT_WR)
say(s.recv(100) == b'%d bytes' % (len(h) + 200 * len(body)), s.recv(100))
s = socket.create_connection(('raw.example.org', 7002), 120)
s.sendall(h)
say(s.recv(100), s.recv(100))
for _ in range(100):
    s.sendall(body)
s.shutdown(socket.SHUT_WR)
s.close()
say(len(h) + 100 * len(body))
"""
    result = world.result(program, "--egress", "raw.example.org:7001", "--egress", "raw.example.org:7002")
    lines = result["stdout"].splitlines()
    assert lines[:2] == ["True b''", "b'last words\\n' b''"], show(result)
    wait_until(lambda: talk.exists() and talk.read_text().endswith("\n"), "what the server counted", 30)
    assert talk.read_text() == lines[2] + "\n"


def test_a_reset_of_the_server_is_a_reset(world):
    world.raw("reset", 7003)
    program = """
s = socket.create_connection(('raw.example.org', 7003), 60)
s.sendall(hello('raw.example.org'))
try:
    say(s.recv(100))
except ConnectionResetError:
    say('reset')
"""
    result = world.result(program, "--egress", "raw.example.org:7003")
    assert result["stdout"] == "reset\n" and result["egress"][0]["reason"] == "broken"


def test_one_that_is_not_read_stops_no_other(world):
    world.raw("flood", 7004)
    world.raw("deaf", 7005)
    program = f"""
h = hello('raw.example.org')
stalled = socket.create_connection(('raw.example.org', 7004), 60)
stalled.sendall(h)
time.sleep(2)  # by now its window is full
deaf = socket.create_connection(('raw.example.org', 7005), 60)
deaf.sendall(h)
deaf.setblocking(False)
end = time.monotonic() + 5
while time.monotonic() < end:  # until nothing more of it fits anywhere
    try:
        deaf.send(b'\\x17\\x03\\x03\\x40\\0' + bytes(16384))
        end = time.monotonic() + 2
    except BlockingIOError:
        time.sleep(0.05)
for _ in range(5):
    say(get('https://{SITE}/').startswith(b'site'))
say(len(stalled.recv(65536, socket.MSG_WAITALL)))
"""
    result = world.result(program, "--egress", SITE, "--egress", "raw.example.org:7004", "--egress", "raw.example.org:7005")
    assert result["stdout"] == "True\n" * 5 + "65536\n", show(result)


@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=soak("egress"))])
def test_five_hundred_at_once_and_thousands_in_all(world, rounds):
    program = f"rounds = {rounds}" + """
h = hello('raw.example.org')
def one():
    s = socket.create_connection(('raw.example.org', 7006), 300)
    s.sendall(h)
    return s
def end(s):
    s.shutdown(socket.SHUT_WR)
    assert s.recv(100) == b'%d bytes' % len(h)
    s.close()
many = [one() for _ in range(500)]
say(len(many))
for s in many: end(s)
for i in range(rounds):
    many = [one() for _ in range(190)]
    for s in many: end(s)
say('all')
"""
    if not world.network.can_connect("151.101.0.223", 7006):
        world.raw("after-fin", 7006)
    result = world.result(program, "--egress", "raw.example.org:7006", timeout=800)
    assert result["stdout"] == "500\nall\n", show(result)
    assert len(rows_of(result, name="raw.example.org", reason="none")) + sum(
        int(w.split()[1]) for w in result["warnings"] if w.startswith("egress-dropped")) == 500 + 190 * rounds


def test_a_gateway_that_is_killed_breaks_connections_but_not_the_run(world):
    world.raw("flood", 7007)
    program = """
s = socket.create_connection(('raw.example.org', 7007), 60)
s.sendall(hello('raw.example.org'))
s.recv(100)
say('up')
try:
    while s.recv(65536): pass
    say('end')
except ConnectionResetError:
    say('reset')
say(ask(question('raw.example.org'))[3] & 15, ask(question('new.example.org'), True)[3] & 15)
try:
    t = socket.create_connection(('198.18.0.2', 7007), 30)
    t.recv(1)
    say('closed')
except OSError as e:
    say('none')
open('left', 'w').write('still here')
"""
    process = world.start(program, "--json", "--output", "left", "--egress", "raw.example.org:7007", "--egress", "*.example.org")
    gateway = world.await_gateway()
    run = pathlib.Path(f"/proc/{gateway}/fd/4").readlink().parent
    wait_until(lambda: b'"up"' in b"".join(p.read_bytes() for p in run.glob("conduit/run/*/events-*")), "the program")
    os.kill(gateway, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    result = json.loads(out)
    assert result["ok"] and result["stdout"] == "up\nreset\n2 2\nnone\n" and result["artifacts"] == ["left"], show(result)
    assert result["egress"][-1]["reason"] == "gateway-lost" and result["egress"][-1]["decision"] == "failed"
    assert any(w.startswith("egress-lost: ") for w in result["warnings"]) and b"egress-lost" in err


@pytest.mark.parametrize("victim", ["cli", "shim", "qemu"])
def test_nothing_is_left_after_a_kill(world, victim):
    process = world.start("say('up'); time.sleep(600)", "--id", f"killed-{victim}", "--egress", SITE)
    wait_line(process, b"up\n")
    gateway = world.await_gateway()
    qemu = Processes.qemu_of(f"killed-{victim}")[0]
    shim = int(pathlib.Path(f"/proc/{qemu}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill({"cli": process.pid, "shim": shim, "qemu": qemu}[victim], signal.SIGKILL)
    wait_until(lambda: not any(map(Processes.is_alive, (gateway, qemu, shim))), "all of it to end", 30)
    process.communicate(timeout=60)
    assert world.cli("run", "--", "/bin/true").returncode == 0  # files that nobody alive can remove go with it
    assert f"killed-{victim}" not in world.sandbox.runs()


def test_learning_lets_nothing_out_and_prints_the_list(world):
    program = f"""
for url in ('https://{SITE}/a', 'https://other.example.net/', 'http://plain.example.com/'):
    try:
        get(url)
        say('reached')
    except (urllib.error.URLError, ConnectionError):
        say('refused')
"""
    before = world.accesses()
    done = world.run(program, "--egress-learn")
    assert done.stdout == b"refused\n" * 3 and world.accesses() == before
    learned = done.stderr.decode()
    assert [line for line in learned.splitlines() if not line.startswith("#")] == [
        SITE, "other.example.net", "http://plain.example.com"], learned
    file = world.factory.mktemp("learned") / "allowed"
    file.write_text("# what it asked for\n\n" + learned)
    done = world.run(f"say(get('https://{SITE}/a').decode()[:4], get('https://other.example.net/').decode(), end='')",
                     "--egress-file", file)
    assert done.stdout == b"site other\n" and done.stderr == b"", done.stderr


def test_a_detached_run_has_its_rows_for_whoever_comes_later(world):
    program = f"get('https://{SITE}/'); say('done')\ntry: get('https://no.example.net/')\nexcept OSError: pass"
    started = world.run(program, "--detach", "--id", "egress-detached", "--egress", SITE)
    assert started.returncode == 0 and started.stdout == b"egress-detached\n", started.stderr
    for _ in range(2):
        done = world.cli("attach", "--json", "egress-detached")
        result = json.loads(done.stdout)
        assert [(row["name"], row["decision"]) for row in result["egress"]] == [(SITE, "allowed"), ("no.example.net", "refused")]
        assert b"to allow it: --egress no.example.net" in done.stderr
    assert b"to allow it: --egress no.example.net" in world.cli("wait", "egress-detached").stderr
    assert world.cli("rm", "egress-detached").returncode == 0
    assert "egress-detached" not in world.sandbox.runs()


@pytest.mark.parametrize("given, words", [
    (["--egress", "*"], "--egress-wide"), (["--egress", "*.com"], "--egress-wide"), (["--egress", "not a name"], "not a name"),
    (["--egress", "10.0.0.0/8"], "only names"), (["--egress", "1.2.3.4"], "only names"), (["--egress", "[::1]:443"], "::1"),
    (["--egress", "a.example.org:0"], "1 to 65535"), (["--egress", "a.example.org:70000"], "1 to 65535"), (["--egress", ""], "--egress=NAME"),
    (["--egress", "ftp://a.example.org"], "https://"), (["--egress-file", "/nowhere"], "/nowhere"),
    (["--egress-learn", "--egress", "a.example.org"], "leave --egress out"), (["--egress-wide"], "--egress")])
def test_bad_input_is_said_before_anything_starts(sandbox, given, words):
    done = sandbox.run("run", *given, "--", "true")
    assert done.returncode in (2, 125) and words in done.stderr.decode(), done
    assert sandbox.runs() == []


def test_what_is_behind_a_name_is_ignored_and_said(world):
    result = world.result(f"say(get('https://{SITE}/y').decode(), end='')", "--egress", f"https://{SITE}/only/this?key=secret")
    assert result["stdout"].startswith("site ")
    assert f"https://{SITE}" in result["said"] and "ignored" in result["said"] and "secret" not in result["said"]


def test_three_hundred_patterns(world):
    names = [word for i in range(299) for word in ("--egress", f"n{i}.example.com")]
    program = f"say(get('https://{SITE}/').decode()[:4], socket.gethostbyname('n298.example.com')[:7])"
    assert world.result(program, *names, "--egress", SITE)["stdout"] == "site 198.18.\n"


def test_listeners_have_an_end(world):
    """4,096, then SERVFAIL; what was there before still works."""
    program = f"""
codes = [ask(question(f'n{{i}}.example.org'))[3] & 15 for i in range(1100)]
say(codes.count(0), codes[-1], codes.index(2) == codes.count(0))
say(get('https://n5.example.org/')[:4] if False else 'x')
say(ask(question('n5.example.org'))[3] & 15)
"""
    ports = [word for port in (443, 8443, 9000, 9001) for word in ("--egress", f"*.example.org:{port}")]
    result = world.result(program, *ports)
    lines = result["stdout"].splitlines()
    good = int(lines[0].split()[0])
    assert 1000 <= good <= 1024 and lines[0] == f"{good} 2 True" and lines[2] == "0", lines


def test_the_program_cannot_touch_who_serves_it(world):
    program = """
import signal
found = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        status = dict(l.split(':', 1) for l in open(f'/proc/{pid}/status').read().splitlines() if ':' in l)
    except OSError:
        continue
    if status['Uid'].split()[0] in ('2000000053', '2000000054'):  # who serves, and who would stand in
        found.append((status['CapEff'].strip(), status['CapPrm'].strip(), status['NoNewPrivs'].strip(), status['Groups'].strip()))
        for attempt in (lambda: os.kill(int(pid), signal.SIGKILL), lambda: os.listdir(f'/proc/{pid}/fd'), lambda: open(f'/proc/{pid}/mem')):
            try:
                attempt()
                say('did it')
            except PermissionError:
                say('no')
say(found)
"""
    result = world.result(program, "--egress", SITE)
    rights = ("0000000000000000", "0000000000000000", "1", "")
    assert result["stdout"] == "no\n" * 6 + f"{[rights] * 2}\n"


PIP = """
import runpy
sys.path.insert(0, '/workspace/lib')
os.environ['PIP_CONFIG_FILE'] = '/tmp/pip.conf'
open('/tmp/pip.conf', 'w').write('[global]\\nindex-url = https://index.example.org/simple/\\ncert = /workspace/ca.pem\\n')
sys.argv = ['pip', 'install', '--no-input', '--disable-pip-version-check', '--no-cache-dir', '--retries', '0', '--timeout', '60',
            '--target', '/tmp/there', 'tinypackage']
try:
    runpy.run_module('pip', run_name='__main__')
except SystemExit as e:
    say('pip', e.code)
sys.path.insert(0, '/tmp/there')
import tinypackage
say(tinypackage.WORD)
"""


@pytest.fixture(scope="module")
def with_pip(world):
    """A workspace with pip in it, and an index that has one package."""
    import pip
    folder = world.workspace(PIP)
    shutil.copytree(pathlib.Path(pip.__file__).parent, folder / "lib/pip", ignore=shutil.ignore_patterns("__pycache__"))
    (world.folder / "simple/tinypackage").mkdir()
    with zipfile.ZipFile(world.folder / "simple/tinypackage/tinypackage-1.0-py3-none-any.whl", "w") as wheel:
        info = "tinypackage-1.0.dist-info/"
        wheel.writestr("tinypackage.py", "WORD = 'it is here'\n")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tinypackage\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "tinypackage.py,,\n" + "".join(f"{info}{n},,\n" for n in ("METADATA", "WHEEL", "RECORD")))
    return folder


def test_pip_installs_when_its_index_is_allowed(world, with_pip):
    done = world.run("", "--exclude", "none", "--egress", "index.example.org", workspace=with_pip)
    assert done.returncode == 0 and done.stdout.endswith(b"pip 0\nit is here\n"), (done.stdout.decode(), done.stderr.decode())


def test_pip_without_its_index_fails_and_the_index_is_named(world, with_pip):
    for options in (["--egress", SITE], []):
        done = world.run("", "--exclude", "none", *options, workspace=with_pip)
        assert done.returncode == 1 and b"pip 1\n" in done.stdout
        assert (b"to allow it: --egress index.example.org (" in done.stderr) == bool(options), done.stderr.decode()


def test_a_proxy_is_used_only_when_asked_for(world):
    log = world.folder / "proxy.log"
    world.network.start("python3", ROOT / "tests/egress/connect_proxy.py", "good", "127.0.0.1", 3128, log, rig.SITE)
    rig.wait_port(world.network, "127.0.0.1", 3128)
    program = f"say(get('https://{SITE}/via').decode()[:4])"
    assert world.result(program, "--egress", SITE, env={"HTTPS_PROXY": "http://127.0.0.1:3128"})["stdout"] == "site\n"
    assert not log.exists() or f"CONNECT {SITE}" not in log.read_text()
    result = world.result(program, "--egress", SITE, env={"RESOLUTO_EGRESS_PROXY": "http://127.0.0.1:3128"})
    assert result["stdout"] == "site\n", show(result)
    assert log.read_text().count(f"CONNECT {SITE}:443") == 1
    broken = world.run(program, "--egress", SITE, env={"RESOLUTO_EGRESS_PROXY": "socks5://127.0.0.1:1"})
    assert broken.returncode == 125 and b"proxy" in broken.stderr and broken.stdout == b""


def test_files_of_the_image_that_are_links_are_replaced_not_followed(world, tmp_path):
    """Links that lead to files of the image, out of it, and nowhere; and no such file at all."""
    image = pathlib.Path(world.sandbox.run("image", "ls", "--json").stdout and next(
        i["path"] for i in json.loads(world.sandbox.run("image", "ls", "--json").stdout) if i["ref"].startswith("resoluto-sandbox-base:")))
    tree = tmp_path / "tree"
    tree.mkdir()
    with subprocess.Popen(["sqfs2tar", image], stdout=subprocess.PIPE) as tar:
        subprocess.run(["tar", "-xC", tree], stdin=tar.stdout, check=True)
    etc = tree / "etc"
    for name in ("resolv.conf", "nsswitch.conf"):
        (etc / name).unlink(missing_ok=True)
    (etc / "resolv.conf").symlink_to("../etc/victim")
    (etc / "nsswitch.conf").symlink_to("/etc/victim")
    (etc / "victim").write_text("hosts: nothing\npasswd: files\n")
    program = f"""
say(open('/etc/victim').read().split(), os.path.islink('/etc/resolv.conf'), os.path.islink('/etc/nsswitch.conf'))
say(open('/etc/nsswitch.conf').read().split('\\n'), get('https://{SITE}/').decode()[:4])
"""
    result = world.result(program, "--egress", SITE, "--image", f"rootfs:{tree}")
    world.cli("image", "rm", f"rootfs:{tree}")
    assert result["stdout"] == ("['hosts:', 'nothing', 'passwd:', 'files'] False False\n"
                                "['passwd: files', 'hosts: files dns', ''] site\n"), show(result)
    assert (etc / "victim").read_text() == "hosts: nothing\npasswd: files\n" and (etc / "resolv.conf").is_symlink()


def test_without_its_program_a_run_with_egress_does_not_start(world, tmp_path):
    shim = build_dir() / "src/shim/resoluto-shim"
    (tmp_path / "resoluto-shim").symlink_to(shim)
    missing = world.run("say('ran')", "--egress", SITE, env={"RESOLUTO_LIBEXEC_DIR": str(tmp_path)})
    assert missing.returncode == 125 and b"resoluto-gateway is not in" in missing.stderr and missing.stdout == b""
    gateway = tmp_path / "resoluto-gateway"
    for text, words in (("exit 3", b"without a word"), ("echo what is wrong >&2; exit 1", b"what is wrong")):
        gateway.write_text(f"#!/bin/sh\n{text}\n")
        gateway.chmod(0o755)
        dead = world.run("say('ran')", "--egress", SITE, env={"RESOLUTO_LIBEXEC_DIR": str(tmp_path)})
        assert dead.returncode == 125 and words in dead.stderr and dead.stdout == b"", dead
    plain = world.run("say('ran')", env={"RESOLUTO_LIBEXEC_DIR": str(tmp_path)})
    assert plain.stdout == b"ran\n"
