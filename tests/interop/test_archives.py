# SPDX-License-Identifier: Apache-2.0
"""Archives of ours against Python's tarfile, GNU tar and the Python original, both ways; and hostile ones."""
import gzip
import hashlib
import io
import json
import os
import resource
import stat
import subprocess
import sys
import tarfile

import pytest

from conftest import build_dir, needed

HOLE = 1 << 20


def tool(*arguments, **options):
    program = build_dir() / "tests/interop/archive_tool"
    return subprocess.run([program, *arguments], capture_output=True, timeout=300, **options)


def within_memory(peak_kib):
    """Promised whatever the size of the tree; but a sanitizer takes memory of its own."""
    return b"__asan_init" in (build_dir() / "tests/interop/archive_tool").read_bytes() or peak_kib < 32 * 1024


def pack(directory, *globs):
    done = tool("pack", directory, *globs)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr)


def unpack(archive, directory, *globs, **limits):
    env = {**os.environ, **{f"LIMIT_{name.upper()}": str(value) for name, value in limits.items()}}
    return tool("unpack", directory, *globs, input=archive, env=env, umask=0)


def unpacked(archive, directory, *globs):
    done = unpack(archive, directory, *globs)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr)


def write(path, content=b"", mode=0o644, mtime_ns=1_700_000_000_000_000_000):
    path = os.path.join(os.fsencode(path[0]), path[1]) if isinstance(path, tuple) else os.fsencode(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def snapshot(top):
    """Everything about a tree that an archive must carry, by path (bytes)."""
    seen, first = {}, {}
    for directory, names, files in os.walk(os.fsencode(top)):
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            key = os.path.relpath(path, os.fsencode(top))
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                seen[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                seen[key] = ("directory", stat.S_IMODE(info.st_mode))
            else:
                content = hashlib.sha256()
                with open(path, "rb") as file:
                    while block := file.read(1 << 20):
                        content.update(block)
                same = first.setdefault(info.st_ino, key) if info.st_nlink > 1 else key
                seen[key] = ("file", stat.S_IMODE(info.st_mode), info.st_mtime_ns, info.st_size,
                             content.hexdigest(), same)
    return seen


def whole_seconds(seen):
    """For formats without fractions of a second."""
    return {path: value[:2] + (value[2] // 10**9,) + value[3:] if value[0] == "file" else value
            for path, value in seen.items()}


def without_groups(seen):
    return {path: value[:5] if value[0] == "file" else value for path, value in seen.items()}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    return tmp_path


@pytest.fixture
def plain_tree(place):
    """What even the oldest formats can carry."""
    top = place / "from"
    write(top / "a", b"alpha")
    write(top / "dir/run.sh", b"#!/bin/sh\n", 0o755)
    write(top / "dir/empty")
    write(top / "blocks", os.urandom(1536) * 700)
    write(top / "exact", b"x" * 512)
    (top / "void").mkdir(mode=0o700)
    (top / "private").mkdir(mode=0o710)
    os.symlink("../a", top / "dir/link")
    os.link(top / "a", top / "z-again")
    return top


@pytest.fixture
def full_tree(plain_tree):
    top = plain_tree
    write(top / "fraction", b"", mtime_ns=1_600_000_000_123_456_789)
    write(top / "old", b"", mtime_ns=-1_500_000_000)
    write((top, b"\xff\xfe bytes"), b"no text")
    write(top / "caf\u00e9", b"composed")
    write(top / "cafe\u0301", b"decomposed")
    write(top / "new\nline", b"1")
    write(top / ("n" * 255), b"2")
    write(top / ("d" * 120) / ("e" * 120) / ("f" * 120), b"3")
    os.symlink("dir/" * 1 + "t" * 200, top / "long-target")
    os.symlink(os.path.join(b"\xfe", b"x"), os.path.join(os.fsencode(top), b"\xfd link"))
    write(top / "tail hole", b"data" * 20000)
    os.truncate(top / "tail hole", 3 * HOLE)
    with open(top / "holes", "wb") as file:
        for i in range(5):
            file.seek(i * 2 * HOLE)
            file.write(b"island %d" % i)
    with open(top / "all hole", "wb") as file:
        file.truncate(5 * HOLE)
    os.utime(top / "tail hole", ns=(0, 0))
    for name in ("holes", "all hole"):
        os.utime(top / name, ns=(0, 1_650_000_000 * 10**9))
    return top


def is_sparse(path):
    info = os.stat(path)
    return info.st_blocks * 512 < info.st_size


def test_ours_to_ours(place, full_tree):
    archive, report = pack(full_tree)
    back = unpacked(archive, place / "to")
    assert snapshot(place / "to") == snapshot(full_tree)
    assert report["entries"] == back["members"] and report["bytes"] == back["bytes"]
    for name in "holes", "tail hole", "all hole":
        assert is_sparse(place / "to" / name)
    again, _ = pack(full_tree)
    assert again == archive


# Python 3.11.4 and later ask how far to trust an archive.
FULLY_TRUSTED = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}


def test_ours_to_python(place, full_tree):
    archive, _ = pack(full_tree)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            assert member.uid == 0 and member.gid == 0 and not member.uname
            member.uid, member.gid = os.getuid(), os.getgid()
            if not member.isdir():
                tar.extract(member, place / "to", **FULLY_TRUSTED)
            else:
                os.makedirs(place / "to" / member.name, exist_ok=True)
                os.chmod(place / "to" / member.name, member.mode)
    def near(seen):  # Python keeps times as floats
        return {path: value[:2] + (round(value[2] / 10**4),) + value[3:] if value[0] == "file" else value
                for path, value in seen.items()}
    assert near(snapshot(place / "to")) == near(snapshot(full_tree))


def test_ours_to_gnu_tar(place, full_tree):
    archive, _ = pack(full_tree)
    done = subprocess.run(["tar", "-xzpf", "-", "-C", place / "to", "--no-same-owner"], input=archive,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    # It does not know hdrcharset, says so, and takes the bytes as they are; and doubts times before 1970.
    assert all(b"hdrcharset" in line or b"old: implausibly old" in line for line in done.stderr.splitlines())
    assert snapshot(place / "to") == snapshot(full_tree)


def test_gzip_reads_it(place, full_tree):
    archive, _ = pack(full_tree)
    assert subprocess.run(["gzip", "-t"], input=archive).returncode == 0


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_python_to_ours(place, full_tree, form):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz",
                      format=tarfile.GNU_FORMAT if form == "gnu" else tarfile.PAX_FORMAT) as tar:
        for name in sorted(os.listdir(full_tree)):
            if form == "gnu" and name == "old":
                os.utime(full_tree / name, ns=(0, -2 * 10**9))
            tar.add(full_tree / name, arcname="./" + name)
    unpacked(file.getvalue(), place / "to")
    def near(seen):
        return {path: value[:2] + (round(value[2] / 10**(9 if form == "gnu" else 4)),) + value[3:]
                if value[0] == "file" else value for path, value in seen.items()}
    want = snapshot(full_tree)
    assert near(snapshot(place / "to")) == near(want)


def test_python_ustar_to_ours(place, plain_tree):
    write(plain_tree / ("p" * 90) / ("q" * 90), b"prefix")
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(plain_tree, arcname=".")
    unpacked(file.getvalue(), place / "to")
    assert snapshot(place / "to") == snapshot(plain_tree)


@pytest.mark.parametrize("form", ["v7", "oldgnu", "gnu", "ustar", "posix"])
def test_gnu_tar_plain_to_ours(place, plain_tree, form):
    archive = subprocess.run(["tar", "-czf", "-", f"--format={form}", "-C", plain_tree, "."], check=True,
                             capture_output=True).stdout
    unpacked(archive, place / "to")
    assert whole_seconds(snapshot(place / "to")) == whole_seconds(snapshot(plain_tree))


@pytest.mark.parametrize("options", [["--format=gnu", "-S"], ["--format=oldgnu", "-S"], ["--format=posix"],
                                     ["--format=posix", "-S", "--sparse-version=0.0"],
                                     ["--format=posix", "-S", "--sparse-version=0.1"],
                                     ["--format=posix", "-S", "--sparse-version=1.0"]], ids=" ".join)
def test_gnu_tar_full_to_ours(place, full_tree, options):
    archive = subprocess.run(["tar", "-czf", "-", *options, "-C", full_tree, "."], check=True,
                             capture_output=True).stdout
    unpacked(archive, place / "to")
    got, want = snapshot(place / "to"), snapshot(full_tree)
    assert whole_seconds(got) == whole_seconds(want)
    if "--format=posix" in options:
        assert got == want
    if "-S" in options:
        assert is_sparse(place / "to/holes") and is_sparse(place / "to/all hole")


def test_many_extents_of_gnu_tar(place):
    """More than fit into one old sparse header and its first extensions."""
    with open(place / "from/comb", "wb") as file:
        for i in range(300):
            file.seek(i * 65536)
            file.write(b"tooth %d" % i)
    for form in "gnu", "posix":
        archive = subprocess.run(["tar", "-czSf", "-", f"--format={form}", "-C", place / "from", "."], check=True,
                                 capture_output=True).stdout
        unpacked(archive, place / "to")
        assert (place / "to/comb").read_bytes() == (place / "from/comb").read_bytes()
    archive, _ = pack(place / "from")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.extractfile("comb").read() == (place / "from/comb").read_bytes()


def original(code, *arguments):
    older = os.path.join(os.path.dirname(__file__), "older_python")
    env = {**os.environ, "PYTHONPATH": f"{older}:{needed('RESOLUTO_TEST_ORIGINAL')}"}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=env, check=True, timeout=300)


def test_original_to_ours_and_back(place, full_tree):
    original("import sys, pathlib\nfrom resoluto.sandbox.staging import _archive\n"
             "pathlib.Path(sys.argv[2]).write_bytes(_archive(pathlib.Path(sys.argv[1]), None))",
             full_tree, place / "archive")
    unpacked((place / "archive").read_bytes(), place / "to")
    assert without_groups(whole_seconds(snapshot(place / "to"))) == without_groups(whole_seconds(snapshot(full_tree)))

    archive, _ = pack(full_tree)
    (place / "archive").write_bytes(archive)
    (place / "back").mkdir()
    original("import sys, pathlib\nfrom resoluto.sandbox.staging import _extract\n"
             "_extract(pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2]))",
             place / "archive", place / "back")
    got, want = snapshot(place / "back"), snapshot(full_tree)
    assert {path: value[0] for path, value in got.items()} == {path: value[0] for path, value in want.items()}
    assert {path: value[4] for path, value in got.items() if value[0] == "file"} == \
           {path: value[4] for path, value in want.items() if value[0] == "file"}


def test_stage_leaves_out_what_the_original_leaves_out(place):
    for name in "src/a.py", "src/__pycache__/a.pyc", ".venv/bin/python", "node_modules/x/y", "docs/build/z", "dist":
        write(place / "from" / name, b"1")
    os.symlink("/etc/passwd", place / "from/absolute")
    ours = tool("stage", place / "from")
    original("import sys, pathlib\nfrom resoluto.sandbox.staging import _archive, _DEFAULT_EXCLUDES\n"
             "pathlib.Path(sys.argv[2]).write_bytes(_archive(pathlib.Path(sys.argv[1]), None, _DEFAULT_EXCLUDES))",
             place / "from", place / "archive")
    def files(archive):
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            return {os.path.normpath(member.name) for member in tar if not member.isdir()}
    assert files(ours.stdout) == files((place / "archive").read_bytes()) == {"src/a.py"}
    report = json.loads(ours.stderr)
    assert report["excluded"] == 5 and report["links_out"] == 1


def test_fifty_thousand_files(place):
    for i in range(50_000):
        if i % 500 == 0:
            (place / f"from/d{i // 500}").mkdir()
        os.close(os.open(place / f"from/d{i // 500}/f{i}", os.O_CREAT | os.O_WRONLY))
    archive, report = pack(place / "from")
    assert report["entries"] == 50_100 and within_memory(report["peak_kib"])
    back = unpacked(archive, place / "to")
    assert back["members"] == 50_100 and within_memory(back["peak_kib"])


def test_more_names_in_one_directory_than_are_kept_in_mind_at_once(place):
    for i in range(35_000):
        os.mknod(place / f"from/{i * 7919 % 35_000:0250}")
    archive, report = pack(place / "from")
    assert report["entries"] == 35_000 and within_memory(report["peak_kib"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert [int(member.name) for member in tar] == list(range(35_000))


def test_ten_gigabytes_of_nothing(place):
    with open(place / "from/sparse", "wb") as file:
        file.truncate(10 << 30)
        file.seek(7 << 30)
        file.write(b"something")
    archive, report = pack(place / "from")
    assert report["bytes"] < HOLE and len(archive) < HOLE
    unpacked(archive, place / "to")
    assert os.stat(place / "to/sparse").st_size == 10 << 30 and os.stat(place / "to/sparse").st_blocks < 4096
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getmember("sparse").size == 10 << 30


# Hostile archives

class Made:
    """An archive by Python's tarfile, told to write what it would rather not."""

    def __init__(self, form=tarfile.PAX_FORMAT):
        self.file = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.file, mode="w", format=form)

    def add(self, name, content=b"", kind=tarfile.REGTYPE, target="", mode=0o644, **pax):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.mode, info.pax_headers = kind, target, mode, pax
        info.size = len(content) if kind == tarfile.REGTYPE else 0
        self.tar.addfile(info, io.BytesIO(content))
        return self

    def packed(self):
        self.tar.close()
        return gzip.compress(self.file.getvalue(), 1)


def names(top):
    return sorted(os.fsdecode(path) for path in snapshot(top))


LINK, HARD, DIRECTORY = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
HOSTILE = {
    "absolute": (lambda a: a.add("/escaped"), "/escaped: the name is absolute"),
    "climbing": (lambda a: a.add("../escaped"), "the name climbs"),
    "climbing inside": (lambda a: a.add("a/b/../../../escaped"), "the name climbs"),
    "pax path": (lambda a: a.add("plain", path="../escaped"), "the name climbs"),
    "absolute link": (lambda a: a.add("l", kind=LINK, target="/etc"), "the link leads out"),
    "climbing link": (lambda a: a.add("d/l", kind=LINK, target="../../x"), "the link leads out"),
    "link then through": (lambda a: a.add("l", kind=LINK, target=".").add("l/x"), "a symbolic link is on the way"),
    "pax link": (lambda a: a.add("l", kind=LINK, target="x", linkpath="../escaped"), "the link leads out"),
    "links over links": (lambda a: a.add("dot", kind=LINK, target=".").add("l", kind=LINK, target="dot/../escaped"),
                         "the link may lead out"),
    "hard link out": (lambda a: a.add("l", kind=HARD, target="../victim"), "the name climbs"),
    "hard link absolute": (lambda a: a.add("l", kind=HARD, target="/etc/passwd"), "the name is absolute"),
    "hard link to the host's": (lambda a: a.add("l", kind=HARD, target="present"), "no file of this archive"),
    "hard link to a link": (lambda a: a.add("d/l", kind=LINK, target="../x").add("m", kind=HARD, target="d/l"),
                            "no file of this archive"),
    "character device": (lambda a: a.add("null", kind=tarfile.CHRTYPE), "it is a device"),
    "block device": (lambda a: a.add("disk", kind=tarfile.BLKTYPE), "it is a device"),
    "fifo": (lambda a: a.add("pipe", kind=tarfile.FIFOTYPE), "it is a fifo"),
    "file over directory": (lambda a: a.add("d", kind=DIRECTORY, mode=0o755).add("d", b"x"), "d: put the file"),
    "directory over file": (lambda a: a.add("f", b"x").add("f", kind=DIRECTORY, mode=0o755), "no directory"),
    "through a file": (lambda a: a.add("f", b"x").add("f/g"), "no directory is in its way"),
    "long component": (lambda a: a.add("n" * 300), "ENAMETOOLONG"),
    "pax size": (lambda a: a.add("f", b"x", size="9999"), None),
    "pax sparse": (lambda a: a.add("f", b"abc", **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                                   "GNU.sparse.realsize": "3"}), "the map of a sparse file"),
    "nul in pax": (lambda a: a.add("f", path="f\0g"), "PAX record"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("globs", [[], ["**"]], ids=["all", "globs"])
def test_hostile(place, case, globs):
    make, reason = HOSTILE[case]
    write(place / "to/present", b"mine")
    write(place / "victim", b"untouched")
    archive = Made()
    make(archive)
    done = unpack(archive.packed(), place / "to", *globs)
    assert done.returncode == 1, names(place / "to")
    assert reason is None or reason in done.stderr.decode(), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(os.listdir(place)) == ["from", "to", "victim"]
    assert (place / "victim").read_bytes() == b"untouched" and os.stat(place / "victim").st_nlink == 1
    assert (place / "to/present").read_bytes() == b"mine" and os.stat(place / "to/present").st_nlink == 1
    assert not os.path.lexists("/escaped")
    for path in (place / "to").rglob("*"):  # whatever came before the bad member leads nowhere else
        assert path.resolve().is_relative_to(place / "to")


def test_planted_links_are_replaced_not_followed(place):
    write(place / "victim", b"untouched")
    os.symlink("../victim", place / "to/soft")
    os.link(place / "victim", place / "to/hard")
    unpacked(Made().add("soft", b"new").add("hard", b"new").packed(), place / "to")
    assert (place / "victim").read_bytes() == b"untouched"
    assert (place / "to/soft").read_bytes() == (place / "to/hard").read_bytes() == b"new"
    assert not (place / "to/soft").is_symlink()


def test_special_bits_are_dropped_and_duplicates_replaced(place):
    archive = Made().add("f", b"one", mode=0o7777).add("f", b"two", mode=0o6755) \
                    .add("d", kind=DIRECTORY, mode=0o7777)
    unpacked(archive.packed(), place / "to")
    assert (place / "to/f").read_bytes() == b"two"
    assert stat.S_IMODE(os.stat(place / "to/f").st_mode) == 0o755
    assert stat.S_IMODE(os.stat(place / "to/d").st_mode) == 0o777


def test_a_closed_tree_is_restored(place):
    archive = Made().add("d", kind=DIRECTORY, mode=0).add("d/e", kind=DIRECTORY, mode=0) \
                    .add("d/e/f", b"deep", mode=0)
    unpacked(archive.packed(), place / "to")
    assert stat.S_IMODE(os.stat(place / "to/d").st_mode) == 0
    os.chmod(place / "to/d", 0o700)
    assert stat.S_IMODE(os.stat(place / "to/d/e").st_mode) == 0
    os.chmod(place / "to/d/e", 0o700)
    assert stat.S_IMODE(os.stat(place / "to/d/e/f").st_mode) == 0


def test_a_hundred_thousand_members(place):
    header = tarfile.TarInfo("x" * 10).tobuf(tarfile.USTAR_FORMAT)
    base = int(header[148:154], 8) - 10 * ord("x")
    made = bytearray()
    for i in range(100_000):  # by hand, since tarfile takes its time
        name = b"d%03d/%05d" % (i % 100, i)
        made += name + header[10:148] + b"%06o" % (base + sum(name)) + header[154:]
    packed = gzip.compress(made + bytes(1024), 1)
    done = unpack(packed, place / "to", members=50_000)
    assert done.returncode == 1 and b"more than 50000 members" in done.stderr
    done = unpack(packed, place / "to", "nothing-matches")
    assert done.returncode == 0
    report = json.loads(done.stderr)
    assert report["left_out"] == 100_000 and within_memory(report["peak_kib"])


def test_bombs(place):
    zeros = Made().add("zeros", bytes(100 << 20)).packed()
    done = unpack(zeros, place / "to", ratio=200)
    assert done.returncode == 1 and b"swells" in done.stderr and b"EFBIG" in done.stderr
    done = unpack(zeros, place / "to", bytes=1 << 20)
    assert done.returncode == 1 and b"takes more than 1048576 bytes" in done.stderr
    assert names(place / "to") == []
    holes = Made()
    for i in range(3):
        holes.add(f"s{i}", b"0\n".ljust(512, b"\0"), **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                                        "GNU.sparse.realsize": str(1 << 42)})
    done = unpack(holes.packed(), place / "to")
    assert done.returncode == 1 and b"holes included" in done.stderr
    # Headers alone, each a megabyte of nothing.
    headers = Made()
    for i in range(200):
        headers.add(f"f{i}", comment="x" * 1_000_000)
    done = unpack(headers.packed(), place / "to", ratio=100)
    assert done.returncode == 1 and b"swells" in done.stderr


def test_a_map_without_end_takes_no_memory(place):
    count = 5_000_000
    lines = b"%d\n" % count + b"".join(b"%d\n0\n" % i for i in range(count))
    packed = Made().add("s", lines, **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                       "GNU.sparse.realsize": "9999999"}).packed()
    # All of it would be 80 MB.
    limit = 1 << 44 if within_memory(1 << 40) else 32 << 20
    done = tool("unpack", place / "to", input=packed,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    assert done.returncode == 1 and b"at most 131072 pieces" in done.stderr, done.stderr


def test_members_in_a_row_and_cut_ones(place):
    archive = Made().add("f", b"content" * 1000)
    archive.tar.close()
    plain = archive.file.getvalue()
    unpacked(gzip.compress(plain[:700]) + gzip.compress(plain[700:]), place / "to")
    assert (place / "to/f").read_bytes() == b"content" * 1000
    whole = gzip.compress(plain)
    for cut in (0, 5, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        done = unpack(whole[:cut], place / "to")
        assert done.returncode == 1 and b"EBADMSG" in done.stderr
    assert (place / "to/f").read_bytes() == b"content" * 1000
    assert names(place / "to") == ["f"]


def test_globs_on_the_way_in(place):
    archive = Made().add("out/a.txt", b"1").add("out/.git/config", b"evil").add(".envrc", b"evil") \
                    .add("src/main.c", b"evil").add("out/deep/b.txt", b"2")
    report = unpacked(archive.packed(), place / "to", "out/**")
    assert names(place / "to") == ["out", "out/a.txt", "out/deep", "out/deep/b.txt"]
    assert report["left_out"] == 3
