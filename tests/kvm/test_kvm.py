# SPDX-License-Identifier: Apache-2.0
"""The product with `accel kvm`, provisioned and run on a host whose /dev/kvm works (inside.py says where that is)."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import pytest

from conftest import ROOT, Processes, Sandbox, wait_until

sys.path.append(str(ROOT / "tests/e2e"))
from test_nothing_left import gone, machine_state, orphans_come_to_us, running  # noqa: E402, F401

pytest_plugins = ["inside"]

CONFIG = pathlib.Path(os.environ.get("RESOLUTO_LOCAL_ENV", "/etc/resoluto-sandbox/local.env"))
KVM = pathlib.Path("/dev/kvm")
CLOCK_SECONDS = 0.010  # how far a guest's clock may be off
SECONDS_TO_DIE = 30  # a second is promised, of a host that is not emulated
SECONDS_TO_END = 300
MIB = 1 << 20
UID = 54321
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")


def settings(path):
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def provision(*arguments, **env):
    """scripts/local-backend-up.sh; compiling is left out, everything else is as on any host."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RESOLUTO_")}
    clean.update(env, PATH=f"{ROOT}/stand-ins:{os.environ['PATH']}")
    done = subprocess.run(["bash", ROOT / "scripts/local-backend-up.sh", "--skip-packages", *arguments], env=clean,
                          text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=600)
    log = pathlib.Path("/var/cache/resoluto-sandbox/provision.log").read_text(errors="replace")
    print(done.stdout, done.stderr, log, sep="\n")  # shown if something fails
    return done


@pytest.fixture(scope="session")
def provisioned():
    """What provisioning with --accel kvm said."""
    done = provision("--accel", "kvm", "--kernel", "distro")
    assert done.returncode == 0
    return done


@pytest.fixture(scope="session")
def host(provisioned, tmp_path_factory):
    """The command line as provisioning left it."""
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    return Sandbox(state, tmp_path_factory.mktemp("tmp"))


@pytest.fixture(scope="session")
def sandbox(host, kernel, tmp_path_factory):
    """The same with each of the guest kernels."""
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    sandbox = Sandbox(state, tmp_path_factory.mktemp("tmp"))
    sandbox.env.update(kernel)
    return sandbox


@pytest.fixture
def device():
    """/dev/kvm as a path to spoil; put back afterwards."""
    st = KVM.stat()
    yield KVM
    KVM.unlink(missing_ok=True)
    os.mknod(KVM, stat.S_IFCHR, st.st_rdev)
    os.chown(KVM, st.st_uid, st.st_gid)
    KVM.chmod(stat.S_IMODE(st.st_mode))


def make_other(device):
    """A device that everybody may open, and that is no KVM."""
    device.unlink()
    os.mknod(device, stat.S_IFCHR, os.makedev(1, 3))
    device.chmod(0o666)


def shell(text):
    return ("/bin/sh", "-c", text)


def ordinary_user(groups, *arguments):
    """The command line as a user without any right, with a home of its own."""
    home = pathlib.Path("/run/home")
    home.mkdir(exist_ok=True)
    os.chown(home, UID, UID)
    command = ["setpriv", f"--reuid={UID}", f"--regid={UID}", *groups, "--bounding-set=-all",
               "/usr/local/bin/resoluto-sandbox", *arguments]
    return subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": str(home)}, cwd=home, capture_output=True,
                          timeout=SECONDS_TO_END)


# provisioning

def test_provisioning_probes_with_a_real_boot_and_ends_on_a_green_canary(provisioned):
    assert "probing KVM with a real boot" in provisioned.stdout and "    KVM works\n" in provisioned.stdout
    assert "canary: a real program in a real microVM (kvm)" in provisioned.stdout
    assert "    | hello from the sandbox\n" in provisioned.stdout
    assert "The local backend is up (kvm" in provisioned.stdout
    assert "WARNING" not in provisioned.stderr
    assert settings(CONFIG)["RESOLUTO_LOCAL_ACCEL"] == "kvm"
    assert settings(ROOT / "local.env") == settings(CONFIG)


def test_provisioning_by_itself_takes_kvm_where_it_works(provisioned, tmp_path):
    config = tmp_path / "local.env"
    done = provision("--kernel", "distro", RESOLUTO_LOCAL_ENV=str(config))
    assert done.returncode == 0
    assert "    | hello from the sandbox\n" in done.stdout and "WARNING" not in done.stderr
    assert settings(config)["RESOLUTO_LOCAL_ACCEL"] == "kvm"


def test_provisioning_takes_our_own_kernel_from_a_file(provisioned, tmp_path):
    """Compiling it there would take hours; from a file it goes through the same probe and canary."""
    config = tmp_path / "local.env"
    vmlinux = pathlib.Path(os.environ["RESOLUTO_TEST_KERNELS"]) / "built/vmlinux"
    done = provision("--accel", "kvm", "--kernel", vmlinux, RESOLUTO_LOCAL_ENV=str(config))
    assert done.returncode == 0
    assert "    | hello from the sandbox\n" in done.stdout and "-resoluto\n" in done.stdout
    assert settings(config)["RESOLUTO_LOCAL_ACCEL"] == "kvm"
    assert settings(config)["RESOLUTO_LOCAL_MACHINE"] == "x86_64-built"


def test_provisioning_on_request_refuses_what_is_no_kvm(provisioned, device, tmp_path):
    config = tmp_path / "local.env"
    make_other(device)
    done = provision("--accel", "kvm", "--kernel", "distro", RESOLUTO_LOCAL_ENV=str(config))
    assert done.returncode == 1
    assert "--accel kvm: a probe boot with KVM failed" in done.stderr
    assert not config.exists()


# runs

def test_hello_and_what_the_result_says(sandbox):
    done = sandbox.run("run", "--json", "--", *shell(f"echo hello; id -u; nproc; cat {BOOT_ID};"
                                                     "for cpu in 0 1; do taskset -c $cpu echo $cpu; done"))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    isolation = result["isolation"]
    assert result["output"] == f"hello\n1000\n2\n{isolation['guest_boot_id']}\n0\n1\n"
    assert isolation["accel"] == "kvm" and isolation["runtime"] == "microvm"
    version = pathlib.Path(sandbox.env["RESOLUTO_LOCAL_KERNEL"]).with_name("VERSION").read_text()
    assert isolation["kernel"].split()[0] == version.split()[0]
    assert isolation["guest_boot_id"] not in ("", BOOT_ID.read_text().strip())
    assert isolation["own_kernel"] is True and isolation["verdict"] == "protected"
    for word in ("uid-", "no-new-privs", "landlock-", "seccomp", "qemu-sandbox", "rlimits"):
        assert any(c.startswith(word) for c in isolation["confinement"]), word


def test_a_failing_program_and_nothing_but_its_bytes(sandbox):
    done = sandbox.run("run", "--", *shell("echo hello; echo oops >&2; exit 7"))
    assert (done.returncode, done.stdout, done.stderr) == (7, b"hello\n", b"oops\n")


def test_a_program_that_is_not_there(sandbox):
    done = sandbox.run("run", "--json", "--", "/no/such/program")
    result = json.loads(done.stdout)
    assert (done.returncode, result["reason"], result["exit_code"]) == (127, "not-found", 1)
    assert result["isolation"]["accel"] == "kvm"


def test_a_program_that_dies_of_a_signal(sandbox):
    done = sandbox.run("run", "--json", "--", *shell("kill -SEGV $$"))
    result = json.loads(done.stdout)
    assert done.returncode == result["exit_code"] == 128 + signal.SIGSEGV
    assert result["signal"] == signal.SIGSEGV and result["isolation"]["accel"] == "kvm"


def numbered(first, last):
    """What `seq` prints: lines of 1,000 bytes, so that it is many bytes and few events."""
    return b"".join(b"%0999d\n" % i for i in range(first, last + 1))


def test_much_output_on_both_streams_is_exact(sandbox):
    done = sandbox.run("run", "--", *shell("seq -f %0999.0f 1 2500 & seq -f %0999.0f 2501 5000 >&2; wait"))
    assert done.returncode == 0
    assert done.stdout == numbered(1, 2500)
    assert done.stderr == numbered(2501, 5000)


def test_standard_input_comes_back_exactly(sandbox):
    data = os.urandom(2 * MIB)
    done = sandbox.run("run", "-i", "--", "cat", input=data)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data


def test_workspace_in_and_outputs_back_over_a_scratch_disk(sandbox, tmp_path):
    data = os.urandom(MIB)
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/deep/data").write_bytes(data)
    (tmp_path / "in/run.sh").write_text("#!/bin/sh\nmkdir out; cat in/deep/data in/deep/data > out/twice\n")
    (tmp_path / "in/run.sh").chmod(0o755)
    done = sandbox.run("run", "--disk", "64Mi", "--workspace", tmp_path, "--output", "out/**", "--", "in/run.sh")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/twice").read_bytes() == data + data


def test_the_guests_clock_is_right_and_a_second_lasts_one(sandbox):
    """Each answer of the guest must lie between the host's times of question and answer."""
    run = sandbox.start("run", "-i", "--", *shell("while read wait; do date +%s.%N; sleep $wait; date +%s.%N; done"))

    def ask(wait):
        before = time.time()
        run.stdin.write(b"%d\n" % wait)
        run.stdin.flush()
        answers = [float(run.stdout.readline()) for _ in range(2)]
        return [before, *answers, time.time()]

    first, second = ask(0), ask(1)
    run.stdin.close()
    assert run.wait(timeout=SECONDS_TO_END) == 0
    for before, start, end, after in (first, second):
        assert before - CLOCK_SECONDS < start <= end < after + CLOCK_SECONDS, (first, second)
    assert second[2] - second[1] >= 1, "sleep 1 ended early by the guest's clock"
    assert second[3] - second[0] >= 1 - CLOCK_SECONDS, "sleep 1 ended early by the host's clock"


def test_what_qemu_is_on_the_host(sandbox):
    """The run's user with the group of /dev/kvm and no other; each processor is one of KVM; no argument asks for another."""
    run, qemu, _ = running(sandbox, "kvm-rights")
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{qemu}/status").read_text().splitlines() if ":\t" in line)
    argv = Processes.argv(qemu)
    files = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{qemu}/fd").iterdir()]
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=SECONDS_TO_END)
    first, last = map(int, settings(CONFIG)["RESOLUTO_LOCAL_UIDS"].split("-"))
    assert all(first <= int(uid) <= last for uid in status["Uid"].split())
    assert status["Groups"].split() == [str(KVM.stat().st_gid)]
    assert int(status["CapEff"], 16) == 0 and status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    assert argv[argv.index(b"-accel") + 1] == b"kvm" and argv.count(b"-accel") == 1
    assert not any(b"tcg" in word for word in argv)
    assert len([name for name in files if name.startswith("anon_inode:kvm-vcpu")]) == 2, files


# ends

@pytest.mark.parametrize("victim", ["cli", "shim", "qemu"])
def test_sigkill_leaves_nothing(sandbox, victim):
    before = machine_state(sandbox)
    run, qemu, shim = running(sandbox, f"kvm-kill-{victim}")
    os.kill({"cli": run.pid, "shim": shim, "qemu": qemu}[victim], signal.SIGKILL)
    wait_until(lambda: gone(qemu, shim), f"QEMU and shim to end after SIGKILL of {victim}", SECONDS_TO_DIE)
    _, err = run.communicate(timeout=SECONDS_TO_END)
    if victim == "cli":
        assert run.returncode == -signal.SIGKILL
        # Files that nobody alive can remove go with the next command.
        assert sandbox.run("run", "--", "/bin/true").returncode == 0
    else:
        assert run.returncode == 125
        assert (b"shim-killed" if victim == "shim" else b"emulator-killed") in err
    assert machine_state(sandbox) == before


def test_a_deadline_ends_program_and_machine(sandbox):
    before = machine_state(sandbox)
    start = time.monotonic()
    done = sandbox.run("run", "--deadline", "20", "--", *shell("echo up; while :; do sleep 0.2; done"))
    assert done.returncode == 124 and b"deadline" in done.stderr
    assert done.stdout in (b"up\n", b""), "a slow host is not that far by then"
    assert time.monotonic() - start >= 20
    assert machine_state(sandbox) == before


def test_two_at_once(host):
    runs = [host.start("run", "--memory", "256Mi", "--", *shell(f"sleep 2; echo {i}")) for i in range(2)]
    ends = [run.communicate(timeout=SECONDS_TO_END) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    assert [out for out, _ in ends] == [b"0\n", b"1\n"]


# when /dev/kvm goes away

def refused(done, *words):
    """Before anything started: there is no second try with something weaker."""
    result = json.loads(done.stdout)
    assert done.returncode == 125
    assert result["ran"] is False and result["disposition"] == "refused"
    assert result["isolation"]["guest_boot_id"] in (None, "")
    for word in words:
        assert word in done.stderr, done.stderr


def test_without_the_device_a_run_is_refused(sandbox, device):
    before = machine_state(sandbox)
    device.unlink()
    refused(sandbox.run("run", "--json", "--", "/bin/true"), b"/dev/kvm", b"RESOLUTO_LOCAL_ACCEL=kvm",
            b"scripts/local-backend-up.sh", b"No such file")
    assert machine_state(sandbox) == before


def test_a_device_of_root_alone_is_refused_with_the_remedy(sandbox, device):
    device.chmod(0o600)
    refused(sandbox.run("run", "--json", "--", "/bin/true"), b"/dev/kvm is root's alone",
            b"chgrp kvm /dev/kvm && chmod 660 /dev/kvm")


def test_a_device_that_is_no_kvm_is_refused(sandbox, device):
    make_other(device)
    refused(sandbox.run("run", "--json", "--", "/bin/true"), b"/dev/kvm", b"is not KVM", b"scripts/local-backend-up.sh")


def test_a_run_that_has_the_device_goes_on_without_it(sandbox, device):
    run = sandbox.start("run", "-i", "--", *shell("echo up; read word; echo $word"))
    assert run.stdout.readline() == b"up\n"
    device.unlink()
    out, err = run.communicate(b"still here\n", timeout=SECONDS_TO_END)
    assert (run.returncode, out) == (0, b"still here\n"), err


def test_an_ordinary_user_needs_the_group_and_nothing_more(host):
    done = ordinary_user([f"--groups={KVM.stat().st_gid}"], "run", "--json", "--", "/bin/echo", "hello")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["output"], result["isolation"]["accel"]) == ("hello\n", "kvm")
    refused(ordinary_user(["--clear-groups"], "run", "--json", "--", "/bin/echo", "hello"), b"/dev/kvm",
            b"join its group", b"Permission denied")


# doctor

def checks_of(done):
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def test_doctor_is_content(host):
    done = host.run("doctor", "--json")
    checks = checks_of(done)
    assert done.returncode == 0, done.stdout
    assert (checks["accel"]["status"], checks["accel"]["note"]) == ("ok", "kvm")
    assert checks["kvm"]["status"] == "ok"


def test_doctor_says_what_is_missing_without_the_device(host, device):
    device.unlink()
    done = host.run("doctor", "--json")
    check = checks_of(done)["kvm"]
    assert done.returncode == 1, "nothing runs without it where kvm was recorded"
    assert check["status"] == "missing" and "No such file" in check["note"]
    assert "local-backend-up.sh" in check["remedy"]


def test_doctor_says_what_is_missing_without_permission(host, device):
    done = ordinary_user(["--clear-groups"], "doctor", "--json")
    check = checks_of(done)["kvm"]
    assert done.returncode == 1
    assert check["status"] == "missing" and "Permission denied" in check["note"] and "group" in check["remedy"]
    device.chmod(0o600)
    check = checks_of(host.run("doctor", "--json"))["kvm"]
    assert check["status"] == "missing" and "chgrp kvm /dev/kvm" in check["remedy"]
