# SPDX-License-Identifier: Apache-2.0
"""scripts/local-backend-up.sh where it must refuse, warn or clean up; that it works shows check.sh, which begins with it."""
import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile

import pytest

import kernel_source
from conftest import ROOT, build_dir, needed, wait_until
from programs import program, programs_without

SCRIPT = ROOT / "scripts/local-backend-up.sh"


@pytest.fixture
def up(tmp_path):
    """Returns up(arguments...): the script with places of its own and an emulator that always fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RESOLUTO_")}
    env.update(RESOLUTO_CACHE_DIR=str(tmp_path / "cache"), RESOLUTO_STATE_DIR=str(tmp_path / "state"),
               RESOLUTO_LOCAL_ENV=str(tmp_path / "local.env"), RESOLUTO_LOCAL_QEMU="/bin/false")

    def run(*arguments, script=SCRIPT, **more):
        return subprocess.run(["bash", script, *map(str, arguments)], env={**env, **more}, cwd=tmp_path, text=True,
                              capture_output=True, timeout=600, stdin=subprocess.DEVNULL)

    def start(*arguments, **more):
        """A process group of its own, as a terminal makes one."""
        return subprocess.Popen(["bash", SCRIPT, *map(str, arguments)], env={**env, **more}, cwd=tmp_path,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                start_new_session=True)

    run.start = start
    return run


def settings(path):
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def provisioned():
    """Arguments and variables with which everything but the acceleration is there already."""
    if not (build_dir() / "guest/resoluto-runner").exists():
        pytest.skip("this build has no runner")
    return (["--skip-packages", "--prefix", "none", "--build-dir", build_dir()],
            {"RESOLUTO_CACHE_DIR": str(pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "sandbox")})


STAND_IN = """#!/bin/bash
# The real program; what the test says stands in for KVM.
by_kvm=
[ "$RESOLUTO_LOCAL_ACCEL" != kvm ] && { [ -n "$RESOLUTO_LOCAL_ACCEL" ] || ! grep -qsx RESOLUTO_LOCAL_ACCEL=kvm "$RESOLUTO_LOCAL_ENV"; } ||
	by_kvm=1
kernel=${RESOLUTO_LOCAL_KERNEL:-$(sed -n 's/^RESOLUTO_LOCAL_KERNEL=//p' "$RESOLUTO_LOCAL_ENV")}
kernel=$(basename "$(dirname "$kernel")")
%(words)s
[ -z "$by_kvm" ] || export RESOLUTO_LOCAL_ACCEL=tcg
exec %(real)s "$@"
"""


@pytest.fixture
def with_stand_in(tmp_path):
    """Returns with_stand_in(arguments, env, words): the arguments and variables with a build folder in which the command
    line is a shell script: words, which may ask $1 (the command), $by_kvm and $kernel (built, distro ...), and the real
    program with emulation instead of KVM."""
    def make(arguments, env, words):
        ours, theirs = tmp_path / "stand-in", build_dir()
        (ours / "src/cli").mkdir(parents=True, exist_ok=True)
        (ours / "build.ninja").touch()
        for name in ("guest", "src/shim", "src/gateway"):
            if not (ours / name).exists():
                (ours / name).symlink_to(theirs / name)
        (ours / "src/cli/resoluto-sandbox").write_text(
            STAND_IN % {"words": words, "real": theirs / "src/cli/resoluto-sandbox"})
        (ours / "src/cli/resoluto-sandbox").chmod(0o755)
        programs = tmp_path / "stand-in/bin"
        for name in ("meson", "ninja"):
            program(programs, name, "#!/bin/sh\n")
        arguments = [ours if argument == build_dir() else argument for argument in arguments]
        return arguments, {**env, "PATH": f"{programs}:{env.get('PATH', os.environ['PATH'])}"}

    return make


@pytest.fixture
def machine(provisioned, tmp_path):
    """The same with the real emulator and a cache of the test's own, in which only the image and the distribution's kernel
    are there."""
    arguments, env = provisioned
    theirs, ours = pathlib.Path(env["RESOLUTO_CACHE_DIR"]), tmp_path / "cache"
    ours.mkdir()
    tmp_path.chmod(0o711)  # an emulator with a user of its own reads from here
    (theirs / "images").mkdir(exist_ok=True)
    (ours / "images").symlink_to(theirs / "images")
    if (theirs / "refs.json").exists():  # an image of the system's own cache serves as well, and is named there
        shutil.copy(theirs / "refs.json", ours)
    shutil.copytree(theirs / "kernel/distro", ours / "kernel/distro")
    return (["--accel", "tcg", *arguments],
            {"RESOLUTO_CACHE_DIR": str(ours), "RESOLUTO_LOCAL_QEMU": shutil.which(f"qemu-system-{os.uname().machine}")})


def built():
    return pathlib.Path(needed("RESOLUTO_TEST_KERNELS")) / "built"


def without_source(folder):
    """A PATH in which apt knows everything but the source of the kernel."""
    return program(folder, "apt-cache", '#!/bin/sh\ncase "$*" in *linux-source*) exit 100 ;; esac\n'
                                        f'exec {shutil.which("apt-cache")} "$@"\n')


def checkout_copy():
    path = ROOT / "local.env"
    return path.read_bytes() if path.exists() else None


def test_kvm_on_request_is_refused_and_nothing_weaker_is_recorded(up, provisioned, tmp_path):
    arguments, env = provisioned
    before = checkout_copy()
    done = up("--accel", "kvm", *arguments, **env)
    assert done.returncode == 1, done.stdout
    assert "--accel kvm: a probe boot with KVM failed: " in done.stderr and "WARNING" not in done.stderr
    assert "firmware" not in done.stderr, "that was a guess"
    assert not list(tmp_path.glob("local.env*")), "nothing is recorded until something works"
    assert checkout_copy() == before, "who names a file gets that one and no other"


def test_emulation_is_said_loudly_and_a_red_canary_is_no_success(up, provisioned, tmp_path):
    arguments, env = provisioned
    done = up(*arguments, **env)
    assert "WARNING: no hardware virtualization" in done.stderr and "not a hardened security boundary" in done.stderr
    assert done.returncode == 1 and "the canary failed, so nothing was recorded" in done.stderr
    assert "[OK] kernel of the sandboxes" in done.stderr, "what doctor finds, by the configuration that failed"
    assert "is up" not in done.stdout and not list(tmp_path.glob("local.env*"))


# --- what is recorded, and when ---

def test_what_was_recorded_stays_until_something_else_works(up, machine, with_stand_in, tmp_path):
    """KVM that no guest boots on: a refusal changes nothing, and a run in the meantime goes by what is recorded."""
    arguments, env = machine
    shutil.copytree(built(), tmp_path / "cache/kernel/built")
    config, meanwhile = tmp_path / "local.env", tmp_path / "meanwhile"
    assert up(*arguments, **env).returncode == 0
    recorded = config.read_text()
    assert settings(config)["RESOLUTO_LOCAL_ACCEL"] == "tcg"
    arguments, env = with_stand_in(arguments[2:], env, f'[ -z "$by_kvm" ] || {{ cat {config} >{meanwhile}; exit 125; }}')
    for kernel in ([], ["--kernel", "built"], ["--kernel", built() / "vmlinux"]):
        meanwhile.unlink(missing_ok=True)
        done = up("--accel", "kvm", *kernel, *arguments, **env)
        assert done.returncode == 1 and "--accel kvm: a probe boot with KVM failed" in done.stderr, done.stderr
        assert config.read_text() == recorded == meanwhile.read_text()
        assert list(tmp_path.glob("local.env*")) == [config]
    assert sorted(p.name for p in (tmp_path / "cache/kernel").iterdir() if p.is_dir()) == ["built", "distro"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_recorded_stays_when_provisioning_is_stopped(up, machine, with_stand_in, tmp_path, number):
    arguments, env = machine
    config, there = tmp_path / "local.env", tmp_path / "there"
    config.write_text("RESOLUTO_LOCAL_ACCEL=tcg\n")
    # One process: between two of them bash would wait for the first, and go on if that had ended well.
    waits = f'import time; open("{there}", "w"); time.sleep(300)'
    arguments, env = with_stand_in(arguments[2:], env, f'[ "$1" != run ] || exec {sys.executable} -c {shlex.quote(waits)}')
    process = up.start("--accel", "tcg", "--kernel", "distro", *arguments, **env)
    try:
        wait_until(there.exists, "the canary")
        assert config.read_text() == "RESOLUTO_LOCAL_ACCEL=tcg\n" and len(list(tmp_path.glob("local.env*"))) == 2
        os.killpg(process.pid, number)
        assert process.wait(60) == 128 + number
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert config.read_text() == "RESOLUTO_LOCAL_ACCEL=tcg\n" and list(tmp_path.glob("local.env*")) == [config]


def test_what_its_owner_wrote_into_the_configuration_stays(up, machine, tmp_path):
    arguments, env = machine
    config = tmp_path / "local.env"
    theirs = ("# at most two, said Ada\nRESOLUTO_LOCAL_MAX_RUNS=2\n\n  export RESOLUTO_LOCAL_BOOT_LIMIT='90s'\n"
              "RESOLUTO_EGRESS_PROXY=http://me:secret@proxy:3128\nRESOLUTO_SANDBOX_REGISTRY=")
    config.write_text(f"export RESOLUTO_LOCAL_ACCEL=kvm\n{theirs}")
    config.chmod(0o600)
    for _ in range(2):
        done = up("--kernel", "distro", *arguments, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        text = config.read_text()
        assert text.endswith(f"\n{theirs}\n"), text
        assert text.count("RESOLUTO_LOCAL_ACCEL=") == 1 and text.count("written by") == 1
        assert settings(config)["RESOLUTO_LOCAL_ACCEL"] == "tcg"
        assert config.stat().st_mode & 0o777 == 0o600, "there may be a secret in it"
    (tmp_path / "cache/images").unlink()  # a link to those of the tests
    done = up("--uninstall", *arguments, **env)
    assert done.returncode == 0 and f"{config} stays: it has lines of its owner" in done.stdout, done.stdout + done.stderr
    assert config.read_text() == f"{theirs}\n"


def test_relative_places_are_recorded_whole(up, machine, tmp_path):
    """Runs are started elsewhere."""
    arguments, env = machine
    env = {**env, "RESOLUTO_CACHE_DIR": "cache", "RESOLUTO_STATE_DIR": "state", "RESOLUTO_LOCAL_ENV": "local.env"}
    done = up("--kernel", "distro", *arguments, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = settings(tmp_path / "local.env")
    assert (recorded["RESOLUTO_CACHE_DIR"], recorded["RESOLUTO_STATE_DIR"]) == (f"{tmp_path}/cache", f"{tmp_path}/state")
    assert recorded["RESOLUTO_LOCAL_KERNEL"] == f"{tmp_path}/cache/kernel/distro/vmlinux"


def test_a_second_call_finds_the_places_of_the_first(up, machine, with_stand_in, tmp_path):
    """Also where another environment calls: what counts is what the configuration says, and that is said."""
    arguments, env = machine
    places = {"RESOLUTO_CACHE_DIR": tmp_path / "cache", "RESOLUTO_STATE_DIR": tmp_path / "state"}
    arguments, env = with_stand_in(arguments, env, "")
    first = up("--kernel", "distro", *arguments, **env)
    assert first.returncode == 0 and "RESOLUTO_CACHE_DIR" not in first.stdout, first.stdout + first.stderr
    recorded = (tmp_path / "local.env").read_text()
    (tmp_path / "local.env").write_text(f"RESOLUTO_CACHE_DIR=/an/earlier/line\n{recorded}")  # the last one counts
    env.update(RESOLUTO_CACHE_DIR="", RESOLUTO_STATE_DIR="")
    second = up("--kernel", "distro", *arguments, **env)
    assert second.returncode == 0, second.stdout + second.stderr
    assert (tmp_path / "local.env").read_text() == recorded
    for name, place in places.items():
        assert f"{name}={place}, as {tmp_path}/local.env says\n" in second.stdout
    (tmp_path / "cache/images").unlink()  # a link to those of the tests
    assert up("--uninstall", *arguments, **env).returncode == 0
    assert not any(place.exists() for place in places.values())


# --- why not KVM ---

HANGS = '''case "$1 $by_kvm" in
doctor*) echo "[OK] KVM (/dev/kvm opens)"; exit ;;
run*1) echo x >>%s; echo "resoluto-sandbox: boot-failed: the guest hangs"; echo "resoluto-sandbox: the last lines of its console:"
	echo "  | and so on"; exit 125 ;;
esac'''


def test_what_doctor_knows_about_kvm_is_said(up, machine, with_stand_in, tmp_path):
    arguments, env = machine
    words = """case "$1 $by_kvm" in
doctor*) printf '[OK] runtime (microvm)\\n[absent] KVM (/dev/kvm: closed (to us))\\n    -> join the group kvm\\n[OK] kernel\\n'; exit ;;
run*1) echo "resoluto-sandbox: refused: no"; exit 125 ;;
esac"""
    arguments, env = with_stand_in(["--kernel", "distro", *arguments[2:]], env, words)
    reason = "/dev/kvm: closed (to us); join the group kvm"
    done = up("--accel", "kvm", *arguments, **env)
    assert done.returncode == 1 and f"--accel kvm: a probe boot with KVM failed: {reason} (" in done.stderr, done.stderr
    for _ in range(2):
        done = up(*arguments, **env)
        assert done.returncode == 0 and f"\nThe reason: {reason}\n" in done.stderr, done.stdout + done.stderr
        assert "probing KVM" in done.stdout, "what is refused at once is asked each time"


def test_a_guest_that_hangs_on_kvm_is_not_waited_for_twice(up, machine, with_stand_in, tmp_path):
    """As where QEMU opens /dev/kvm and no guest boots: the probe takes minutes, and a second call should take seconds."""
    arguments, env = machine
    probes = tmp_path / "probes"
    arguments, env = with_stand_in(["--kernel", "distro", *arguments[2:]], env, HANGS % probes)

    def call(*more, **variables):
        probes.write_text("")
        done = up(*more, *arguments, **{**env, **variables})
        assert "boot-failed: the guest hangs" in done.stderr, done.stdout + done.stderr
        assert done.returncode == (1 if more else 0), done.stdout + done.stderr
        assert ("KVM is not probed: it failed since this system started; --accel kvm probes it again" in done.stdout) == (
            not probes.read_text())
        return len(probes.read_text().split())

    assert call() == 1
    assert call() == 0
    assert call("--accel", "kvm") == 1
    assert call() == 0
    folder, name = os.path.split(env["RESOLUTO_LOCAL_QEMU"])
    assert call(RESOLUTO_LOCAL_QEMU=f"{folder}/./{name}") == 1, "another emulator may do better"
    assert call() == 0, "the first is not forgotten"
    memory = tmp_path / "state/kvm-failed"
    memory.write_text(re.sub("^[0-9a-f]", "z", memory.read_text(), flags=re.M))
    assert call() == 1, "of another boot of the host"
    assert len(memory.read_text().splitlines()) == 1


@pytest.mark.parametrize("doctor, good, kernel, accel", [
    ("[OK] KVM (opens)", "distro", "distro", "kvm"),  # the kernel of our own is at fault
    ("[OK] KVM (opens)", "none", "built", "tcg"),  # KVM is
    ("[absent] KVM (closed)", "none", "built", "tcg"),
])
def test_kvm_that_is_recorded_decides_about_the_kernel(up, machine, with_stand_in, tmp_path, doctor, good, kernel, accel):
    arguments, env = machine
    shutil.copytree(built(), tmp_path / "cache/kernel/built")
    (tmp_path / "local.env").write_text("RESOLUTO_LOCAL_ACCEL=kvm\n")
    tried = tmp_path / "tried"
    words = f"""[ "$1" != doctor ] || {{ echo "{doctor}"; exit; }}
[ -z "$by_kvm" ] || [ "$kernel" = {good} ] || {{ echo "$kernel" >>{tried}; exit 125; }}"""
    arguments, env = with_stand_in(arguments[2:], env, words)
    done = up(*arguments, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    if good == "none":
        expected = ["built", "distro"] if "OK" in doctor else ["built", "built"]
        assert tried.read_text().split() == expected, "the other kernel is no help where nobody may open /dev/kvm"
    assert ("WARNING: sandboxes use the distribution's kernel" in done.stderr) == (kernel == "distro")
    assert ("WARNING: no hardware virtualization" in done.stderr) == (accel == "tcg")
    recorded = settings(tmp_path / "local.env")
    assert recorded["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / f"cache/kernel/{kernel}/vmlinux")
    assert recorded["RESOLUTO_LOCAL_ACCEL"] == accel


@pytest.mark.parametrize("arguments, words", [
    (["--accel", "fast"], "--accel is auto, kvm or tcg"),
    (["--kernel", "/no/such/vmlinux"], "/no/such/vmlinux"),
    (["--acel", "tcg"], "--acel is no option"),
    (["--prefix"], "--prefix needs a value"),
])
def test_misuse_changes_nothing(up, tmp_path, arguments, words):
    done = up(*arguments)
    assert done.returncode == 1 and words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_apt_it_says_what_to_install_and_where_to_point_it(up, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "basename", "cat", "chmod", "date", "dirname", "id", "mkdir", "sed", "uname"):
        (programs / name).symlink_to(shutil.which(name))
    done = up(PATH=str(programs))
    assert done.returncode == 1
    for words in ("no apt-get", "libarchive", "qemu-system", "skopeo", "--kernel FILE", "--base-image REF",
                  "--skip-packages", "RESOLUTO_LOCAL_QEMU"):
        assert words in done.stderr, words
    assert not (tmp_path / "local.env").exists()


def test_without_the_packages_of_a_build_it_names_them_where_it_fails(up, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dpkg-query").write_text('#!/bin/sh\nfor name; do :; done\n[ "$name" != libc-ares-dev ] && '
                                         'printf "install ok installed"\n')
    (programs / "gcc").write_text("#!/bin/sh\necho some-linux-gnu\n")
    (programs / "meson").write_text('#!/bin/sh\necho "$@"\necho "Dependency libcares not found"\nexit 1\n')
    (programs / "ninja").write_text("#!/bin/sh\necho ninja was called\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    done = up("--skip-packages", "--build-dir", tmp_path / "build", PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 1 and "building failed" in done.stderr
    assert "apt-get install libc-ares-dev\n" in done.stdout, "said before it is tried"
    assert "apt-get install libc-ares-dev\n" in done.stderr, "and where it failed"
    assert "--libdir=lib/some-linux-gnu " in done.stderr, "whatever meson would guess without dpkg-architecture"
    assert "libcares not found" in done.stderr and "ninja was called" not in done.stderr
    assert not (tmp_path / "local.env").exists()


def test_a_base_image_that_could_not_be_made_is_no_success(up, machine, tmp_path):
    arguments, env = machine
    # Not an empty cache: the system's own is read besides, and may hold one of this name.
    (tmp_path / "cache/base-image.key").write_text("of an earlier script\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mmdebstrap").write_text("#!/bin/sh\necho no archive today >&2\nexit 1\n")
    (programs / "mmdebstrap").chmod(0o755)
    done = up("--kernel", "distro", *arguments, **env, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 1 and "base image with python3 (a minute) failed" in done.stderr, done.stdout
    assert "no archive today" in done.stderr
    assert (tmp_path / "cache/base-image.key").read_text() == "of an earlier script\n", "so the next call tries again"


def test_uninstall_removes_what_is_ours_and_nothing_else(up, tmp_path):
    before = checkout_copy()
    for name in ("cache/kernel/distro/vmlinux", "cache/images/sha256-0.squashfs", "cache/refs.json", "cache/theirs",
                 "state/runs/x/lock", "local.env", "installed/ours", "installed/theirs", "installed/resoluto/h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "local.env").write_text("# written by scripts/local-backend-up.sh; and so on\nRESOLUTO_LOCAL_ACCEL=tcg\n")
    log = tmp_path / "build/meson-logs/install-log.txt"
    log.parent.mkdir(parents=True)
    log.write_text(f"# List of files installed\n{tmp_path}/installed\n{tmp_path}/installed/ours\n"
                   f"{tmp_path}/installed/resoluto/h\n")
    programs = tmp_path / "bin"  # an ordinary user may remove files of his own, and has no sudo to do it
    programs.mkdir()
    for name, text in (("id", "echo 1000"), ("sudo", "exit 1")):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    done = up("--uninstall", "--prefix", "none", "--build-dir", tmp_path / "build", PATH=f"{programs}:{os.environ['PATH']}")
    shutil.rmtree(programs)
    assert done.returncode == 0, done.stderr
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"cache/theirs", "installed/theirs", "build/meson-logs/install-log.txt"}
    assert not (tmp_path / "installed/resoluto").exists()
    assert checkout_copy() == before
    assert f"removed: 2 installed files, the kernels and images in {tmp_path}/cache" in done.stdout
    assert f"{tmp_path}/cache stays: there is something else in it" in done.stdout and "state stays" not in done.stdout


def test_uninstall_says_what_it_could_not_remove(up, tmp_path):
    program = tmp_path / "prefix/bin/resoluto-sandbox"
    program.parent.mkdir(parents=True)
    program.write_text("x")
    arguments = ["--uninstall", "--prefix", tmp_path / "prefix", "--build-dir", tmp_path / "build"]
    done = up(*arguments)
    assert done.returncode == 1 and program.exists()
    assert f"not removed: {program} and what was installed with it: there is no list of these files" in done.stdout
    assert "removed: 0 installed files" in done.stdout

    (tmp_path / "state").mkdir()
    (tmp_path / "state/installed-files").write_text(f"{program}\n{tmp_path}/prefix/gone\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "rm").write_text(f'#!/bin/sh\ncase "$*" in *{program}*) exit 1 ;; esac\nexec {shutil.which("rm")} "$@"\n')
    (programs / "rm").chmod(0o755)
    done = up(*arguments, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 1 and f"not removed: {program}\n" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "state/installed-files").exists(), "for the next time"

    done = up(*arguments)
    assert done.returncode == 0 and "removed: 1 installed files" in done.stdout and not program.exists()
    assert not (tmp_path / "state").exists()


@pytest.fixture
def small_root(tmp_path):
    """A root directory with the least that the canary takes for an image: something that is called python3."""
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (tmp_path / "python3.c").write_text('#include <stdio.h>\nint main(void) { return puts("hello from the small root") < 0; }\n')
    subprocess.run(["cc", "-static", "-O2", "-o", root / "usr/bin/python3", tmp_path / "python3.c"], check=True)
    return root


def test_with_a_prefix_and_an_image_of_the_callers_a_second_call_makes_nothing_again(up, provisioned, small_root, tmp_path):
    tmp_path.chmod(0o711)  # an emulator with a user of its own reads from here
    shutil.copytree(built(), tmp_path / "cache/kernel/built")
    # These stay, so that what was compiled once is not compiled again: with another prefix all of it would be.
    prefix, build = build_dir() / "installed", build_dir() / "to-install"
    shutil.rmtree(prefix, ignore_errors=True)
    env = {"RESOLUTO_LOCAL_QEMU": shutil.which(f"qemu-system-{os.uname().machine}")}
    arguments = ["--accel", "tcg", "--skip-packages", "--prefix", prefix, "--build-dir", build]
    first = up("--base-image", f"rootfs:{small_root}", *arguments, **env)
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"installing to {prefix}" in first.stdout and f"base image from rootfs:{small_root}" in first.stdout
    recorded = settings(tmp_path / "local.env")
    assert "RESOLUTO_LIBEXEC_DIR" not in recorded, "the program finds what was installed beside it"
    images = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/images").iterdir()}
    shutil.rmtree(small_root)
    second = up(*arguments, **env)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "is in the cache" in second.stdout and "base image from" not in second.stdout
    assert "base image with python3" not in second.stdout and "guest kernel" not in second.stdout
    assert settings(tmp_path / "local.env") == recorded
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/images").iterdir()} == images
    for done in first, second:
        assert "    | hello from the small root\n" in done.stdout and "WARNING" not in done.stderr
    version = subprocess.run([prefix / "bin/resoluto-sandbox", "version"], env={"PATH": os.environ["PATH"]}, text=True,
                             capture_output=True, timeout=60)
    assert version.returncode == 0 and re.search(r"\d+\.\d+\.\d+", version.stdout), version
    # As after `make clean`, or from another clone: without the log of the installation.
    gone = up("--uninstall", "--prefix", prefix, "--build-dir", tmp_path / "nothing")
    assert gone.returncode == 0 and "not removed" not in gone.stdout, gone.stdout
    assert [path for path in prefix.rglob("*") if not path.is_dir()] == []


# --- which kernel ---

def small_build(tmp_path, turns_out_ours=False):
    """A checkout whose kernel is built in a moment; the script of it, and a PATH with its source."""
    kernel_source.make_checkout(tmp_path / "checkout")
    (tmp_path / "checkout/include").symlink_to(ROOT / "include")
    kernel_source.make_source(tmp_path / "source", tmp_path / "flag")
    if turns_out_ours:
        shutil.copy(built() / "vmlinux", tmp_path / "source")
    for name in ("meson", "ninja"):  # what they find in such a PATH, the build would remember
        program(tmp_path / "bin", name, "#!/bin/sh\n")
    return tmp_path / "checkout/scripts/local-backend-up.sh", kernel_source.package(tmp_path / "source", tmp_path)


def test_the_first_call_is_green_soon_and_ends_with_the_kernel_that_it_built(up, machine, tmp_path):
    arguments, env = machine
    script, path = small_build(tmp_path, turns_out_ours=True)
    done = up(*arguments, script=script, PATH=path, **env)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    told = re.findall(r"^    \| kernel .*|.*compiling the guest kernel.*|^    \| hello from the sandbox$", done.stdout, re.M)
    wanted = ["-cloud-", "hello", "compiling", "compiling", "-resoluto", "hello"]
    assert len(told) == len(wanted) and all(word in line for word, line in zip(wanted, told)), done.stdout
    recorded = settings(tmp_path / "local.env")
    assert recorded["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / "cache/kernel/built/vmlinux")
    assert recorded["RESOLUTO_LOCAL_MACHINE"] == f"{os.uname().machine}-built"
    assert (tmp_path / "cache/kernel/built/VERSION").read_text().startswith("6.1.7-resoluto ")


@pytest.mark.parametrize("lacks, said", [
    ("tools", "apt-get install bison flex"),
    ("a patch that fits", "patches/0001-answer.patch does not apply to Linux 6.1.7"),
    ("space", "no space for the build"),
])
def test_a_kernel_that_cannot_be_built_leaves_the_distributions(up, machine, tmp_path, lacks, said):
    arguments, env = machine
    script, path = small_build(tmp_path)
    if lacks == "tools":
        path = f"{tmp_path / 'bin'}:{programs_without(tmp_path / 'others', 'flex', 'bison')}"
    elif lacks == "space":
        program(tmp_path / "bin", "df", "#!/bin/sh\necho Avail\necho 7\n")
    else:
        patch = tmp_path / "checkout/guest-kernel/patches/0001-answer.patch"
        patch.write_text(patch.read_text().replace("return 1", "return 17"))
    done = up(*arguments, script=script, PATH=path, **env)
    assert done.returncode == 0 and said in done.stderr, done.stdout + done.stderr
    assert "WARNING: sandboxes use the distribution's kernel, not the built one" in done.stderr
    assert done.stdout.count("hello from the sandbox") == 1
    assert settings(tmp_path / "local.env")["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / "cache/kernel/distro/vmlinux")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_without_the_built_kernel_the_distributions_serves_and_that_is_said(up, machine, tmp_path, is_damaged):
    arguments, env = machine
    if is_damaged:
        shutil.copytree(built(), tmp_path / "cache/kernel/built")
        with (tmp_path / "cache/kernel/built/vmlinux").open("ab") as file:
            file.write(b"!")
    done = up(*arguments, PATH=without_source(tmp_path / "bin"), **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the kernel's source was not found" in done.stderr
    assert "WARNING: sandboxes use the distribution's kernel, not the built one" in done.stderr
    assert "hello from the sandbox" in done.stdout
    recorded = settings(tmp_path / "local.env")
    assert recorded["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / "cache/kernel/distro/vmlinux")
    assert recorded["RESOLUTO_LOCAL_MACHINE"] == (tmp_path / "cache/kernel/distro/MACHINE").read_text().strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file over another one")
def test_a_derivative_of_debian_has_its_kernel(up, machine, tmp_path):
    """The system says so in a file that only this call sees."""
    arguments, env = machine
    (tmp_path / "os-release").write_text("ID=raspbian\nID_LIKE=debian\n")
    script = tmp_path / "as-raspbian.sh"
    script.write_text(f'exec unshare --mount sh -c \'mount --bind "$0" /etc/os-release && exec bash {SCRIPT} "$@"\' '
                      f'{tmp_path / "os-release"} "$@"\n')
    done = up("--kernel", "distro", *arguments, script=script, **env)
    assert done.returncode == 0 and "hello from the sandbox" in done.stdout, done.stdout + done.stderr


def test_a_kernel_of_an_older_compiler_serves_where_none_can_be_built(up, machine, tmp_path):
    arguments, env = machine
    folder = tmp_path / "cache/kernel/built"
    shutil.copytree(built(), folder)
    inputs, sums = folder / "INPUTS", folder / "SHA256SUMS"
    inputs.write_text(re.sub("(?m)^compiler .*$", "compiler gcc 1", inputs.read_text()))
    digest = hashlib.sha256(inputs.read_bytes()).hexdigest()
    sums.write_text(re.sub("(?m)^[0-9a-f]+(  INPUTS)$", rf"{digest}\1", sums.read_text()))
    done = up(*arguments, PATH=without_source(tmp_path / "bin"), **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the one that is there goes on serving" in done.stdout and "WARNING" not in done.stderr, done.stderr
    assert settings(tmp_path / "local.env")["RESOLUTO_LOCAL_KERNEL"] == str(folder / "vmlinux")


def test_the_built_kernel_on_request_is_built_or_nothing_changes(up, machine, tmp_path):
    arguments, env = machine
    (tmp_path / "local.env").write_text("RESOLUTO_LOCAL_ACCEL=tcg\n")
    done = up("--kernel", "built", *arguments, PATH=without_source(tmp_path / "bin"), **env)
    assert done.returncode == 1 and "--kernel built: the kernel could not be built" in done.stderr
    assert (tmp_path / "local.env").read_text() == "RESOLUTO_LOCAL_ACCEL=tcg\n"


def test_the_built_kernel_that_is_there_is_what_runs_use(up, machine, tmp_path):
    arguments, env = machine
    shutil.copytree(built(), tmp_path / "cache/kernel/built")
    for kernel in ([], ["--kernel", "built"]):
        done = up(*kernel, *arguments, **env)
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
        assert "-resoluto" in done.stdout and "compiling" not in done.stdout
        recorded = settings(tmp_path / "local.env")
        assert recorded["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / "cache/kernel/built/vmlinux")
        assert recorded["RESOLUTO_LOCAL_INITRD"] == str(tmp_path / "cache/kernel/built/initrd.img")
        assert recorded["RESOLUTO_LOCAL_MACHINE"] == f"{os.uname().machine}-built"


def test_kvm_is_not_given_up_for_the_built_kernel(up, machine, tmp_path):
    """Recorded is KVM; the built kernel cannot have it here, so nothing is recorded that would run by emulation."""
    arguments, env = machine
    shutil.copytree(built(), tmp_path / "cache/kernel/built")
    (tmp_path / "local.env").write_text("RESOLUTO_LOCAL_ACCEL=kvm\n")
    done = up(*arguments[2:], **{**env, "RESOLUTO_LOCAL_QEMU": "/bin/false"})
    assert done.returncode == 1 and "KVM is recorded, and a probe boot with it failed on the built kernel" in done.stderr
    assert (tmp_path / "local.env").read_text() == "RESOLUTO_LOCAL_ACCEL=kvm\n"


@pytest.mark.parametrize("kernel", ["", "built", "distro"])
def test_a_later_call_needs_no_network(up, machine, with_stand_in, tmp_path, kernel):
    """Every package is there, and apt knows nothing and reaches nobody."""
    arguments, env = machine
    if kernel != "distro":
        shutil.copytree(built(), tmp_path / "cache/kernel/built")
    arguments, env = with_stand_in([argument for argument in arguments if argument != "--skip-packages"], env, "")
    for name, text in (("apt-cache", "exit 100"), ("apt-get", "echo no network today >&2; exit 100"),
                       ("dpkg-query", "echo install ok installed")):
        (tmp_path / "stand-in/bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "stand-in/bin" / name).chmod(0o755)
    done = up(*(["--kernel", kernel] if kernel else []), *arguments, **env)
    assert done.returncode == 0 and "hello from the sandbox" in done.stdout, done.stdout + done.stderr
    assert ("is there, and serves; newer ones could not be looked for" in done.stdout) == (kernel == "distro")


# --- a kernel of the caller's ---

def packed_kernel():
    return bytes(514) + b"HdrS" + bytes(100)


@pytest.mark.parametrize("content, words", [
    (b"no kernel at all\n", "is not an uncompressed kernel (vmlinux, an ELF file)"),
    (packed_kernel(), "is a packed kernel (bzImage)"),
    (pathlib.Path("/bin/true").read_bytes(), "it is no kernel of Linux, or lacks CONFIG_PVH"),
    (None, "it lacks CONFIG_VIRTIO_MMIO, CONFIG_VIRTIO_CONSOLE, CONFIG_VIRTIO_BLK, CONFIG_SQUASHFS, CONFIG_OVERLAY_FS"),
])
def test_a_file_that_cannot_be_the_kernel_is_refused_and_nothing_changes(up, machine, tmp_path, content, words):
    """None: the distribution's kernel without its modules, which has all of these as modules only."""
    arguments, env = machine
    (tmp_path / "local.env").write_text("RESOLUTO_LOCAL_ACCEL=tcg\n")
    kernel = tmp_path / "vmlinux"
    kernel.write_bytes(content if content is not None else (tmp_path / "cache/kernel/distro/vmlinux").read_bytes())
    done = up("--kernel", kernel, *arguments, **env)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"--kernel {kernel}" in done.stderr and words in done.stderr
    assert "probing it as" not in done.stdout, "with another machine it would lack the same"
    assert (tmp_path / "local.env").read_text() == "RESOLUTO_LOCAL_ACCEL=tcg\n"
    assert [p.name for p in (tmp_path / "cache/kernel").iterdir()] == ["distro"]


def test_a_built_kernel_as_a_file_is_recognized(up, machine, tmp_path):
    arguments, env = machine
    done = up("--kernel", built() / "vmlinux", *arguments, **env)
    assert done.returncode == 0 and "-resoluto" in done.stdout, done.stdout + done.stderr
    recorded = settings(tmp_path / "local.env")
    assert recorded["RESOLUTO_LOCAL_KERNEL"] == str(tmp_path / "cache/kernel/file/vmlinux")
    assert recorded["RESOLUTO_LOCAL_MACHINE"] == f"{os.uname().machine}-built"
    version, digest = (tmp_path / "cache/kernel/file/VERSION").read_text().split()
    assert version.endswith("-resoluto")
    assert digest == hashlib.sha256((built() / "vmlinux").read_bytes()).hexdigest()[:16]


def somebodys_kernel(path, change=b"-somebody"):
    """Ours under another name: without ACPI, and of a version that says nothing about the machine it is for."""
    path.write_bytes((built() / "vmlinux").read_bytes().replace(b"-resoluto", change))
    return path


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="there is no other machine for such a kernel")
@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_a_kernel_without_acpi_is_booted_on_the_machine_without(up, machine, with_stand_in, tmp_path, accel):
    arguments, env = machine
    arguments, env = with_stand_in(["--accel", accel, *arguments[2:]], env, "")
    done = up("--kernel", somebodys_kernel(tmp_path / "vmlinux"), *arguments, **env)
    assert done.returncode == 0 and "-somebody" in done.stdout, done.stdout + done.stderr
    assert "==> probing it as x86_64-built: it did not boot as x86_64-ubuntu\n    it boots as x86_64-built\n" in done.stdout
    recorded = settings(tmp_path / "local.env")
    assert (recorded["RESOLUTO_LOCAL_MACHINE"], recorded["RESOLUTO_LOCAL_ACCEL"]) == ("x86_64-built", accel)
    place = tmp_path / "cache/kernel/file"
    assert (place / "MACHINE").read_text() == "x86_64-built\n"
    assert subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=place).returncode == 0


NO_KVM = """case "$1 $by_kvm $kernel" in
doctor*) echo "[OK] KVM (/dev/kvm opens)"; exit ;;
run*1*probe) echo "resoluto-sandbox: boot-failed: the guest hangs"; exit 125 ;;
run*1*) exit %d ;;
esac"""


@pytest.mark.parametrize("other_boots, has_other, words", [
    (True, True, "KVM works, but {kernel} does not boot under it: it may lack CONFIG_KVM_GUEST or CONFIG_PARAVIRT (boot-failed: "),
    (False, True, "--accel kvm: a probe boot with KVM failed: the run ended with exit code 125 and said nothing"),
    (False, False, "{kernel} boots by emulation, but not under KVM: it may lack CONFIG_KVM_GUEST or CONFIG_PARAVIRT; or KVM "),
])
def test_a_kernel_that_does_not_boot_under_kvm_is_told_from_kvm_that_boots_none(up, machine, with_stand_in, tmp_path,
                                                                             other_boots, has_other, words):
    arguments, env = machine
    kernel = built() / "vmlinux"
    if not has_other:
        shutil.rmtree(tmp_path / "cache/kernel/distro")
    arguments, env = with_stand_in(arguments[2:], env, NO_KVM % (0 if other_boots else 125))
    done = up("--accel", "kvm", "--kernel", kernel, *arguments, **env)
    assert done.returncode == 1 and words.format(kernel=kernel) in done.stderr, done.stdout + done.stderr
    assert "firmware" not in done.stderr and not (tmp_path / "local.env").exists()


def test_a_kernel_that_boots_by_emulation_alone_is_taken_with_it_and_that_is_remembered(up, machine, with_stand_in, tmp_path):
    arguments, env = machine
    arguments, env = with_stand_in(arguments[2:], env, NO_KVM % 0)
    kernel = built() / "vmlinux"
    for is_first in True, False:
        done = up("--kernel", kernel, *arguments, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"\nThe reason: KVM works, but {kernel} does not boot under it: it may lack CONFIG_KVM_GUEST" in done.stderr
        assert ("probing KVM" in done.stdout) == is_first
        assert settings(tmp_path / "local.env")["RESOLUTO_LOCAL_ACCEL"] == "tcg"


def test_a_kernel_that_cannot_boot_at_all_is_not_kvms_fault(up, machine, with_stand_in, tmp_path):
    arguments, env = machine
    kernel = tmp_path / "vmlinux"
    kernel.write_bytes((tmp_path / "cache/kernel/distro/vmlinux").read_bytes())
    arguments, env = with_stand_in(arguments[2:], env, NO_KVM % 0)
    done = up("--accel", "kvm", "--kernel", kernel, *arguments, **env)
    assert done.returncode == 1 and "it lacks CONFIG_VIRTIO_MMIO" in done.stderr, done.stdout + done.stderr
    assert "KVM failed" not in done.stderr


def archive_of_built(path, change=lambda files: None):
    """A release archive; change(files) may damage it."""
    names = ("vmlinux", "config", "build.log", "COPYING", "INPUTS", "MACHINE", "VERSION", "SHA256SUMS", "modules/list")
    files = {name: (built() / name).read_bytes() for name in names}
    change(files)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"resoluto-guest-kernel/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_release_archive_is_used_as_it_is(up, machine, tmp_path):
    arguments, env = machine
    done = up("--kernel", archive_of_built(tmp_path / "kernel.tar.gz"), *arguments, **env)
    assert done.returncode == 0 and "-resoluto" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "cache/kernel/file/VERSION").read_bytes() == (built() / "VERSION").read_bytes()


def other_machine(files):
    files["MACHINE"] = b"vax-built\n"
    files["SHA256SUMS"] = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()
                                  if name != "SHA256SUMS").encode()


@pytest.mark.parametrize("change, words", [
    (lambda files: files.update(vmlinux=files["vmlinux"][:-1] + b"!"), "is damaged: its files are not what SHA256SUMS says"),
    (lambda files: files.pop("COPYING"), "is not an archive of build-guest-kernel.sh: it has no COPYING"),
    (other_machine, "is a kernel for vax, and this is"),
])
def test_a_release_archive_that_is_not_whole_is_refused(up, machine, tmp_path, change, words):
    arguments, env = machine
    done = up("--kernel", archive_of_built(tmp_path / "kernel.tar.gz", change), *arguments, **env)
    assert done.returncode == 1 and words in done.stderr, done.stdout + done.stderr
    assert [p.name for p in (tmp_path / "cache/kernel").iterdir()] == ["distro"]
