# SPDX-License-Identifier: Apache-2.0
"""Images by real programs: skopeo, a registry, umoci, tar2sqfs; and what is wrong with an image, said clearly."""
import base64
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import socket
import socketserver
import subprocess
import tarfile
import tempfile
import threading

import pytest

from authority import Authority
from conftest import Processes, wait_until
from oci_images import (Layout, Tool, assert_same_trees, digest, disk_tree, folder, layer, member, push, registry,
                        run, squashfs_tree, tool_path)

# bcrypt of "secret"
SECRET = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: owners, mounts or other users")

CONFIG = {"Env": ["PATH=/bin", "LANG=C.UTF-8", "RESOLUTO_STORE_KIND=s3"], "WorkingDir": "/srv", "User": "app:7",
          "Labels": {"resoluto.version": "0.1.0"}, "Entrypoint": ["/bin/false"]}
SMALL = layer(folder("bin"), member("bin/tool", data=b"tool " * 1000, mode=0o755), folder("srv", uid=7, gid=8))


@pytest.fixture
def tool(tmp_path):
    (tmp_path / "home").mkdir()
    return Tool(tmp_path / "cache")


@pytest.fixture
def open_place():
    """A directory that other users reach too; pytest's own they do not."""
    with tempfile.TemporaryDirectory(prefix="resoluto-image-") as place:
        os.chmod(place, 0o755)
        yield pathlib.Path(place)


def as_nobody(place):
    """The tool as another user, whose home and cache are in place."""
    for name in ("home", "cache"):
        (place / name).mkdir()
        shutil.chown(place / name, "nobody", "nogroup")
    return Tool(place / "cache", wrap=["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"])


@pytest.fixture
def small(tmp_path):
    layout = Layout(tmp_path / "small")
    layout.config_digest = layout.image([SMALL], tag="1", config=CONFIG)
    return layout


def assert_amounts_are_told(answer, *steps):
    """A bar needs to know how much there is in all."""
    for step in steps:
        done, total = zip(*answer.amounts[step])
        assert set(total) == {done[-1]} and max(done) == done[-1] > 0, answer.stderr


# -- sources --

def test_registry_image_by_every_name(tool, small, tmp_path):
    with registry(tmp_path / "registry") as host:
        push(f"oci:{small.path}:1", f"{host}/team/small:1")
        first = tool.ok("get", f"{host}/team/small:1")
        assert first["digest"] == small.config_digest
        assert first["env"] == ["PATH=/bin", "LANG=C.UTF-8"]
        assert (first["workdir"], first["user"], first["version_label"]) == ("/srv", "app:7", "0.1.0")
        assert_amounts_are_told(first, "fetch", "squashfs")
        bare = tool.ok("get", "team/small:1", env={"RESOLUTO_SANDBOX_REGISTRY": host})
        assert bare["path"] == first["path"] and bare.steps == []
        # Another cache, from the bare name alone.
        other = Tool(tmp_path / "other")
        assert other.ok("get", "team/small:1", env={"RESOLUTO_SANDBOX_REGISTRY": host})["digest"] == first["digest"]
        pinned = "sha256:" + run("skopeo", "inspect", "--tls-verify=false", "--format", "{{.Digest}}",
                                 f"docker://{host}/team/small:1").decode().strip()[7:]
        assert tool.ok("get", f"{host}/team/small@{pinned}")["digest"] == first["digest"]
        assert tool.ok("get", f"{host}/team/small:1@{pinned}").steps == []
    # The registry is gone; the cache has it.
    assert tool.ok("get", f"{host}/team/small:1")["path"] == first["path"]
    assert tool.ok("get", first["digest"])["path"] == first["path"]
    assert tool.ok("get-never", f"{host}/team/small:1")["path"] == first["path"]
    tool.fails("EHOSTUNREACH", "get-always", f"{host}/team/small:1")
    assert tool.leftovers() == []


def test_pull_always_follows_a_moved_tag_and_fetches_nothing_else(tool, small, tmp_path):
    with registry(tmp_path / "registry") as host:
        push(f"oci:{small.path}:1", f"{host}/small:1")
        first = tool.ok("get", f"{host}/small:1")
        again = tool.ok("get-always", f"{host}/small:1")
        assert again["digest"] == first["digest"] and "fetch" not in again.steps
        small.image([SMALL, layer(member("new", data=b"n"))], tag="2")
        push(f"oci:{small.path}:2", f"{host}/small:1")
        assert tool.ok("get", f"{host}/small:1")["digest"] == first["digest"]
        moved = tool.ok("get-always", f"{host}/small:1")
        assert moved["digest"] != first["digest"]
        assert "new" in squashfs_tree(moved["path"])[0]


def test_what_a_registry_does_not_have(tool, small, tmp_path):
    with registry(tmp_path / "registry") as host:
        push(f"oci:{small.path}:1", f"{host}/small:1")
        assert "manifest unknown" in tool.fails("ENOENT", "get", f"{host}/small:2")
        tool.fails("ENOENT", "get", f"{host}/nothing:1")
        tool.fails("ENOENT", "get", f"{host}/small@sha256:" + "0" * 64)
        text = tool.fails("ENOENT", "get", "nothing:1", env={"RESOLUTO_SANDBOX_REGISTRY": host})
        assert host in text and "docker.io/library/nothing:1" in text
    assert "connection refused" in tool.fails("EHOSTUNREACH", "get", f"{host}/small:1")
    tool.fails("EHOSTUNREACH", "get", "small:1", env={"RESOLUTO_SANDBOX_REGISTRY": host})
    text = tool.fails("ENOENT", "get", "small:1", env={"RESOLUTO_SANDBOX_REGISTRY": ""})
    assert "RESOLUTO_SANDBOX_REGISTRY is empty" in text
    assert "--pull never" in tool.fails("ENOENT", "get-never", f"{host}/small:1")
    tool.fails("EINVAL", "get", "small:1", env={"RESOLUTO_SANDBOX_REGISTRY": "no host"})
    assert tool.leftovers() == []


def test_private_registry(tool, small, tmp_path):
    auth = base64.b64encode(b"me:secret").decode()
    wrong = base64.b64encode(b"me:guess").decode()
    with registry(tmp_path / "registry", users={"me": SECRET}) as host:
        good = tmp_path / "auth.json"
        good.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps({"auths": {host: {"auth": wrong}}}))
        push(f"oci:{small.path}:1", f"{host}/small:1", "--dest-authfile", good)
        name = f"{host}/small:1"
        tool.fails("EACCES", "get", name)
        tool.fails("EACCES", "get", name, "", bad)
        assert tool.ok("get", name, "", good)["digest"] == small.config_digest
        assert tool.ok("get-always", name, env={"REGISTRY_AUTH_FILE": str(good)})
        docker = pathlib.Path(tool.env["HOME"]) / ".docker"
        docker.mkdir()
        shutil.copy(good, docker / "config.json")
        assert tool.ok("get-always", name)
        tool.fails("EACCES", "get-always", name, "", bad)


@pytest.fixture
def proxy():
    """Its address, and the first lines of what it was asked; it refuses everything."""
    asked = []

    class Refuse(socketserver.StreamRequestHandler):
        def handle(self):
            asked.append(self.rfile.readline().decode().strip())
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def tunnel_to(server):
    """The address of a proxy that leads to this server, whatever name it is asked for."""
    host, port = server.split(":")

    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    class Tunnel(socketserver.StreamRequestHandler):
        rbufsize = 0  # what follows the request is not ours
        timeout = 60

        def handle(self):
            while self.rfile.readline().strip():
                pass
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), self.timeout) as upstream:
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=copy, args=(upstream, self.request))
                back.start()
                copy(self.request, upstream)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_who_a_registry_is_is_verified(tool, small, tmp_path):
    authority = Authority(tmp_path)
    with registry(tmp_path / "registry", certificate=authority.issue("registry.test")) as host, tunnel_to(host) as proxy:
        push(f"oci:{small.path}:1", f"{host}/small:1")
        trusting = {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(tmp_path / "ca.pem")}
        refused = tool.fails("EHOSTUNREACH", "get", "registry.test/small:1", env={"HTTPS_PROXY": proxy})
        assert "certificate signed by unknown authority; " in refused and "SSL_CERT_FILE" in refused
        assert "not other.test" in tool.fails("EHOSTUNREACH", "get", "other.test/small:1", env=trusting)
        assert tool.ok("get", "registry.test/small:1", env=trusting)["digest"] == small.config_digest


def test_registries_are_reached_through_the_proxy(tool, proxy):
    address, asked = proxy
    tool("get", "registry.invalid/team/small:1", env={"HTTPS_PROXY": address})
    assert asked and set(asked) == {"CONNECT registry.invalid:443 HTTP/1.1"}
    asked.clear()
    assert tool("get", "registry.invalid/team/small:1", env={"HTTPS_PROXY": address, "NO_PROXY": "registry.invalid"}).code == 1
    assert asked == []


def test_every_local_form_gives_the_same_tree(tool, small, tmp_path):
    source = f"oci:{small.path}:1"
    run("skopeo", "--insecure-policy", "copy", source, f"oci-archive:{tmp_path}/oci.tar:1")
    run("skopeo", "--insecure-policy", "copy", source, f"docker-archive:{tmp_path}/docker.tar:small:1")
    run("skopeo", "--insecure-policy", "copy", source, f"dir:{tmp_path}/dir")
    want = squashfs_tree(tool.ok("get", source)["path"])
    assert want[0]["srv"][2:4] == (7, 8)
    for ref in (f"oci-archive:{tmp_path}/oci.tar", f"docker-archive:{tmp_path}/docker.tar",
                f"docker-archive:{tmp_path}/docker.tar:small:1", f"dir:{tmp_path}/dir"):
        answer = tool.ok("get", ref)
        assert answer["user"] == "app:7", ref
        assert_same_trees(squashfs_tree(answer["path"]), want)
        assert tool.ok("get", ref).steps == []
    assert "oci-archive:" in tool.fails("EINVAL", "get", f"tar:{tmp_path}/oci.tar")
    assert "docker-archive:" in tool.fails("EINVAL", "get", f"{tmp_path}/docker.tar")
    assert "oci:DIR" in tool.fails("EINVAL", "get", str(small.path))
    tool.fails("ENOENT", "get", f"oci:{small.path}:9")
    tool.fails("ENOENT", "get", f"docker-archive:{tmp_path}/docker.tar:other:1")
    tool.fails("ENOENT", "get", f"oci:{tmp_path}/nowhere")
    assert tool.leftovers() == []


def test_a_changed_layout_is_seen(tool, small):
    first = tool.ok("get", f"oci:{small.path}")
    layout = small
    layout.manifests = []
    layout.image([layer(member("other"))], tag="1")
    assert tool.ok("get", f"oci:{small.path}")["digest"] != first["digest"]


def plain_root(path):
    path.mkdir()
    (path / "bin").mkdir()
    (path / "bin/sh").write_bytes(b"#!" * 5000)
    (path / "bin/sh").chmod(0o4755)
    os.link(path / "bin/sh", path / "bin/bash")
    (path / "etc").mkdir(mode=0o700)
    (path / "etc/link").symlink_to("/nowhere")
    (path / "usr").mkdir()
    os.mkfifo(path / "usr/fifo")
    return path


def test_plain_root_file_systems(tool, tmp_path):
    root = plain_root(tmp_path / "root")
    want = disk_tree(root)
    first = tool.ok("get", f"rootfs:{root}")
    if os.geteuid() == 0:
        assert_same_trees(squashfs_tree(first["path"]), want)
    # Neither the directory nor the same one by its bare path is read again.
    made = os.stat(first["path"]).st_ino
    assert tool.ok("get", str(root)).steps == []
    assert tool.ok("get", f"rootfs:{root}")["digest"] == first["digest"]
    assert os.stat(first["path"]).st_ino == made
    for flag, name in (("", "a.tar"), ("z", "a.tar.gz"), ("J", "a.tar.xz"), ("j", "a.tar.bz2")):
        run("tar", f"-c{flag}f", tmp_path / name, "-C", root, ".")
        answer = tool.ok("get", f"tar:{tmp_path}/{name}")
        assert squashfs_tree(answer["path"]) == squashfs_tree(tool.ok("get", tmp_path / name)["path"])
        assert answer["env"] == [] and answer["user"] is None
        if os.geteuid() == 0:
            assert_same_trees(squashfs_tree(answer["path"]), want)
    (root / "etc/new").write_text("x")
    changed = tool.ok("get", f"rootfs:{root}")
    assert changed["digest"] != first["digest"] and "etc/new" in squashfs_tree(changed["path"])[0]
    tool.fails("ENOENT", "get", f"rootfs:{tmp_path}/none")
    tool.fails("EINVAL", "get", f"tar:{root}")
    tool.fails("ENOTDIR", "get", f"rootfs:{tmp_path}/a.tar")
    assert tool.leftovers() == []


@root_only
def test_an_unreadable_file_is_named(open_place):
    tool = as_nobody(open_place)
    root = plain_root(open_place / "root")
    (root / "etc").chmod(0o755)
    (root / "secret").write_text("x")
    (root / "secret").chmod(0)
    assert "'secret' cannot be read" in tool.fails("EACCES", "get", f"rootfs:{root}")
    assert tool.leftovers() == []


def test_only_one_static_binary(tool, tmp_path):
    (tmp_path / "hello.c").write_text('#include <unistd.h>\nint main(void) { return write(1, "hi\\n", 3) != 3; }\n')
    run("gcc", "-static", "-o", tmp_path / "hello", tmp_path / "hello.c")
    binary = (tmp_path / "hello").read_bytes()
    Layout(tmp_path / "image").image([layer(member("hello", data=binary, mode=0o755))])
    answer = tool.ok("get", f"oci:{tmp_path}/image")
    assert sorted(squashfs_tree(answer["path"])[0]) == [".", "hello"]
    run("rdsquashfs", "-q", "-C", "-u", "/", "-p", tmp_path / "out", answer["path"])
    assert run(tmp_path / "out/hello") == b"hi\n"


def test_platforms(tool, tmp_path):
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    foreign = "arm64" if machine == "amd64" else "amd64"
    layout = Layout(tmp_path / "multi")
    layout.index("both", {"amd64": [layer(member("is-amd64"))], "arm64": [layer(member("is-arm64"))]})
    layout.image([SMALL], tag="foreign", arch=foreign)
    with registry(tmp_path / "registry") as host:
        for tag in ("both", "foreign"):
            push(f"oci:{layout.path}:{tag}", f"{host}/x:{tag}", "--all")
        ours = tool.ok("get", f"{host}/x:both")
        theirs = tool.ok("get", f"{host}/x:both", f"linux/{foreign}")
        assert_amounts_are_told(ours, "fetch")
        assert f"is-{machine}" in squashfs_tree(ours["path"])[0]
        assert f"is-{foreign}" in squashfs_tree(theirs["path"])[0]
        assert tool.ok("get", f"{host}/x:both")["digest"] == ours["digest"]
        tool.fails("ENOENT", "get", f"{host}/x:both", "linux/s390x")
        assert f"it is for linux/{foreign}" in tool.fails("ENOENT", "get", f"{host}/x:foreign")
        assert tool.ok("get", f"{host}/x:foreign", f"linux/{foreign}")
    tool.fails("EINVAL", "get", f"{host}/x:both", "windows/amd64")


# -- flattening against another implementation --

def change_tree(root):
    """What the second layer does to the first, by umoci."""
    shutil.rmtree(root / "gone")
    (root / "etc/removed").unlink()
    shutil.rmtree(root / "dir-to-file")
    (root / "dir-to-file").write_text("a file now")
    (root / "file-to-dir").unlink()
    (root / "file-to-dir").mkdir()
    (root / "file-to-dir/x").write_text("x")
    (root / "etc/changed").write_text("second")
    os.chmod(root / "etc/mode", 0o2751)
    os.chown(root / "etc/owner", 1234, 4321)
    os.link(root / "etc/late", root / "etc/late-link")
    os.setxattr(root / "etc/attr", "user.colour", b"blue\0\n=")


def make_tree(root):
    for name in ("etc", "gone/deep/er", "dir-to-file/sub", "lib64", "sticky", "empty"):
        (root / name).mkdir(parents=True)
    (root / "sticky").chmod(0o1777)
    for name in ("removed", "changed", "mode", "owner", "late", "attr", "setuid", "a-link"):
        (root / "etc" / name).write_text(name * 50)
    (root / "gone/deep/er/file").write_text("x")
    (root / "dir-to-file/sub/file").write_text("x")
    (root / "file-to-dir").write_text("x")
    (root / "etc/setuid").chmod(0o6755)
    os.link(root / "etc/a-link", root / "etc/b-link")
    (root / "lib").symlink_to("lib64")
    (root / "big").write_bytes(os.urandom(3_000_000))
    (root / ("n" * 200)).write_text("long name")
    (root / os.fsdecode(b"not-utf8-\xff\xfe")).write_text("bytes")
    (root / "caf\u00e9 \u20ac").write_text("unicode")
    os.setxattr(root / "etc/attr", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    os.mkfifo(root / "fifo")


@root_only
def test_layers_of_umoci_flatten_as_umoci_unpacks_them(tool, tmp_path):
    layout, bundle = tmp_path / "layout", tmp_path / "bundle"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", f"{layout}:1")
    for change in (make_tree, change_tree):
        shutil.rmtree(bundle, ignore_errors=True)
        run("umoci", "unpack", "--image", f"{layout}:1", bundle)
        change(bundle / "rootfs")
        run("umoci", "repack", "--image", f"{layout}:1", bundle)
    run("umoci", "unpack", "--image", f"{layout}:1", tmp_path / "want")
    got = tool.ok("get", f"oci:{layout}:1")
    assert_same_trees(squashfs_tree(got["path"]), disk_tree(tmp_path / "want/rootfs"))


LOWER = layer(
    folder("./"), folder("opaque", mode=0o750), member("opaque/old", data=b"1"), folder("opaque/sub"),
    member("opaque/sub/x", data=b"2"), folder("kept"), member("kept/a", data=b"3"), folder("usr"), folder("usr/lib"),
    member("lib", tarfile.SYMTYPE, target="usr/lib"), member("one", data=b"shared"),
    member("two", tarfile.LNKTYPE, target="one"), member("target", data=b"t"), member("away", data=b"w"))
UPPER = layer(
    folder("opaque", mode=0o700, uid=5), member("opaque/.wh..wh..opq"), member("opaque/new", data=b"4"),
    member("lib/through", data=b"5"), member("one", data=b"replaced"), member("kept/.wh.a"),
    member("kept/b", data=b"6", uid=3, gid=4, mode=0o4711), member("linked", tarfile.LNKTYPE, target="target"),
    member("x/y/z", data=b"7"))
TOP = layer(member(".wh.away"), member("opaque/old", data=b"again"), member("kept/.wh.b"), member(".wh.linked"))


@root_only
def test_hand_made_layers_flatten_as_umoci_unpacks_them(tool, tmp_path):
    layout = Layout(tmp_path / "layout")
    layout.image([LOWER, UPPER, TOP])
    run("umoci", "unpack", "--image", f"{layout.path}:latest", tmp_path / "want")
    got = tool.ok("get", f"oci:{layout.path}")
    assert_same_trees(squashfs_tree(got["path"]), disk_tree(tmp_path / "want/rootfs"))


def test_layers_may_be_zstd_or_plain(tool, tmp_path):
    trees = []
    for number, (kind, program) in enumerate((("tar+gzip", ["gzip"]), ("tar+zstd", ["zstd"]), ("tar", ["cat"]))):
        layout = Layout(tmp_path / f"layout{number}")
        packed = [run(*program, input=x) for x in (LOWER, UPPER, TOP)]
        layout.image([LOWER, UPPER, TOP], packed=packed, kind=kind)
        # dir: keeps the blobs as they are; the same configuration is the same image, so each its own cache.
        other = Tool(tmp_path / f"cache{number}")
        trees.append(squashfs_tree(other.ok("get", f"oci:{layout.path}")["path"]))
    assert trees[0] == trees[1] == trees[2]


# -- what is wrong with an image --

@pytest.mark.parametrize("members, says", [
    ([member("/etc/passwd", data=b"x")], "absolute name"),
    ([member("a/../../etc/passwd")], "climbs with '..'"),
    ([member("link", tarfile.LNKTYPE, target="../../etc/passwd")], "climbs with '..'"),
    ([member("link", tarfile.LNKTYPE, target="/etc/passwd")], "absolute name"),
    ([member("sda", tarfile.BLKTYPE)], "device node outside of /dev"),
    ([member("mem", tarfile.CHRTYPE)], "device node outside of /dev"),
    ([member("a"), member("a/b")], "beneath what is no directory"),
    ([member("l", tarfile.SYMTYPE, target="l"), member("l/x")], "IMAGE_SYMLINKS_MAX"),
    ([folder("/".join("d" * 1025))], "IMAGE_DEPTH_MAX"),
    ([member("n" * 256)], "IMAGE_NAME_MAX"),
])
def test_hostile_layers(tool, tmp_path, members, says):
    layout = Layout(tmp_path / "layout")
    layout.image([SMALL, layer(*members)])
    text = tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    assert "layer 2 of 2" in text and says in text, text
    assert tool.leftovers() == [] and tool.ok("ls").lines == []


def test_escaping_links_stay_links(tool, tmp_path):
    """A link that points out is data; writing through it lands inside."""
    layout = Layout(tmp_path / "layout")
    layout.image([layer(member("out", tarfile.SYMTYPE, target="/../../../tmp"), member("out/x", data=b"in"))])
    tree = squashfs_tree(tool.ok("get", f"oci:{layout.path}")["path"])[0]
    assert tree["out"][4] == "/../../../tmp" and tree["tmp/x"][0] == "-"


def test_devices_in_dev_are_left_out(tool, tmp_path):
    layout = Layout(tmp_path / "layout")
    layout.image([layer(folder("dev"), member("dev/console", tarfile.CHRTYPE), member("dev/sda", tarfile.BLKTYPE))])
    assert sorted(squashfs_tree(tool.ok("get", f"oci:{layout.path}")["path"])[0]) == [".", "dev"]


def test_only_harmless_attributes_reach_the_guest(tool, tmp_path):
    layout = Layout(tmp_path / "layout")
    layout.image([layer(member("f", xattrs={"user.keep": b"1", "trusted.overlay.opaque": b"y",
                                            "user.overlay.redirect": b"/x", "security.selinux": b"s"}))])
    tree = squashfs_tree(tool.ok("get", f"oci:{layout.path}")["path"])[0]
    assert tree["f"][5] == {"user.keep": b"1"}


def test_corrupt_images(tool, tmp_path):
    data = gzip.compress(SMALL, mtime=0)
    layout = Layout(tmp_path / "diff-id")
    layout.image([SMALL], packed=[gzip.compress(LOWER, mtime=0)])
    assert "layer 1 of 1" in tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    layout = Layout(tmp_path / "not-gzip")
    layout.image([SMALL], packed=[b"not a tar" * 100])
    tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    layout = Layout(tmp_path / "cut")
    layout.image([SMALL], packed=[data[:-20]])
    tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    layout = Layout(tmp_path / "blob")
    layout.image([SMALL])
    blob = layout.path / "blobs/sha256" / digest(gzip.compress(SMALL, 1, mtime=0))[7:]
    broken = bytearray(blob.read_bytes())
    broken[len(broken) // 2] ^= 0xff
    blob.write_bytes(broken)
    tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    blob.unlink()
    assert "no such file" in tool.fails("ENOENT", "get", f"oci:{layout.path}")
    layout = Layout(tmp_path / "count")
    layout.image([SMALL], diff_ids=[digest(SMALL)] * 2)
    tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    layout = Layout(tmp_path / "artifact")
    layout.image([SMALL], kind="tar+lzma")
    assert "media type" in tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    (layout.path / "index.json").write_text("{")
    tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    assert tool.leftovers() == [] and tool.ok("ls").lines == []


def test_another_images_contents_do_not_get_its_name(tool, small, tmp_path):
    """A registry that gives a known configuration with other layers must not poison the cache."""
    evil = Layout(tmp_path / "evil")
    name = evil.image([SMALL], config=CONFIG, packed=[gzip.compress(layer(member("evil")), mtime=0)])
    assert name == small.config_digest
    tool.fails("EBADMSG", "get", f"oci:{evil.path}")
    assert "bin/tool" in squashfs_tree(tool.ok("get", f"oci:{small.path}")["path"])[0]


def test_bomb(tool, tmp_path):
    size = (1 << 30) + (64 << 20)
    info = tarfile.TarInfo("zeros")
    info.size = size
    zstd = subprocess.Popen(["zstd", "-q", "-c", "-", "-o", str(tmp_path / "bomb")], stdin=subprocess.PIPE)
    zstd.stdin.write(info.tobuf())
    for _ in range(size >> 20):
        zstd.stdin.write(bytes(1 << 20))
    zstd.stdin.close()
    assert zstd.wait() == 0
    layout = Layout(tmp_path / "layout")
    layout.image([b""], packed=[(tmp_path / "bomb").read_bytes()], kind="tar+zstd")
    assert "decompression bomb" in tool.fails("EBADMSG", "get", f"oci:{layout.path}")
    assert "decompression bomb" not in tool.fails("ENOENT", "get", "other:1")
    assert tool.leftovers() == []


def test_bad_references(tool):
    for ref in ("", "Upper", "a b", "host:port/x", "oci:", "https://x/y", "a@sha256:12"):
        assert "reference" in tool.fails("EINVAL", "get", ref)
    assert "reference" in tool.fails("EINVAL", "rm", "Upper")


# -- the cache --

def test_names(tool, small):
    ref = f"oci:{small.path}:1"
    tool.ok("tag", ref, "mine:1")
    tool.ok("tag", "mine:1", "mine")
    assert [x["ref"] for x in tool.ok("ls").lines] == ["mine:1", "mine:latest", ref]
    path = tool.ok("get", "mine")["path"]
    tool.fails("EINVAL", "tag", "mine", "Bad")
    tool.fails("EINVAL", "tag", "mine", "oci:/x")
    tool.fails("EINVAL", "tag", "mine", "a@sha256:" + "0" * 64)
    tool.fails("ENOENT", "rm", "other")
    tool.ok("rm", "mine:1")
    shutil.rmtree(small.path)
    tool.ok("rm", ref)
    assert os.path.exists(path)
    tool.ok("rm", "mine")
    assert not os.path.exists(path) and tool.ok("ls").lines == []
    tool.fails("ENOENT", "get", "mine")


def test_prune_takes_what_no_name_has(tool, tmp_path):
    root = plain_root(tmp_path / "root")
    old = tool.ok("get", f"rootfs:{root}")
    (root / "new").write_text("x")
    new = tool.ok("get", f"rootfs:{root}")
    assert tool.ok("prune")["ok"] >= 4096
    assert not os.path.exists(old["path"]) and os.path.exists(new["path"])
    assert tool.ok("prune")["ok"] == 0
    # What was imported from is gone: nobody can ask for it under that name.
    tool.ok("tag", f"rootfs:{root}", "kept:1")
    run("tar", "-cf", tmp_path / "a.tar", "-C", root, "etc")
    gone = tool.ok("get", f"tar:{tmp_path}/a.tar")
    shutil.rmtree(root)
    os.unlink(tmp_path / "a.tar")
    assert tool.ok("prune")["ok"] >= 4096
    assert [x["ref"] for x in tool.ok("ls").lines] == ["kept:1"]
    assert not os.path.exists(gone["path"]) and os.path.exists(new["path"])


def test_several_at_once_make_one(tool, small, tmp_path):
    root = plain_root(tmp_path / "root")
    with registry(tmp_path / "registry") as host:
        push(f"oci:{small.path}:1", f"{host}/small:1")
        for ref, step in ((f"{host}/small:1", "fetch"), (f"rootfs:{root}", None)):
            running = [tool.start("get", ref) for _ in range(4)]
            answers = [tool.end(process) for process in running]
            assert [a.code for a in answers] == [0] * 4, [a.lines for a in answers]
            assert len({a["path"] for a in answers}) == 1 and len({a["created"] for a in answers}) == 1
            if step:
                assert sum(step in a.steps for a in answers) == 1
    assert tool.leftovers() == []


def hanging_program(tmp_path, name):
    """A program that says that it runs and then waits for ever, in front of PATH."""
    place = tmp_path / "programs"
    place.mkdir(exist_ok=True)
    mark = tmp_path / f"{name}.pid"
    (place / name).write_text(f"#!/bin/sh\necho $$ >{mark}.part\nmv {mark}.part {mark}\nexec tail -f /dev/null\n")
    (place / name).chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}"}, mark


@pytest.mark.parametrize("program", ["skopeo", "tar2sqfs"])
def test_what_a_kill_leaves(tool, small, tmp_path, program):
    env, mark = hanging_program(tmp_path, program)
    process = tool.start("get", f"oci:{small.path}", env=env)
    pid = int(wait_until(lambda: mark.exists() and mark.read_text(), program).strip())
    parts = [n for n in tool.leftovers() if n.startswith(".part-")]
    assert len(parts) == 1
    # Who lives is spared.
    assert tool.ok("prune")["ok"] == 0 and tool.leftovers() == parts
    process.kill()
    process.communicate()
    wait_until(lambda: not Processes.is_alive(pid), f"the end of {program}")
    assert tool.leftovers() == parts
    # The next get removes it and is not in its way.
    tool.ok("get", f"oci:{small.path}")
    assert tool.leftovers() == []


def test_a_program_that_is_killed(tool, small, tmp_path):
    env, mark = hanging_program(tmp_path, "tar2sqfs")
    process = tool.start("get", f"oci:{small.path}", env=env)
    os.kill(int(wait_until(lambda: mark.exists() and mark.read_text(), "tar2sqfs")), signal.SIGTERM)
    answer = tool.end(process)
    assert answer.code == 1 and "killed by signal 15" in answer["text"]
    assert tool.leftovers() == []


def test_a_damaged_cache(tool, small):
    ref = f"oci:{small.path}"
    first = tool.ok("get", ref)
    os.truncate(first["path"], 1000)
    assert "truncated" in tool.fails("EBADMSG", "get", first["digest"])
    assert tool.ok("get", ref)["size"] == first["size"] == os.path.getsize(first["path"])
    os.unlink(first["path"])
    assert tool.ok("get", ref)["digest"] == first["digest"]
    (pathlib.Path(tool.cache) / "refs.json").write_text("{")
    assert "refs.json is damaged" in tool.fails("EBADMSG", "get", "mine:1")


def test_missing_programs(tool, small, tmp_path):
    for name, package in (("skopeo", "skopeo"), ("tar2sqfs", "squashfs-tools-ng")):
        place = tmp_path / f"without-{name}"
        place.mkdir()
        for other in {"skopeo", "tar2sqfs"} - {name}:
            (place / other).symlink_to(shutil.which(other))
        text = tool.fails("ENOPKG", "get", f"oci:{small.path}", env={"PATH": str(place)})
        assert f"apt-get install {package}" in text
    assert tool.leftovers() == []


@root_only
def test_a_full_disk(tool, small, tmp_path):
    place = tmp_path / "full"
    place.mkdir()
    root = plain_root(tmp_path / "root")
    (root / "big").write_bytes(os.urandom(4 << 20))
    big = Layout(tmp_path / "big")
    big.image([layer(member("big", data=os.urandom(4 << 20)))])
    run("mount", "-t", "tmpfs", "-o", "size=2m", "none", place)
    try:
        full = Tool(place / "cache", env=tool.env)
        full.fails("ENOSPC", "get", f"rootfs:{root}")
        full.fails("ENOSPC", "get", f"oci:{big.path}")
        assert full.leftovers() == [] and full.ok("ls").lines == []
        assert full.ok("get", f"oci:{small.path}")
    finally:
        run("umount", place)


def test_an_unusable_cache(tool, small, tmp_path):
    (tmp_path / "file").write_text("x")
    other = Tool(tmp_path / "file/cache", env=tool.env)
    assert "RESOLUTO_CACHE_DIR" in other.fails("ENOTDIR", "get", f"oci:{small.path}")


# -- who and where --

@root_only
def test_an_ordinary_user_needs_no_root(open_place):
    """Owners, modes and attributes that this user could never set on a disk."""
    tool = as_nobody(open_place)
    capability = b"\1\0\0\2" + bytes(16)
    layout = Layout(open_place / "layout")
    layout.image([LOWER, layer(member("su", mode=0o4755), member("cap", xattrs={"security.capability": capability}),
                               member("far", uid=4000000000, gid=3))])
    tree = squashfs_tree(tool.ok("get", f"oci:{layout.path}")["path"])[0]
    assert tree["su"][1:4] == (0o4755, 0, 0)
    assert tree["far"][2:4] == (4000000000, 3)
    assert tree["cap"][5] == {"security.capability": capability}
    # A directory of the user's own files becomes root's.
    root = open_place / "home/root"
    root.mkdir()
    (root / "f").write_text("x")
    for path in (root, root / "f"):
        shutil.chown(path, "nobody", "nogroup")
    tree = squashfs_tree(tool.ok("get", f"rootfs:{root}")["path"])[0]
    assert tree["f"][2:4] == (0, 0) and tree["."][2:4] == (0, 0)


@root_only
def test_the_systems_cache_serves_ordinary_users(open_place):
    layout = Layout(open_place / "layout")
    layout.image([SMALL])
    system = Tool(open_place / "system")
    system.ok("tag", f"oci:{layout.path}", "base:1")
    made = system.ok("get", "base:1")
    user = as_nobody(open_place)
    # Its place is fixed, so give this test a /var/cache of its own.
    script = ('mount -t tmpfs none /var/cache && mkdir /var/cache/resoluto-sandbox && '
              f'mount --bind {system.cache} /var/cache/resoluto-sandbox && exec "$@"')
    user.cache = "-"
    user.wrap = ["unshare", "-m", "sh", "-ec", script, "sh", *user.wrap]
    got = user.ok("get-never", "base:1")
    assert got["digest"] == made["digest"] and got["path"].startswith("/var/cache/resoluto-sandbox/images/")
    assert "base:1" in [x["ref"] for x in user.ok("ls").lines]
    assert "only root" in user.fails("EPERM", "rm", "base:1")
    user.ok("tag", "base:1", "mine:1")
    assert user.ok("get", "mine:1")["path"] == got["path"]
    assert (open_place / "home/.cache/resoluto-sandbox/refs.json").exists()


@root_only
def test_without_a_signature_policy(tool, small):
    """Not every system has /etc/containers/policy.json, and skopeo insists on one."""
    tool.wrap = ["unshare", "-m", "sh", "-ec", 'mount -t tmpfs none /etc/containers && exec "$@"', "sh"]
    assert tool.ok("get", f"oci:{small.path}")["digest"] == small.config_digest


@root_only
def test_a_signature_policy_is_honoured(tool, small):
    policy = pathlib.Path(tool.env["HOME"]) / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default":[{"type":"reject"}]}')
    assert "rejected by policy" in tool.fails("EACCES", "get", f"oci:{small.path}")


def test_the_tool_is_there():
    assert os.access(tool_path(), os.X_OK)
