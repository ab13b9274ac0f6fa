# SPDX-License-Identifier: Apache-2.0
"""Images for tests: OCI layouts made byte by byte, trees to compare, a real registry, and the tool under test."""
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import stat
import subprocess
import tarfile
import urllib.error
import urllib.request

from conftest import build_dir, wait_until

MEDIA = "application/vnd.oci.image."


def tool_path():
    return str(build_dir() / "tests/services/image_tool")


class Answer:
    """What image_tool said: `lines` of JSON, the steps of progress, (bytes done, bytes in all) of each, the exit code."""

    def __init__(self, code, out, err):
        self.code = code
        self.lines = [json.loads(line) for line in out.decode().splitlines()]
        self.steps = [line.split()[0] for line in err.decode(errors="replace").splitlines() if line.strip()]
        self.stderr = err.decode(errors="replace")
        self.amounts = {}
        for step, *amounts in re.findall(r"^(\w+) (\d+) (\d+)$", self.stderr, re.M):
            self.amounts.setdefault(step, []).append(tuple(map(int, amounts)))

    def __getitem__(self, name):
        return self.lines[0][name]


class Tool:
    def __init__(self, cache, env=None, wrap=()):
        self.cache = str(cache)
        self.wrap = list(wrap)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(pathlib.Path(cache).parent / "home"),
                    "RESOLUTO_SANDBOX_REGISTRY": "", **(env or {})}

    def start(self, *arguments, env=None):
        return subprocess.Popen([*self.wrap, tool_path(), self.cache, *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**self.env, **(env or {})})

    def end(self, process, timeout=120):
        out, err = process.communicate(timeout=timeout)
        return Answer(process.returncode, out, err)

    def __call__(self, *arguments, env=None):
        return self.end(self.start(*arguments, env=env))

    def ok(self, *arguments, env=None):
        answer = self(*arguments, env=env)
        assert answer.code == 0, (answer.lines, answer.stderr)
        return answer

    def fails(self, error, *arguments, env=None):
        answer = self(*arguments, env=env)
        assert answer.code == 1 and answer["error"] == error, (answer.lines, answer.stderr)
        assert "\n" not in answer["text"] and len(answer["text"]) < 512
        return answer["text"]

    def leftovers(self):
        """Everything in the cache that is not an image with its description, a lock or the names."""
        images = pathlib.Path(self.cache) / "images"
        found = [p.name for p in images.iterdir()] if images.exists() else []
        whole = {n.rsplit(".", 1)[0] for n in found if n.endswith(".json")}
        return [n for n in found if not n.startswith(".lock") and n.rsplit(".", 1)[0] not in whole]


# -- layers and layouts --

def member(name, kind=tarfile.REGTYPE, data=b"", mode=0o644, uid=0, gid=0, target="", mtime=1700000000, xattrs=None):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.uid, info.gid = kind, mode, uid, gid
    info.mtime, info.linkname = mtime, target
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    for key, value in (xattrs or {}).items():
        info.pax_headers["SCHILY.xattr." + key] = value.decode("utf-8", "surrogateescape")
    return info, data


def folder(name, mode=0o755, **more):
    return member(name, tarfile.DIRTYPE, mode=mode, **more)


def layer(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layout:
    """An OCI layout.  Blobs may be wrong on purpose."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self.manifests = []

    def blob(self, data):
        (self.path / "blobs/sha256" / digest(data)[7:]).write_bytes(data)
        return {"digest": digest(data), "size": len(data)}

    def image(self, layers, tag="latest", config=None, arch="amd64", diff_ids=None, packed=None, kind="tar+gzip"):
        """packed: the layers' blobs where they are not simply the gzip'd layers."""
        packed = packed or [gzip.compress(x, 1, mtime=0) for x in layers]
        body = {"architecture": arch, "os": "linux", "config": config or {},
                "rootfs": {"type": "layers", "diff_ids": diff_ids or [digest(x) for x in layers]}}
        manifest = {"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
                    "config": {"mediaType": MEDIA + "config.v1+json", **self.blob(json.dumps(body).encode())},
                    "layers": [{"mediaType": MEDIA + "layer.v1." + kind, **self.blob(x)} for x in packed]}
        entry = {"mediaType": manifest["mediaType"], **self.blob(json.dumps(manifest).encode()),
                 "annotations": {"org.opencontainers.image.ref.name": tag}}
        self.manifests.append(entry)
        self.write()
        return manifest["config"]["digest"]

    def index(self, tag, platforms):
        """One tag for several images: platforms = {arch: layers}."""
        before = self.manifests
        self.manifests = []
        for arch, layers in platforms.items():
            self.image(layers, arch=arch)
            self.manifests[-1] = {**self.manifests[-1], "platform": {"os": "linux", "architecture": arch}}
            del self.manifests[-1]["annotations"]
        body = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": self.manifests}
        self.manifests = before + [{"mediaType": body["mediaType"], **self.blob(json.dumps(body).encode()),
                                    "annotations": {"org.opencontainers.image.ref.name": tag}}]
        self.write()

    def write(self):
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self.manifests}))


# -- trees --

def xattrs_of_tar(info):
    return {k[13:]: v.encode("utf-8", "surrogateescape") for k, v in info.pax_headers.items()
            if k.startswith("SCHILY.xattr.")}


def squashfs_tree(path):
    """{name: (kind, mode, uid, gid, what, xattrs)}, and the sets of names that are one file."""
    out = subprocess.run(["sqfs2tar", "-s", "-r", ".", path], check=True, capture_output=True).stdout
    tree, links = {}, {}
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        for info in tar:
            name = os.path.normpath(info.name)
            if info.islnk():
                first = os.path.normpath(info.linkname)
                tree[name] = tree[first]
                links.setdefault(first, {first}).add(name)
                continue
            what = info.linkname if info.issym() else ""
            if info.isreg():
                what = hashlib.sha256(tar.extractfile(info).read()).hexdigest()
            kind = {tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l", tarfile.FIFOTYPE: "p"}.get(info.type, "-")
            mode = 0 if kind == "l" else info.mode
            tree[name] = (kind, mode, info.uid, info.gid, what, xattrs_of_tar(info))
    return tree, sorted(sorted(x) for x in links.values())


def disk_tree(root):
    """The same of a directory."""
    tree, inodes = {}, {}
    root = os.fsencode(str(root))
    for folder_path, dirs, files in os.walk(root):
        for name in [b"."] * (folder_path == root) + dirs + files:
            path = os.path.normpath(os.path.join(folder_path, name))
            st = os.lstat(path)
            short = os.fsdecode(os.path.relpath(path, root))
            what, kind = "", {stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p"}.get(stat.S_IFMT(st.st_mode), "-")
            if kind == "l":
                what = os.fsdecode(os.readlink(path))
            elif kind == "-":
                with open(path, "rb") as file:
                    what = hashlib.sha256(file.read()).hexdigest()
            if kind != "d" and st.st_nlink > 1:
                inodes.setdefault(st.st_ino, []).append(short)
            mode = 0 if kind == "l" else stat.S_IMODE(st.st_mode)
            names = [] if kind == "l" else os.listxattr(path)
            tree[short] = (kind, mode, st.st_uid, st.st_gid, what, {n: os.getxattr(path, n) for n in names})
    return tree, sorted(sorted(x) for x in inodes.values() if len(x) > 1)


def assert_same_trees(got, want):
    assert sorted(got[0]) == sorted(want[0])
    different = {k: (got[0][k], want[0][k]) for k in want[0] if got[0][k] != want[0][k]}
    assert different == {}
    assert got[1] == want[1]


# -- programs --

def run(*arguments, **options):
    done = subprocess.run([str(x) for x in arguments], capture_output=True, **options)
    assert done.returncode == 0, (arguments, done.stderr.decode(errors="replace"))
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def registry(place, users=None, certificate=None):
    """docker-registry on loopback with storage of its own; by TLS with a certificate and its key.  Yields "127.0.0.1:PORT"."""
    place = pathlib.Path(place)
    port = free_port()
    place.mkdir()
    config = {"version": 0.1, "log": {"level": "error", "accesslog": {"disabled": True}},
              "storage": {"filesystem": {"rootdirectory": str(place / "storage")}},
              "http": {"addr": f"127.0.0.1:{port}"}}
    if certificate:
        config["http"]["tls"] = dict(zip(("certificate", "key"), map(str, certificate)))
    if users:
        (place / "htpasswd").write_text("".join(f"{name}:{hashed}\n" for name, hashed in users.items()))
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(place / "htpasswd")}}
    (place / "config.yml").write_text(json.dumps(config))
    log = open(place / "log", "wb")
    process = subprocess.Popen(["docker-registry", "serve", str(place / "config.yml")], stdout=log, stderr=log)

    def is_up():
        assert process.poll() is None, (place / "log").read_text()
        try:
            urllib.request.urlopen(f"http{'s' if certificate else ''}://127.0.0.1:{port}/v2/", timeout=5,
                                   context=ssl._create_unverified_context())
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False
        return True

    try:
        wait_until(is_up, "the registry")
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        log.close()


def push(source, where, *more):
    run("skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", *more, source, "docker://" + where)
