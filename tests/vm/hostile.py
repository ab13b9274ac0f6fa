# SPDX-License-Identifier: Apache-2.0
"""What a hostile guest says (hostile.h), the archives it sends, and the place on the host that it must not change."""
import base64
import contextlib
import gzip
import io
import json
import os
import pathlib
import shutil
import struct
import tarfile
import tempfile

from conftest import Sandbox, build_dir

RUN = "run-hostile"
FAKE_BOOT_ID = "11111111-2222-4333-8444-555555555555"
HELLO, STARTED, CREDIT, CLOCK = 1, 3, 8, 7
PUT_BEGIN, PUT_DATA, PUT_END = 16, 17, 18
UNKNOWN = 2**64 - 1


def frame(kind, payload=b"", flags=0, stream=0, zero=0, length=None):
    return struct.pack("<IBBHI", 8 + len(payload) if length is None else length, kind, flags, zero, stream) + payload


def begin(key, size=UNKNOWN, stream=1):
    return frame(PUT_BEGIN, struct.pack("<Q", size) + key, stream=stream)


def event(run_id, span, kind="log", what="log", parent="", **more):
    return {"run_id": run_id, "span_id": span, "parent_span_id": parent, "kind": kind, "event": what, "ts": 1.0, **more}


def opening(run_id):
    return event(run_id, "aa", "workload", "open")


def line(run_id, text, seq, **more):
    return event(run_id, f"l{seq}", parent="aa", data={"line": text, "stream": "stdout", "seq": seq}, **more)


class Script:
    """Lines of hostile.h; every method adds some and returns the script."""

    def __init__(self, run_id):
        self.run_id, self.lines, self.chunks = run_id, [], 0

    def do(self, word, data=None, **more):
        entry = {"do": word, **more}
        if data is not None:
            entry["data"] = base64.b64encode(data).decode()
        self.lines.append(entry)
        return self

    def greet(self):
        return self.do("hello").do("started")

    def raw(self, port, data, times=1):
        return self.do("raw", data, port=port, times=times)

    def put(self, key, data=b"", **more):
        return self.do("put", data, key=key, **more)

    def chunk(self, *events):
        self.chunks += 1
        text = "".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events)
        return self.put(f"events-{self.chunks:06}.jsonl", text.encode())

    def says(self, *texts):
        """A chunk with the program's start and these lines of it."""
        lines = [line(self.run_id, text, seq) for seq, text in enumerate(texts, 1)]
        return self.chunk(opening(self.run_id), *lines)

    def flood(self, count=10_000_000, data=b""):
        """Chunks of these bytes, one behind the other."""
        return self.do("chunks", data, count=count, after=self.chunks)

    def result(self, **more):
        result = {"node_id": "run", "status": "success", "exit_code": 0, "ran": True, "output_archive": None, **more}
        return self.put("result.json", json.dumps(result).encode())

    def manifest(self, total=None):
        return self.put("_manifest.json", json.dumps({"total_chunks": self.chunks if total is None else total}).encode())

    def ends(self, archive=None, **result):
        if archive is not None:
            self.put("outbox/output.tar.gz", archive)
            result.setdefault("output_archive", "outbox/output.tar.gz")
        return self.result(**result).manifest().do("off")

    def bytes(self):
        return "".join(json.dumps(entry) + "\n" for entry in self.lines).encode()


# --- archives ---

class Archive:
    """A tar of whatever members, in their order."""

    def __init__(self, level=9):
        self.level = level
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, name, data=b"", kind=tarfile.REGTYPE, target="", mode=0o644, mtime=0, form=tarfile.GNU_FORMAT, pax=None):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.mode, info.mtime, info.size = kind, target, mode, mtime, len(data)
        if kind in (tarfile.CHRTYPE, tarfile.BLKTYPE):
            info.devmajor, info.devminor = 1, 3
        if pax:
            info.pax_headers, form = pax, tarfile.PAX_FORMAT
        self.tar.fileobj.write(info.tobuf(form, "utf-8", "surrogateescape"))
        self.tar.fileobj.write(data + bytes(-len(data) % 512))
        return self

    def link(self, name, target):
        return self.add(name, kind=tarfile.SYMTYPE, target=target)

    def hard(self, name, target):
        return self.add(name, kind=tarfile.LNKTYPE, target=target)

    def sparse(self, name, size):
        """A file of one hole."""
        pax = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": str(size)}
        return self.add("GNUSparseFile.0/x", f"1\n{size}\n0\n".encode().ljust(512, b"\0"), pax=pax)

    def zeros(self, name, count):
        info = tarfile.TarInfo(name)
        info.size = count
        self.tar.fileobj.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(count))
        return self

    def empties(self, count, name="e{:07}"):
        """Members of no bytes: one header, its name and checksum put right for each."""
        head = bytearray(tarfile.TarInfo("").tobuf(tarfile.GNU_FORMAT))
        head[148:156] = b" " * 8
        rest = sum(head)
        for i in range(count):
            text = name.format(i).encode()
            head[:100] = text.ljust(100, b"\0")
            head[148:156] = b"%06o\0 " % (rest + sum(text))
            self.bytes.write(head)
        return self

    def packed(self):
        return gzip.compress(self.bytes.getvalue() + bytes(1024), self.level)


def archive(*members, level=9):
    made = Archive(level)
    for name, data in members:
        made.add(name, data)
    return made


# --- the place ---

def describe(path):
    st = os.lstat(path)
    content = os.readlink(path) if os.path.islink(path) else path.read_bytes() if path.is_file() else None
    return st.st_mode, st.st_uid, st.st_ino, st.st_mtime_ns, st.st_nlink, content


class Place:
    """A workspace with traps in it, and around it a tree that nobody may touch."""

    def __init__(self, top):
        self.top, self.workspace = top, top / "outer" / "ws"
        self.workspace.mkdir(parents=True)
        outer = self.workspace.parent
        (outer / "victim").write_text("victim\n")
        (outer / "victims").mkdir()
        (outer / "victims" / "inner").write_text("inner\n")
        (outer / "empty").mkdir()
        os.link(outer / "victim", outer / "second name")
        (outer / "link").symlink_to("victim")
        (self.workspace / "own.txt").write_text("own\n")
        (self.workspace / "private.json").write_text('{"private": 1}\n')
        (self.workspace / "dir").mkdir()
        (self.workspace / "dir" / "kept").write_text("kept\n")
        (self.workspace / "to-victims").symlink_to("../victims")
        (self.workspace / "to-victim").symlink_to("../victim")
        (self.workspace / "inside").symlink_to("dir")
        os.link(outer / "victims" / "inner", self.workspace / "hard")
        self.before = self.surroundings()
        self.own = {name: describe(self.workspace / name) for name in ("own.txt", "private.json", "dir/kept")}

    def surroundings(self):
        """All but the workspace; of what has a further name in it, not how many it has."""
        found = {}
        for path in sorted(self.top.rglob("*")):
            if path != self.workspace and self.workspace not in path.parents:
                found[str(path)] = describe(path)
        inner = str(self.workspace.parent / "victims" / "inner")
        found[inner] = found[inner][:4] + found[inner][5:]
        # The workspace's own directory may be replaced in, its parent not.
        return found

    def check(self):
        after = self.surroundings()
        assert after == self.before, {k: (self.before.get(k), v) for k, v in after.items() if v != self.before.get(k)}
        for name in ("own.txt", "private.json", "dir/kept"):
            assert describe(self.workspace / name) == self.own[name], name

    def landed(self):
        """Names in the workspace that were not there before."""
        ours = {"own.txt", "private.json", "dir", "dir/kept", "to-victims", "to-victim", "inside", "hard"}
        names = {str(path.relative_to(self.workspace)) for path in self.workspace.rglob("*")}
        return names - ours


# --- the runs ---

class Host:
    """The command line, what surrounds it, and another run that no guest may touch."""

    def __init__(self, folder, env):
        state = folder / "state"
        state.mkdir(mode=0o700)
        shutil.copy(build_dir() / "tests/vm/libexec_witness.so", folder)
        self.sandbox, self.witness = Sandbox(state, state), state / "executed"
        self.env = {**env, "LD_PRELOAD": str(folder / "libexec_witness.so"), "EXEC_WITNESS": str(self.witness)}
        self.other = None

    def other_run(self):
        """A run that is kept; its objects are compared after each hostile one."""
        done = self.command(Script("run-other").greet().says("mine").ends(), None, ["--keep", "--id", "run-other"])
        assert done["ok"], done
        self.other = self.objects("run-other")

    def objects(self, run_id):
        top = self.sandbox.state / "runs" / run_id / "conduit/run" / run_id
        return {str(p.relative_to(top)): (p.read_bytes(), p.stat().st_ino) for p in top.rglob("*") if p.is_file()}

    def command(self, script, place, options, timeout=120):
        scripted = self.sandbox.state / "script"
        scripted.write_bytes(script.bytes())
        self.witness.unlink(missing_ok=True)
        where = ["--workspace", place.workspace] if place else []
        done = self.sandbox.run("run", "--json", "--stdin", scripted, *where, *options, "--", "hostile", env=self.env,
                                timeout=timeout)
        assert done.stdout, done.stderr
        self.said = done.stderr.decode()
        result = json.loads(done.stdout)
        assert result["exit_code"] == done.returncode or not result["ran"], result
        self.check(place)
        return result

    def run(self, script, place=None, options=(), **more):
        return self.command(script, place, ["--id", RUN, *options], **more)

    def check(self, place):
        executed = self.witness.read_text().split()
        assert [os.path.basename(name) for name in executed] == ["resoluto-shim"], executed
        if place:
            place.check()
        if self.other:
            assert self.objects("run-other") == self.other
            assert set(self.sandbox.runs()) <= {"run-other", RUN}


def fake_machine(folder):
    """The environment of a run whose emulator is a hostile guest."""
    shutil.copy(build_dir() / "tests/vm/hostile_qemu", folder)
    (folder / "kernel").write_bytes(b"no kernel at all" * 8)
    (folder / "initrd").write_bytes(b"x")
    folder.chmod(0o755)
    return {"RESOLUTO_LOCAL_QEMU": str(folder / "hostile_qemu"), "RESOLUTO_LOCAL_KERNEL": str(folder / "kernel"),
            "RESOLUTO_LOCAL_INITRD": str(folder / "initrd"), "RESOLUTO_LOCAL_ACCEL": "tcg",
            "RESOLUTO_LOCAL_MACHINE": f"{os.uname().machine}-debian"}


@contextlib.contextmanager
def fake_host():
    """Where the emulator's place is a hostile guest's."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile-"))
    host = Host(folder, fake_machine(folder))
    host.other_run()
    yield host
    host.sandbox.run("rm", "--force", "run-other")
    shutil.rmtree(folder)


def ended(result, reason, disposition):
    assert (result["reason"], result["disposition"]) == (reason, disposition), result
    assert not result["ok"] and result["exit_code"] != 0


def by_protocol(result):
    ended(result, "protocol", "external")


def over(result, name):
    ended(result, "quota", "stopped")
    exceeded = [quota for quota, told in result["quotas"].items() if told["exceeded"]]
    assert exceeded == [name], result["quotas"]
