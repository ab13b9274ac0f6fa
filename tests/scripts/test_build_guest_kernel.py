# SPDX-License-Identifier: Apache-2.0
"""scripts/build-guest-kernel.sh: what it keeps, when it builds again, and how it fails.

The source is a tree of a few files that answers to the same targets of make as the kernel's; the real one is built by check.sh."""
import hashlib
import os
import pty
import re
import select
import signal
import subprocess
import tarfile

import pytest

from conftest import ROOT, Processes, wait_until
from kernel_source import PATCH, make_checkout, make_source, package
from programs import program, programs_without


class Tree:
    """A checkout with the script, our real configuration, a patch for the small source, and that source."""

    def __init__(self, folder):
        self.folder = folder
        self.out = folder / "cache/built"
        self.source = folder / "source"
        self.flag = folder / "compiling"
        self.guest_kernel = folder / "checkout/guest-kernel"
        make_checkout(folder / "checkout")
        make_source(self.source, self.flag)

    def command(self, *arguments, source=True):
        script = self.folder / "checkout/scripts/build-guest-kernel.sh"
        return ["bash", str(script), str(self.out), *(["--source", str(self.source)] if source else []),
                *map(str, arguments)]

    def build(self, *arguments, source=True, **env):
        return subprocess.run(self.command(*arguments, source=source), capture_output=True, text=True, timeout=120,
                              env={**os.environ, **env}, stdin=subprocess.DEVNULL)

    def start(self, *arguments, **options):
        return subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL, start_new_session=True, **options)

    def mark(self, name):
        (self.source / name).touch()

    def snapshot(self):
        return {p.relative_to(self.out).as_posix(): p.read_bytes() for p in self.out.rglob("*") if p.is_file()}

    def leftovers(self):
        kept = ("built", "built.log", ".build-guest-kernel.lock")
        return sorted(p.name for p in self.out.parent.iterdir() if p.name not in kept)

    def hash(self):
        return (self.out / "VERSION").read_text().split()[1]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def built(tree):
    done = tree.build()
    assert done.returncode == 0, done.stdout + done.stderr
    return tree


# --- what it makes, and when again ---

def test_the_result_is_complete_and_says_what_it_was_made_of(built):
    out = built.out
    assert subprocess.run([out / "vmlinux"]).returncode == 2, "the patch counts"
    assert re.fullmatch(r"6\.1\.7-resoluto [0-9a-f]{16}\n", (out / "VERSION").read_text())
    assert built.hash() == hashlib.sha256((out / "INPUTS").read_bytes()).hexdigest()[:16]
    assert (out / "MACHINE").read_text() == f"{os.uname().machine}-built\n"
    assert (out / "modules/list").read_bytes() == b""
    assert (out / "COPYING").read_text() == "the licence of the kernel\n"
    assert "CONFIG_SQUASHFS=y" in (out / "config").read_text()
    assert "CC      part1.o" in (out / "build.log").read_text()
    inputs = (out / "INPUTS").read_text()
    for word in ("source directory ", "compiler gcc", "guest-kernel/common.config ", "0001-answer.patch "):
        assert word in inputs, word
    assert subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out).returncode == 0
    assert built.leftovers() == []


def test_it_is_built_once(built):
    before = built.snapshot()
    done = built.build()
    assert done.returncode == 0 and "is there" in done.stdout and "compiling" not in done.stdout
    assert built.snapshot() == before
    assert built.build("--check").returncode == 0
    assert "compiling" in built.build("--force").stdout


@pytest.mark.parametrize("change", ["configuration", "patch", "source", "compiler"])
def test_whatever_decides_the_result_makes_it_build_again(built, change, tmp_path):
    before, env = built.hash(), {}
    if change == "configuration":
        with (built.guest_kernel / f"{os.uname().machine}.config").open("a") as file:
            file.write("CONFIG_NOTHING_ELSE=y\t# to see\n")
    elif change == "patch":
        (built.guest_kernel / "patches/0001-answer.patch").write_text(PATCH.replace("return 2", "return 3"))
    elif change == "source":
        (built.source / "more.c").write_text("/* more */\n")
    else:
        text = '#!/bin/sh\n[ "$1" != --version ] || { echo "gcc 99"; exit 0; }\nexec /usr/bin/gcc "$@"\n'
        env = {"PATH": program(tmp_path / "bin", "gcc", text)}
    check = built.build("--check", **env)
    assert check.returncode == 1 and "was made of something else" in check.stderr
    # An older source or compiler of the distribution does no harm where the newer one cannot be used.
    assert built.build("--serves", **env).returncode == (0 if change in ("source", "compiler") else 1)
    done = built.build(**env)
    assert done.returncode == 0 and "compiling" in done.stdout, done.stderr
    assert built.hash() != before
    if change == "patch":
        assert subprocess.run([built.out / "vmlinux"]).returncode == 3


@pytest.mark.parametrize("file", ["vmlinux", "config", "MACHINE", "SHA256SUMS"])
def test_a_kernel_that_is_not_what_was_put_there_is_built_again(built, file):
    before = built.snapshot()
    with (built.out / file).open("ab") as damaged:
        damaged.write(b"!")
    check = built.build("--check")
    assert check.returncode == 1 and "is not what was put there" in check.stderr
    assert built.build("--serves").returncode == 1
    assert "compiling" in built.build().stdout
    assert built.snapshot()[file] == before[file]


def test_a_missing_sum_is_no_licence_to_change_the_file(built):
    sums = (built.out / "SHA256SUMS").read_text().splitlines(keepends=True)
    (built.out / "SHA256SUMS").write_text("".join(line for line in sums if not line.endswith("  vmlinux\n")))
    assert built.build("--check").returncode == 1


def test_the_initramfs_beside_it_is_left_alone(built):
    (built.out / "initrd.img").write_bytes(b"of the runner")
    assert built.build("--force").returncode == 0
    assert (built.out / "initrd.img").read_bytes() == b"of the runner"
    assert built.build("--check").returncode == 0


def test_the_callers_variables_do_not_count(tree):
    done = tree.build(MAKEFLAGS="-n", ARCH="sparc", CROSS_COMPILE="none-", KCONFIG_ALLCONFIG="/nowhere", KCFLAGS="-bad")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_kernel_without_its_source_is_still_the_one_that_was_built(built, tmp_path):
    """Offline, or without an index: what is recorded counts."""
    path = program(tmp_path / "bin", "apt-cache", "#!/bin/sh\nexit 0\n")
    done = built.build(source=False, PATH=path)
    assert done.returncode == 0 and "is there" in done.stdout, done.stderr
    (built.out / "vmlinux").unlink()
    done = built.build(source=False, PATH=path)
    assert done.returncode == 1 and "the kernel's source was not found" in done.stderr


def test_a_kernel_without_its_compiler_is_still_the_one_that_was_built(built, tmp_path):
    done = built.build(PATH=programs_without(tmp_path / "bin", "gcc", "ld"))
    assert done.returncode == 0 and "is there" in done.stdout, done.stderr


# --- where the source comes from ---

def test_the_distributions_package_is_fetched_without_root(tree, tmp_path):
    done = tree.build(source=False, PATH=package(tree.source, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "source linux-source-6.1 6.1.7-1 0123" in (tree.out / "INPUTS").read_text()
    assert "downloading the package linux-source-6.1" in done.stdout and tree.leftovers() == []


def test_a_tarball_will_do(tree, tmp_path):
    with tarfile.open(tmp_path / "linux-6.1.7.tar.gz", "w:gz") as archive:
        archive.add(tree.source, "linux-6.1.7")
    tree.source = tmp_path / "linux-6.1.7.tar.gz"
    done = tree.build()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "source linux-6.1.7.tar.gz " in (tree.out / "INPUTS").read_text()


@pytest.mark.parametrize("suffix, mode", [("gz", "w:gz"), ("xz", "w:xz")])
def test_a_tarball_that_is_cut_short_is_told_where_it_is_unpacked(tree, tmp_path, suffix, mode):
    (tree.source / "much").write_bytes(os.urandom(200_000))
    tarball = tmp_path / f"linux-6.1.7.tar.{suffix}"
    with tarfile.open(tarball, mode) as archive:
        archive.add(tree.source, "linux-6.1.7")
    os.truncate(tarball, tarball.stat().st_size // 2)
    tree.source = tarball
    done = tree.build()
    assert done.returncode == 1 and "unpacking the kernel's source failed" in done.stderr, done.stderr
    assert "Unexpected end of input" in done.stderr or "unexpected end of file" in done.stderr
    assert not tree.out.exists() and tree.leftovers() == []


def test_a_download_that_fails_is_told(tree, tmp_path):
    path = package(tree.source, tmp_path)
    program(tmp_path / "bin", "apt-get", "#!/bin/sh\necho 'E: Failed to fetch' >&2\nexit 100\n")
    done = tree.build(source=False, PATH=path)
    assert done.returncode == 1 and "E: Failed to fetch" in done.stderr
    assert "downloading the package linux-source-6.1 failed" in done.stderr and tree.leftovers() == []


def test_without_a_source_package_it_says_what_to_do(tree, tmp_path):
    done = tree.build(source=False, PATH=program(tmp_path / "bin", "apt-cache", "#!/bin/sh\nexit 100\n"))
    assert done.returncode == 1
    assert "apt knows no package linux-source" in done.stderr and "apt-get update" in done.stderr
    assert "--source" in done.stderr


def test_what_is_no_kernel_source_is_told(tree):
    (tree.source / "Makefile").write_text("all:\n")
    done = tree.build()
    assert done.returncode == 1 and "is not the source of a kernel" in done.stderr


# --- bad input: nothing changes, and the reason is said ---

def fails(tree, before, *words, **env):
    done = tree.build(**env)
    assert done.returncode == 1, done.stdout
    for word in words:
        assert word in done.stderr, f"{word!r} is not in {done.stderr}"
    assert tree.snapshot() == before and tree.leftovers() == []
    return done


@pytest.mark.parametrize("names, packages", [(["gcc"], ["gcc"]), (["flex", "bison"], ["bison", "flex"]), (["ld"], ["binutils"])])
def test_missing_tools_are_named_all_at_once(built, tmp_path, names, packages):
    with (built.source / "kernel.c").open("a") as file:
        file.write("\n")
    fails(built, built.snapshot(), "cannot be compiled", "apt-get install " + " ".join(packages),
          PATH=programs_without(tmp_path / "bin", *names))


def test_a_patch_that_does_not_apply_is_named_with_the_version_and_what_to_do(built):
    (built.source / "kernel.c").write_text("int main(void)\n{\n\treturn 17;\n}\n")
    fails(built, built.snapshot(), "guest-kernel/patches/0001-answer.patch does not apply to Linux 6.1.7",
          "adapt the patch", "--source")


def test_a_patch_must_fit_exactly(built):
    """With fuzz patch would take it: the lines around are others."""
    (built.source / "kernel.c").write_text("int main(int argc)\n{\n\treturn 1;\n}\n")
    fails(built, built.snapshot(), "does not apply")


def test_each_option_that_did_not_take_is_named_with_its_line(built):
    built.mark("break-config")
    done = fails(built, built.snapshot(), "the configuration is not what guest-kernel/ asks for")
    number = {line.split("=")[0]: n for n, line in
              enumerate((built.guest_kernel / "common.config").read_text().splitlines(), 1)}
    assert f"guest-kernel/common.config:{number['CONFIG_SQUASHFS']}: CONFIG_SQUASHFS=y did not take" in done.stderr
    assert f"guest-kernel/common.config:{number['CONFIG_MODULES']}: CONFIG_MODULES=n did not take" in done.stderr
    assert done.stderr.count("did not take") == 2


@pytest.mark.parametrize("line, words", [
    ("CONFIG_MORE=y", "'# ' and its reason"),
    ("CONFIG_MORE=y # ", "'# ' and its reason"),
    ("# CONFIG_MORE is not set\nCONFIG_MORE is not set", "'# ' and its reason"),
    ("CONFIG_SQUASHFS=n\t# no", "in more than one line of the configuration: CONFIG_SQUASHFS"),
])
def test_a_line_of_the_configuration_needs_a_reason_and_its_option_one_line(built, line, words):
    with (built.guest_kernel / f"{os.uname().machine}.config").open("a") as file:
        file.write(line + "\n")
    fails(built, built.snapshot(), words)


def test_a_source_that_does_not_compile_shows_the_error_and_keeps_the_log(built):
    built.mark("broken")
    fails(built, built.snapshot(), "kernel.c:1: error: it does not compile", "compiling the guest kernel (some minutes) failed",
          f"the whole log is {built.out}.log")
    assert "CC      part500.o" in built.out.with_name("built.log").read_text()
    (built.source / "broken").unlink()
    assert built.build().returncode == 0 and not built.out.with_name("built.log").exists()


def on_small_disk(tree, mib, *arguments):
    """The same, with a file system of this size beneath the result; shows what it left there."""
    script = ('mount -t tmpfs -o size="$1" none "$2" && shift 2 && "$@"; rc=$?; '
              'ls -A "$KEEP"; exit $rc')
    tree.out.parent.mkdir(exist_ok=True)
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", f"{mib}m",
                           str(tree.out.parent), *tree.command(*arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "KEEP": str(tree.out.parent)}, stdin=subprocess.DEVNULL)


def test_too_little_space_is_said_before_anything_is_unpacked(tree):
    with (tree.source / "much").open("wb") as file:
        file.write(os.urandom(30_000_000))
    done = on_small_disk(tree, 16)
    assert done.returncode == 1, done.stdout
    assert re.search(r"no space for the build: it takes some \d+ MiB in .*, and \d+ MiB are free", done.stderr)
    assert "unpacking" not in done.stdout
    assert done.stdout.splitlines()[-1] == ".build-guest-kernel.lock"


def test_a_disk_that_fills_up_in_the_middle_is_told(tree):
    tree.mark("large")
    done = on_small_disk(tree, 32)
    assert done.returncode == 1, done.stdout
    assert "compiling the guest kernel (some minutes): no space is left in" in done.stderr
    assert done.stdout.splitlines()[-1] == ".build-guest-kernel.lock"


def test_a_kernel_that_cannot_be_stripped_is_not_put_in_place(built, tmp_path):
    before = built.snapshot()
    built.mark("changed")
    fails(built, before, "putting the kernel in place failed",
          PATH=program(tmp_path / "bin", "strip", "#!/bin/sh\n[ $# -eq 1 ] || exit 1\necho strip 1\n"))


@pytest.mark.parametrize("how", ["Ctrl-C", "TERM"])
def test_an_interrupted_build_leaves_everything_as_it_was(built, how):
    before = built.snapshot()
    built.mark("slow")
    process = built.start()
    wait_until(built.flag.exists, "the compilation", seconds=60)
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == {"Ctrl-C": 130, "TERM": 143}[how]
    assert built.snapshot() == before and built.leftovers() == []
    left = [p for p in Processes.of_program("make") if str(built.folder).encode() in b" ".join(Processes.argv(p))]
    assert left == []


def test_what_a_killed_build_left_goes_with_the_next_one(built):
    built.mark("slow")
    process = built.start()
    wait_until(built.flag.exists, "the compilation", seconds=60)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert built.leftovers() == [".build-guest-kernel"]
    (built.source / "slow").unlink()
    assert built.build().returncode == 0 and built.leftovers() == []


def test_two_at_once_build_one_after_the_other(tree):
    tree.mark("slow")
    first = tree.start()
    wait_until(tree.flag.exists, "the compilation", seconds=60)
    second = tree.start()
    assert "another build is going on" in second.stdout.readline()
    os.killpg(first.pid, signal.SIGTERM)
    first.communicate(timeout=30)
    tree.flag.unlink()
    wait_until(tree.flag.exists, "the compilation of the second", seconds=60)
    os.killpg(second.pid, signal.SIGTERM)
    second.communicate(timeout=30)
    assert tree.leftovers() == []


@pytest.mark.parametrize("arguments, words", [
    (["--arch", "vax"], "--arch is x86_64 or aarch64"),
    (["--fast"], "--fast is no option"),
    (["--archive"], "--archive needs a value"),
    (["--archive", "kernel.zip"], "--archive is a .tar"),
    (["--source", "/no/such/place"], "/no/such/place is not there"),
    (["another"], "one OUTDIR"),
])
def test_misuse_is_exit_code_2_and_changes_nothing(tree, arguments, words):
    done = tree.build(*arguments)
    assert done.returncode == 2 and words in done.stderr and not tree.out.parent.exists()


# --- what it tells ---

def test_progress_is_lines_where_no_terminal_is(tree):
    tree.mark("slow")
    process = tree.start()
    lines = iter(process.stdout.readline, "")
    assert any(re.fullmatch(r" {4}\d\d %\n", line) for line in lines), "no progress was shown"
    process.terminate()
    process.communicate(timeout=30)


def test_progress_moves_on_a_terminal(tree):
    tree.mark("slow")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(tree.command(), stdout=theirs, stderr=theirs, stdin=theirs, start_new_session=True)
    os.close(theirs)
    seen = b""

    def shown():
        nonlocal seen
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 4096)
        return re.search(rb"\r\x1b\[K==> compiling the guest kernel \(some minutes\) \.\.\. \d+s, \d\d %", seen)

    wait_until(shown, "a moving line", seconds=60)
    process.terminate()
    assert process.wait(timeout=30) == 143
    os.close(ours)


# --- release ---

def test_an_archive_is_the_same_each_time_and_builds_the_same_kernel(built, tmp_path):
    first, second = tmp_path / "first.tar.xz", tmp_path / "second.tar.xz"
    assert built.build("--archive", first).returncode == 0
    done = built.build("--archive", second)
    assert done.returncode == 0 and "compiling" not in done.stdout
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        assert {(m.uid, m.gid, m.uname) for m in archive.getmembers()} == {(0, 0, "")}
        archive.extractall(tmp_path / "release")
    assert {"vmlinux", "config", "build.log", "COPYING", "INPUTS", "VERSION", "MACHINE", "SHA256SUMS", "modules/list", "README",
            "guest-kernel/common.config", "guest-kernel/patches/0001-answer.patch",
            "scripts/build-guest-kernel.sh"} <= names
    [release] = (tmp_path / "release").iterdir()
    assert release.name == f"resoluto-guest-kernel-6.1.7-resoluto-{os.uname().machine}-{built.hash()}"
    assert subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release).returncode == 0
    again = subprocess.run(["bash", release / "scripts/build-guest-kernel.sh", tmp_path / "again", "--source", built.source],
                           capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again/vmlinux").read_bytes() == (built.out / "vmlinux").read_bytes()
    assert (tmp_path / "again/VERSION").read_bytes() == (built.out / "VERSION").read_bytes()


def test_relative_names_are_meant_from_where_it_was_called(tree, tmp_path):
    script = tree.folder / "checkout/scripts/build-guest-kernel.sh"
    done = subprocess.run(["bash", script, "out/built", "--source", os.path.relpath(tree.source, tmp_path), "--archive", "k.tar.gz"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out/built/vmlinux").exists()
    with tarfile.open(tmp_path / "k.tar.gz") as archive:
        assert [name for name in archive.getnames() if name.endswith("/vmlinux")]


def test_an_archive_that_cannot_be_written_is_told(built):
    done = built.build("--archive", built.folder / "no/such/folder/kernel.tar.gz")
    assert done.returncode == 1 and "packing" in done.stderr
