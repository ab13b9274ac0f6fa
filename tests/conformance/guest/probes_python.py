# SPDX-License-Identifier: Apache-2.0
"""Python's own library where it meets the system."""
import asyncio
import concurrent.futures
import http.client
import http.server
import multiprocessing
import os
import queue
import signal
import socket
import socketserver
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from probe import main, probe, run, same


def _served(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address


class _Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)


class _Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _read_back(stream, data):
    back = b""
    while len(back) < len(data):
        piece = stream.recv(1 << 16)
        assert piece, f"the connection ended after {len(back)} of {len(data)} bytes"
        back += piece
    same(back == data, True)


def _echoes(stream, size=1 << 20):
    """A megabyte there and back: more than any buffer of a socket holds."""
    data = os.urandom(size)
    threading.Thread(target=stream.sendall, args=(data,), daemon=True).start()
    _read_back(stream, data)


@probe
def sockets_over_tcp():
    address = _served(_Threads(("127.0.0.1", 0), _Echo))
    with socket.create_connection(("localhost", address[1])) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _echoes(stream)


@probe
def sockets_over_ipv6():
    class Server(_Threads):
        address_family = socket.AF_INET6
    address = _served(Server(("::1", 0), _Echo))
    with socket.create_connection(address[:2]) as stream:
        _echoes(stream, 1000)


@probe
def sockets_of_one_port_shared_by_two():
    one, two = socket.socket(), socket.socket()
    for each in (one, two):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("127.0.0.1", 0))
    two.bind(one.getsockname())
    one.listen()
    two.listen()


@probe
def sockets_over_udp_with_a_broad_address():
    receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiver.bind(("127.0.0.1", 0))
    sender.sendto(b"x" * 60000, receiver.getsockname())
    same(len(receiver.recv(65536)), 60000)
    member = socket.inet_aton("239.1.1.1") + socket.inet_aton("127.0.0.1")
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)


@probe
def names_without_a_network():
    same({a[4][0] for a in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)}, {"127.0.0.1", "::1"})
    try:
        socket.getaddrinfo("example.com", 80)
    except socket.gaierror:
        pass
    else:
        raise AssertionError("example.com has an address here")
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=60)
    except OSError as error:
        same(error.strerror, "Network is unreachable")


@probe
def threads_with_locks_queues_and_a_pool():
    work, done = queue.Queue(), []
    lock, barrier = threading.Lock(), threading.Barrier(20)

    def worker():
        barrier.wait()
        while (item := work.get()) is not None:
            with lock:
                done.append(item)
    threads = [threading.Thread(target=worker) for _ in range(20)]
    for thread in threads:
        thread.start()
    for item in range(500):
        work.put(item)
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join()
    same(sorted(done), list(range(500)))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        same(sum(pool.map(abs, range(-100, 0))), 5050)


@probe
def signals_reach_the_main_thread():
    got = []
    signal.signal(signal.SIGUSR1, lambda number, _: got.append(number))
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    end = time.monotonic() + 60
    while not got and time.monotonic() < end:
        time.sleep(0.01)
    same(got, [signal.SIGUSR1])


def _square(number):
    return number * number, os.getpid()


@probe
def multiprocessing_with_a_pool():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        results = pool.map(_square, range(40), chunksize=1)
    same([r[0] for r in results], [n * n for n in range(40)])
    assert os.getpid() not in {r[1] for r in results}


@probe
def multiprocessing_by_spawn_with_a_queue_and_a_manager():
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        shared = manager.dict(word="there")
        process = context.Process(target=print, args=(shared,))
        process.start()
        process.join()
        same((process.exitcode, shared["word"]), (0, "there"))


def _count(value):
    for _ in range(200):
        with value.get_lock():
            value.value += 1


@probe
def multiprocessing_with_a_shared_value():
    context = multiprocessing.get_context("fork")
    value = context.Value("i", 0)
    processes = [context.Process(target=_count, args=(value,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    same(value.value, 800)


async def _talk():
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def ask(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"word {number}\n".encode())
        return await reader.readline()
    return await asyncio.gather(*(ask(n) for n in range(50)))


@probe
def asyncio_with_fifty_connections():
    same(asyncio.run(_talk()), [f"WORD {n}\n".encode() for n in range(50)])


async def _programs():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await process.communicate(b"through a program")
    loop = asyncio.get_running_loop()
    got = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR2, got.set)
    os.kill(os.getpid(), signal.SIGUSR2)
    await asyncio.wait_for(got.wait(), 60)
    return out, process.returncode, await asyncio.to_thread(os.getppid)


@probe
def asyncio_with_programs_signals_and_threads():
    same(asyncio.run(_programs()), (b"through a program", 0, os.getppid()))


@probe
def sqlite_with_a_write_ahead_log_and_two_processes():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/base"
        base = sqlite3.connect(path, isolation_level=None)
        same(base.execute("pragma journal_mode=wal").fetchone()[0], "wal")
        base.execute("create table t (n integer primary key, s text)")
        base.execute("begin")
        base.executemany("insert into t values (?, ?)", [(n, f"text {n}") for n in range(1000)])
        base.execute("commit")
        other = run(sys.executable, "-c", "import sqlite3, sys; b = sqlite3.connect(sys.argv[1]); "
                    "b.execute('insert into t values (5000, 0)'); b.commit(); "
                    "print(b.execute('select count(*) from t').fetchone()[0])", path)
        same(other.strip(), "1001")
        same(base.execute("select sum(n) from t").fetchone()[0], 499500 + 5000)
        same(base.execute("pragma integrity_check").fetchone()[0], "ok")


@probe
def sqlite_searches_text():
    base = sqlite3.connect(":memory:")
    base.execute("create virtual table t using fts5(body)")
    base.executemany("insert into t values (?)", [("the quick fox",), ("a lazy dog",)])
    same(base.execute("select body from t where t match 'lazy'").fetchall(), [("a lazy dog",)])


def _certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
        folder + "/key", "-out", folder + "/cert", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost")
    return folder + "/cert", folder + "/key"


@probe
def tls_handshake_over_loopback():
    with tempfile.TemporaryDirectory() as folder:
        cert, key = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)

        class Server(_Threads):
            def get_request(self):
                stream, address = super().get_request()
                return context.wrap_socket(stream, server_side=True), address
        address = _served(Server(("127.0.0.1", 0), _Echo))
        client = ssl.create_default_context(cafile=cert)
        with client.wrap_socket(socket.create_connection(address), server_hostname="localhost") as stream:
            same(stream.version(), "TLSv1.3")
            for _ in range(10):  # one thread: a TLS connection is not for two at once
                data = os.urandom(10_000)
                stream.sendall(data)
                _read_back(stream, data)
        strict = ssl.create_default_context()
        try:
            strict.wrap_socket(socket.create_connection(address), server_hostname="localhost")
        except ssl.SSLCertVerificationError:
            return
        raise AssertionError("a certificate of nobody was believed")


@probe
def an_http_server_and_its_client():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.path.encode())
    host, port = _served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    same(urllib.request.urlopen(f"http://{host}:{port}/there").read(), b"/there")
    same(http.client.HTTPConnection(host, port).request("GET", "/"), None)


@probe
def programs_with_pipes_and_groups():
    process = subprocess.Popen(["sh", "-c", "trap 'echo told; exit 3' TERM; echo up; while :; do sleep 0.05; done"],
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    same(process.stdout.readline(), "up\n")
    os.killpg(process.pid, signal.SIGTERM)
    same((process.stdout.read(), process.wait()), ("told\n", 3))
    same(run("sh", "-c", "seq 1 2000 | sort -rn | head -n 1").strip(), "2000")


@probe
def a_virtual_environment_of_python_itself():
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", "--without-pip", folder + "/venv")
        same(run(folder + "/venv/bin/python", "-c", "import sys; print(sys.prefix)").strip(), folder + "/venv")


@probe
def the_clocks_agree():
    begin = {clock: time.clock_gettime(clock) for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC,
                                                            time.CLOCK_MONOTONIC_RAW, time.CLOCK_BOOTTIME)}
    time.sleep(0.5)
    passed = [time.clock_gettime(clock) - then for clock, then in begin.items()]
    assert min(passed) >= 0.49, passed
    assert max(passed) - min(passed) < 0.2, passed
    assert time.time() > 1_600_000_000


if __name__ == "__main__":
    main()
