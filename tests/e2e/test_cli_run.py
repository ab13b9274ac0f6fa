# SPDX-License-Identifier: Apache-2.0
"""The command line with real sandboxes: exact bytes, exit codes, JSON, signals, and bad input that must get a clear
error and lose nothing.  A boot costs seconds under emulation: what can share one does."""
import base64
import fcntl
import hashlib
import io
import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import termios
import textwrap

import jsonschema
import pytest

from conftest import Processes, build_dir, needed, read_to_end, wait_until

MIB = 1 << 20


@pytest.fixture(scope="session")
def validator(pytestconfig):
    schema = json.loads((pathlib.Path(__file__).parents[2] / "spec/run-result.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def as_json(sandbox, validator):
    """run --json: the valid result, the exit code, and what stood on standard error."""
    def run(*arguments, **options):
        done = sandbox.run("run", "--json", *arguments, **options)
        result = json.loads(done.stdout)
        validator.validate(result)
        assert done.stdout.count(b"\n") == 1 and done.stdout.endswith(b"\n")
        return result, done.returncode, done.stderr
    return run


def python(text):
    return ("python3", "-c", textwrap.dedent(text))


def shell(text):
    return ("/bin/sh", "-c", text)


def bytes_of(result, stream):
    text = result[stream]
    return base64.b64decode(text) if result["output_encoding"] == "base64" else text.encode()


def check_failed(done, code, *words):
    err = done.stderr.decode(errors="replace")
    assert done.returncode == code, err
    assert done.stdout == b""
    assert err.startswith("resoluto-sandbox: "), err
    for word in words:
        assert word in err, err
    assert "\x1b" not in err


def in_small_places(sandbox, size, variables, arguments, **options):
    """`resoluto-sandbox ARGUMENTS` where the folders of these variables are file systems of so many MiB: in a mount
    namespace of its own, so that nothing has to be cleaned up.  Returns the run and what was left in the folders."""
    mounts = "; ".join(f'mount -t tmpfs -o size={size}m,mode=0700 tmpfs "${name}"' for name in variables)
    left = "; ".join(f'find "${name}" -type f' for name in variables)
    command = f"{mounts}; {shlex.join([sandbox.cli, *map(str, arguments)])}; code=$?; {{ {left}; }} >&3; exit $code"
    with open(os.memfd_create("left"), "w+b") as file:
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", "exec 3>&%d; %s" % (
            file.fileno(), command)], env={**sandbox.env, **{k: str(v) for k, v in variables.items()}},
            capture_output=True, timeout=300, pass_fds=[file.fileno()], **options)
        file.seek(0)
        return done, file.read().decode().split()


# bytes

EXACT = r"""
import os
os.write(1, b"first\n\n\n")
os.write(2, b"error\r\n")
os.write(1, bytes(range(256)) * 300)
os.write(1, b"\xe2\x80\xa8 grave \xff\xfe \0 \0\n")
os.write(1, b'{"event": "close", "data": {}}\n')
os.write(2, b"\n")
os.write(1, b"x" * 200000)
os.write(2, "ünïcödé".encode() * 100)
os.write(1, b"\nno newline at the end")
"""
EXACT_OUT = (b"first\n\n\n" + bytes(range(256)) * 300 + b"\xe2\x80\xa8 grave \xff\xfe \0 \0\n"
             b'{"event": "close", "data": {}}\n' + b"x" * 200000 + b"\nno newline at the end")
EXACT_ERR = b"error\r\n" + b"\n" + "ünïcödé".encode() * 100


def test_the_programs_bytes_come_out_exactly(sandbox):
    done = sandbox.run("run", "--", *python(EXACT))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == EXACT_OUT
    assert done.stderr == EXACT_ERR, "nothing of ours where there is no terminal"


def test_the_same_bytes_in_json(as_json):
    result, code, err = as_json("--max-output", "2Mi", "--label", "who=me", "--timings", "--", *python(EXACT))
    assert code == 0 and result["ok"] and result["ran"]
    assert bytes_of(result, "stdout") == EXACT_OUT
    assert bytes_of(result, "stderr") == EXACT_ERR
    assert len(bytes_of(result, "output")) == len(EXACT_OUT) + len(EXACT_ERR)
    assert result["output_dropped_bytes"] == 0
    assert result["disposition"] == "completed" and result["reason"] == ""
    isolation = result["isolation"]
    assert isolation["own_kernel"] is True and isolation["verdict"] == "protected"
    assert isolation["accel"] in ("kvm", "tcg")
    host = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert isolation["guest_boot_id"] not in ("", host)
    assert result["timings_ms"]["total"] >= result["timings_ms"]["boot"] > 0
    assert re.search(rb"^total +\d+\.\d{3} s$", err, re.M)


def test_too_much_output_keeps_head_and_tail(as_json):
    result, code, _ = as_json("--max-output", "4Ki", "--", *python("""
        import os
        for i in range(100000): os.write(1, b"%06d\\n" % i)
    """))
    output = bytes_of(result, "output")
    assert code == 0
    assert output.startswith(b"000000\n000001\n") and output.endswith(b"099999\n")
    assert len(output) <= 5 * 1024
    assert result["output_dropped_bytes"] >= 7 * 100000 - 5 * 1024


def test_output_comes_at_once_and_input_in_lines(sandbox):
    """Each answer is seen before the next question is asked."""
    run = sandbox.start("run", "-i", "--", "cat")
    for i in range(20):
        run.stdin.write(b"line %d\n" % i)
        run.stdin.flush()
        assert run.stdout.readline() == b"line %d\n" % i
    run.stdin.write(b"the end")
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out, err) == (0, b"the end", b"")


def test_much_input_arrives_whole(sandbox, tmp_path):
    content = os.urandom(8 * MIB)
    path = tmp_path / "input"
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest().encode()
    done = sandbox.run("run", "--stdin", path, "--", "sha256sum")
    assert (done.returncode, done.stdout) == (0, digest + b"  -\n"), done.stderr
    done = sandbox.run("run", "--stdin", "-", "--", "sha256sum", input=content)
    assert (done.returncode, done.stdout) == (0, digest + b"  -\n"), done.stderr


def test_a_program_that_does_not_read_its_input_does_not_hang(sandbox):
    done = sandbox.run("run", "-i", "--", "head", "-c", "4", input=b"abcdefgh" * MIB)
    assert (done.returncode, done.stdout) == (0, b"abcd"), done.stderr
    done = sandbox.run("run", "--", "cat", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b""), "without -i there is nothing to read"


def test_a_reader_that_goes_away_stops_the_run(sandbox):
    run = sandbox.start("run", "--id", "cli-epipe", "--", "yes")
    assert run.stdout.read(1000) == b"y\n" * 500
    run.stdout.close()
    assert run.wait(timeout=120) == 128 + signal.SIGPIPE
    assert run.stderr.read() == b""
    assert not Processes.qemu_of("cli-epipe")
    assert sandbox.runs() == []


def test_a_closed_descriptor_is_not_taken_for_another_file(sandbox):
    """Number 1 went to the next descriptor that was opened: the bytes went there, and the run never ended."""
    done = sandbox.run("run", "--", "echo", "hi", timeout=60, preexec_fn=lambda: os.close(1))
    check_failed(done, 125, "output", "Bad file descriptor")
    done = sandbox.run("run", "-i", "--", "cat", timeout=60, stdin=subprocess.DEVNULL, preexec_fn=lambda: os.close(0))
    check_failed(done, 2, "input")
    assert sandbox.runs() == []


def test_a_parent_that_ignores_its_children_is_no_hindrance(sandbox):
    done = sandbox.run("run", "--disk", "64Mi", "--", "false",
                       preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_reader_that_stalls_can_be_interrupted(sandbox):
    """What it does not read waits in the run's directory; two requests to stop end the waiting for it."""
    run = sandbox.start("run", "--id", "cli-stall", "--", "yes")
    assert run.stdout.read(2) == b"y\n"

    def waiting():
        return int.from_bytes(fcntl.ioctl(run.stdout, termios.FIONREAD, bytes(4)), "little")
    wait_until(lambda: waiting() > 60000, "the pipe to be full")
    run.send_signal(signal.SIGINT)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert not Processes.qemu_of("cli-stall") and sandbox.runs() == []


def read_terminal(sandbox, *arguments, env=None):
    """What a terminal would get, and the exit code."""
    ours, theirs = pty.openpty()
    run = sandbox.start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    return read_to_end(ours), run.wait(timeout=60)


def on_screen(seen):
    """The lines as they stand on the screen in the end."""
    lines, line, column = [], [], 0
    for char in seen.decode():
        if char == "\n":
            lines, line, column = [*lines, "".join(line).rstrip()], [], 0
        elif char == "\r":
            column = 0
        else:
            line[column:column + 1] = [char]
            column += 1
    return [*lines, "".join(line).rstrip()]


def test_progress_on_a_terminal_is_gone_before_the_first_byte(sandbox):
    seen, code = read_terminal(sandbox, "run", "--", *shell("echo out; printf end"),
                               env={"NO_COLOR": "1"})
    assert code == 0
    assert b"\x1b" not in seen, "no colours, no escapes"
    assert b"boot the sandbox" in seen and seen.count(b"\r") >= 3, "there was progress, and it was wiped out"
    assert on_screen(seen) == ["out", "end"]
    quiet, code = read_terminal(sandbox, "run", "--quiet", "--", "echo", "out")
    assert (quiet, code) == (b"out\r\n", 0)


def test_a_person_is_told_once_what_was_not_copied(sandbox, tmp_path):
    (tmp_path / "node_modules/left").mkdir(parents=True)
    (tmp_path / "out").symlink_to("/etc/passwd")
    seen, code = read_terminal(sandbox, "run", "--workspace", tmp_path, "--", "true", env={"NO_COLOR": "1"})
    assert code == 0
    told = [line for line in on_screen(seen) if "not copied to the sandbox" in line]
    assert len(told) == 1 and re.search(r"not copied to the sandbox: .*1 .*1 ", told[0]), on_screen(seen)


# exit codes

SEGFAULT = "import os, signal; signal.signal(signal.SIGSEGV, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.parametrize("program, code, words", [
    (shell("exit 3"), 3, []),
    (shell("exit 255"), 255, []),
    (shell("kill -9 $$"), 137, ["killed by signal 9"]),
    (("python3", "-c", SEGFAULT), 139, ["killed by signal 11"]),
    (("no-such-program",), 127, ["not-found", "no-such-program"]),
    (("/etc/passwd",), 126, ["not-executable", "/etc/passwd"]),
    (("/",), 126, ["not-executable"]),
])
def test_exit_codes(sandbox, program, code, words):
    done = sandbox.run("run", "--", *program)
    assert done.returncode == code, done.stderr
    if words:
        check_failed(done, code, *words)
    else:
        assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("program, code, reason", [("no-such-program", 127, "not-found"), ("/etc/passwd", 126, "not-executable")])
def test_the_json_of_what_never_ran_is_the_librarys_and_the_exit_code_the_shells(as_json, program, code, reason):
    result, exit_code, _ = as_json("--", program)
    assert exit_code == code
    assert (result["ran"], result["reason"], result["exit_code"]) == (False, reason, 1)


def test_a_program_that_is_only_on_this_machine(sandbox, tmp_path):
    (tmp_path / "job").write_text("#!/bin/sh\necho done\n")
    (tmp_path / "job").chmod(0o755)
    check_failed(sandbox.run("run", "--", "./job", cwd=tmp_path), 127, "not-found: ./job", "no --workspace was given")
    done = sandbox.run("run", "--workspace", ".", "--", "./job", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")


def test_a_deadline(sandbox):
    """It counts from the start of the sandbox, so it leaves time for a boot on a busy machine."""
    run = sandbox.start("run", "--deadline", "30s", "--", *shell("trap '' TERM; echo up; while :; do sleep 1; done"))
    assert run.stdout.readline() == b"up\n", run.stderr.read()
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (124, b"") and b"deadline" in err


def test_out_of_memory_is_said(as_json):
    result, code, err = as_json("--memory", "192Mi", "--", *python("""
        data = []
        while True: data.append(bytearray(b"x" * (8 << 20)))
    """))
    assert code == 137 and result["signal"] == 9
    assert result["reason"] == "out-of-memory"
    assert b"out-of-memory" in err and b"--memory" in err


def test_a_full_file_system_in_the_guest(sandbox):
    done = sandbox.run("run", "--memory", "192Mi", "--", *shell("head -c 2000000000 /dev/zero > /tmp/x; rc=$?; rm -f /tmp/x; exit $rc"))
    assert done.returncode in (1, 137), done.stderr
    assert b"No space left" in done.stderr or b"out-of-memory" in done.stderr


# signals

def test_signals_reach_the_program(sandbox):
    run = sandbox.start("run", "--", *python("""
        import signal, sys
        names = ("SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGQUIT")
        signals = [getattr(signal, name) for name in names]
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # one that comes before the wait is kept for it
        print("up", flush=True)
        for _ in names:
            print(signal.Signals(signal.sigwait(signals)).name, flush=True)
        sys.exit(42)
    """))
    assert run.stdout.readline() == b"up\n", run.stderr.read()
    for name in ("SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGQUIT"):
        run.send_signal(getattr(signal, name))
        assert run.stdout.readline().strip() == name.encode()
    assert run.wait(timeout=60) == 42
    assert run.stderr.read() == b""


def test_ctrl_c_reaches_the_whole_group_and_yet_the_program_ends_by_itself(sandbox):
    """A terminal sends SIGINT to shim and QEMU too: they must not mind."""
    run = sandbox.start("run", "--", *shell("trap 'echo caught; exit 9' INT; echo up; while :; do sleep 0.1; done"),
                        start_new_session=True)
    assert run.stdout.readline() == b"up\n", run.stderr.read()
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out, err) == (9, b"caught\n", b"")


def test_a_signal_before_the_program_runs(sandbox):
    run = sandbox.start("run", "--id", "cli-early", "--", "sleep", "600")
    wait_until(lambda: Processes.qemu_of("cli-early") or run.poll() is not None, "the sandbox to boot")
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 128 + signal.SIGTERM, err
    assert not Processes.qemu_of("cli-early") and sandbox.runs() == []


# what the program gets

def test_environment_user_and_directory(sandbox, tmp_path):
    env_file = tmp_path / "a.env"
    env_file.write_text("# comment\nexport FILE='from file'\nBOTH=file\n")
    done = sandbox.run("run", "--env-file", env_file, "--env", "BOTH=option", "--env", "PASSED", "--workdir", "/tmp",
                       "--user", "1234:2345", "--", *python("""
        import json, os
        print(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "ids": [os.getuid(), os.getgid()],
                          "caps": [l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")]}))
    """), env={"PASSED": "from here", "NOT_PASSED": "secret"})
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["env"]["FILE"] == "from file"
    assert seen["env"]["BOTH"] == "option"
    assert seen["env"]["PASSED"] == "from here"
    assert "NOT_PASSED" not in seen["env"]
    assert not [name for name in seen["env"] if name.startswith("RESOLUTO_")]
    assert seen["cwd"] == "/tmp" and seen["ids"] == [1234, 2345]
    assert all(int(caps, 16) == 0 for caps in seen["caps"])


def handles(pid, signo):
    caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]
    return int(caught, 16) & 1 << signo - 1


@pytest.mark.parametrize("option", ["--env-file", "--egress-file"])
def test_a_file_that_is_a_pipe_is_waited_for_and_can_be_stopped(sandbox, tmp_path, option):
    """What `--env-file <(program)` is to us."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run = sandbox.start("run", option, pipe, "--", "true")
    with pipe.open("wb"):  # it is open at both ends, so it is waited for
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGINT, err
    assert sandbox.runs() == []
    run = sandbox.start("run", option, pipe, "--", *shell("echo $LATE"))
    wait_until(lambda: handles(run.pid, signal.SIGWINCH), "the handlers of signals")
    run.send_signal(signal.SIGWINCH)  # somebody resized the window: that is no end of what is waited for
    pipe.write_text({"--env-file": "LATE=came\n", "--egress-file": "example.com\n"}[option])
    out, err = run.communicate(timeout=300)
    assert (run.returncode, out) == (0, {"--env-file": b"came\n", "--egress-file": b"\n"}[option]), err


def test_hooks(sandbox, tmp_path):
    done = sandbox.run("run", "--setup", "echo prepared > /tmp/note && id -u >> /tmp/note", "--cleanup",
                       '["/bin/sh", "-c", "exit 5"]', "--", *shell("cat /tmp/note; exit 4"))
    assert (done.returncode, done.stdout) == (4, b"prepared\n1000\n"), done.stderr
    done = sandbox.run("run", "--setup", "echo broken >&2; exit 9", "--", "echo", "never")
    check_failed(done, 125, "setup-failed")


def test_input_waits_behind_the_setup_hook(sandbox):
    """The hook stays for a moment in which input can come: nobody tells it that some has."""
    lines = b"".join(b"%d\n" % i for i in range(100000))
    done = sandbox.run("run", "-i", "--setup", "cat; sleep 0.3", "--", "cat", input=lines)
    assert (done.returncode, done.stdout) == (0, lines), done.stderr


def test_what_the_hook_left_running_ends_where_the_program_cannot_start(sandbox):
    done = sandbox.run("run", "--keep", "--id", "hook-left", "--setup", "sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/pid",
                       "--cleanup", "kill -0 $(cat /tmp/pid) && echo alive; echo done", "--", "no-such-program")
    check_failed(done, 127, "no-such-program")
    events = "".join(path.read_text() for path in (sandbox.state / "runs/hook-left").rglob("events-*"))
    assert sandbox.run("rm", "hook-left").returncode == 0
    assert '"line":"done"' in events and '"line":"alive"' not in events, events


def test_a_quiet_program_is_no_silent_sandbox(sandbox):
    done = sandbox.run("run", "--dead-after", "10s", "--", "sleep", "24")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_limit_of_file_sizes_is_told(sandbox):
    done = sandbox.run("run", "--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**34, 2**34)))
    check_failed(done, 125, "ulimit -f")
    assert sandbox.runs() == []


def test_a_run_that_never_was_is_not_kept(sandbox):
    done = sandbox.run("run", "--keep", "--id", "never-was", "--image", "no-such-image", "--", "true")
    assert done.returncode == 125, done.stderr
    assert sandbox.runs() == []


LOSE = """
import os
with open("/tmp/big", "wb") as big:
    for i in range(300):
        big.write(bytes([i % 251]) * 2**20)
os.sync()
os.unlink("/tmp/big")
os.sync()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_what_the_scratch_disk_lost_is_told(sandbox, tmp_path):
    """The program hears nothing of it: files are written out later.  The space is there again at its end."""
    done, _ = in_small_places(sandbox, 96, {"RESOLUTO_STATE_DIR": tmp_path},
                              ["run", "--json", "--disk", "1Gi", "--", *python(LOSE)])
    result = json.loads(done.stdout)
    assert (result["ok"], result["exit_code"], result["reason"]) == (False, 125, "guest-disk-full"), result


COUNT_SIZES = """
import os, sys
print(len("".join(sys.argv[1:])), sum(len(v) for k, v in os.environ.items() if k.startswith("LARGE")))
"""


def test_a_large_command_line_and_environment(sandbox, tmp_path):
    """2 MB of arguments and 1 MB of variables work; one string over the kernel's limit is 126 and says so."""
    env_file = tmp_path / "large.env"
    env_file.write_text("".join(f"LARGE{i}={'v' * 100000}\n" for i in range(10)))
    script = tmp_path / "run.py"  # so that a failure does not print the arguments
    script.write_text(textwrap.dedent(f"""
        import os, resource
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, ({64 * MIB}, hard))
        os.execv({sandbox.cli!r}, [{sandbox.cli!r}, "run", "--env-file", {str(env_file)!r}, "--", "python3", "-c",
                                   {COUNT_SIZES!r}, *["a" * 100000] * 20])
    """))
    done = subprocess.run([sys.executable, script], env=sandbox.env, capture_output=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, b"2000000 1000000\n"), done.stderr
    env_file.write_text(f"HUGE={'v' * 200000}\n")
    done = sandbox.run("run", "--env-file", env_file, "--", "true")
    check_failed(done, 126, "arguments-too-large")
    assert re.search(rb"\d{5,}", done.stderr), "the sizes are told"


# workspaces and outputs

@pytest.fixture
def odd_workspace(tmp_path):
    """Everything a folder can hold."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "plain.txt").write_text("plain\n")
    (work / "empty").mkdir()
    os.mkfifo(work / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(work / "socket"))
    listener.close()
    if os.geteuid() == 0:
        os.mknod(work / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (work / "absolute").symlink_to("/etc/passwd")
    (work / "climbing").symlink_to("../../outside")
    (work / "inside").symlink_to("plain.txt")
    (work / "node_modules").mkdir()
    (work / "node_modules/left.js").write_text("out")
    with open(os.fsencode(work) + b"/not-utf8-\xff\xfe", "wb") as file:
        file.write(b"bytes\n")
    with open(work / "sparse", "wb") as file:
        file.truncate(10 << 30)
        file.seek(5 << 30)
        file.write(b"needle")
    script = work / "run.sh"
    script.write_text("#!/bin/sh\necho executable\n")
    script.chmod(0o755)
    return work


def test_a_workspace_with_everything_in_it(sandbox, odd_workspace, tmp_path):
    outputs = tmp_path / "outputs"
    done = sandbox.run("run", "--workspace", odd_workspace, "--output", "made/**", "--output-dir", outputs, "--",
                       *python(r"""
        import os, subprocess
        for name in sorted(os.listdir(b".")): print(name, oct(os.lstat(name).st_mode & 0o7777))
        print(os.stat("sparse").st_size, os.stat("sparse").st_blocks < 10000)
        with open("sparse", "rb") as file:
            file.seek(5 << 30); print(file.read(6))
        print(open("inside").read(), end="")
        print(subprocess.run("./run.sh", capture_output=True).stdout)
        os.makedirs(b"made/deep")
        open(b"made/deep/odd-\xff", "wb").write(b"odd")
        os.symlink("/etc/passwd", "made/link-out")
        os.symlink("deep", "made/link-in")
    """))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    names = [line.rsplit(" ", 1)[0] for line in lines if line.startswith("b'")]
    assert names[:6] == ["b'empty'", "b'inside'", "b'not-utf8-\\xff\\xfe'", "b'plain.txt'", "b'run.sh'", "b'sparse'"]
    assert "10737418240 True" in lines and "b'needle'" in lines
    assert "plain" in lines and "b'executable\\n'" in lines
    assert open(os.fsencode(outputs) + b"/made/deep/odd-\xff", "rb").read() == b"odd"
    assert not os.path.lexists(outputs / "made/link-out"), "links that point out do not come back"
    assert (odd_workspace / "plain.txt").read_text() == "plain\n"
    assert not (odd_workspace / "made").exists()


def test_fifty_thousand_files(sandbox, tmp_path):
    work = tmp_path / "many"
    for folder in range(50):
        (work / f"d{folder}").mkdir(parents=True)
        for file in range(1000):
            (work / f"d{folder}/f{file}").write_bytes(b"x")
    done = sandbox.run("run", "--workspace", work, "--", *shell("find . -type f | wc -l"))
    assert (done.returncode, done.stdout.strip()) == (0, b"50000"), done.stderr


def test_a_workspace_that_cannot_be_read_in_places_is_refused(sandbox, tmp_path):
    """As root everything can be read, so an ordinary user asks; the entry is named, and nothing is started."""
    work, state, program = tmp_path / "work", tmp_path / "state", tmp_path / "resoluto-sandbox"
    work.mkdir(mode=0o755)
    (work / "open").write_text("x")
    (work / "closed").write_text("x")
    (work / "closed").chmod(0)
    state.mkdir(mode=0o700)
    shutil.copy(sandbox.cli, program)
    # Beside it: the build folder may lie where an ordinary user cannot look.
    shutil.copy(build_dir() / "src/shim/resoluto-shim", tmp_path)
    config = tmp_path / "local.env"
    shutil.copy(needed("RESOLUTO_LOCAL_ENV"), config)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid():
            path.chmod(path.stat().st_mode | 0o055)
    user = {}
    if os.geteuid() == 0:
        os.chown(state, 54321, 54321)
        user = {"user": 54321, "group": 54321, "extra_groups": []}
    done = subprocess.run([program, "run", "--workspace", work, "--", "true"], capture_output=True, timeout=300,
                          env={**sandbox.env, "RESOLUTO_STATE_DIR": str(state), "RESOLUTO_LOCAL_ENV": str(config),
                               "RESOLUTO_LIBEXEC_DIR": str(tmp_path), "HOME": str(tmp_path)}, **user)
    check_failed(done, 125, "refused", "closed")
    assert list((state / "runs").iterdir()) == []


def test_outputs_come_back_whatever_the_exit_code(as_json, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.txt").write_text("old")
    result, code, _ = as_json("--workspace", work, "--output", "*.txt", "--output", "result.json", "--",
                              *shell("echo new > new.txt; echo '{\"answer\": 42}' > result.json; exit 6"))
    assert code == 6
    assert result["artifacts"] == ["new.txt", "old.txt", "result.json"]
    assert result["result"] == {"answer": 42}
    assert (work / "new.txt").read_text() == "new\n"


def test_keep_leaves_the_run_and_nothing_else_does(sandbox):
    done = sandbox.run("run", "--keep", "--id", "cli-keep", "--", "echo", "kept")
    assert (done.returncode, done.stdout) == (0, b"kept\n")
    assert sandbox.runs() == ["cli-keep"]
    again = sandbox.run("run", "--id", "cli-keep", "--", "true")
    check_failed(again, 125, "cli-keep", "already")
    assert sandbox.run("rm", "cli-keep").returncode == 0
    assert sandbox.runs() == []


def test_credentials_are_taken_out_and_counted(as_json):
    secret = "ghp_" + "a1B2" * 9
    result, code, _ = as_json("--", "echo", f"token {secret} end")
    assert code == 0
    assert secret.encode() not in bytes_of(result, "output") and result["redactions"] == 1
    result, code, _ = as_json("--no-redact-patterns", "--", "echo", f"token {secret} end")
    assert bytes_of(result, "output") == f"token {secret} end\n".encode() and result["redactions"] == 0
    result, code, complaint = as_json("--", f"/{secret}")
    assert (code, result["reason"], result["redactions"]) == (127, "not-found", 1), result
    assert secret not in json.dumps(result) and secret.encode() not in complaint


# images

def tar_of(path, *members):
    """members: (name, kind, content or target)."""
    with tarfile.open(path, "w") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                info.mode = 0o755
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content or ""
                tar.addfile(info)
    return path


@pytest.mark.parametrize("ref, words", [
    ("no-such-image:1", ["nor in localhost:5000 (", "); another registry's image is written out",
                         "docker.io/library/no-such-image:1\n"]),
    ("resoluto-sandbox-base:none", ["nor in localhost:5000", "bash scripts/local-backend-up.sh makes it\n"]),
    ("sha256:" + "0" * 64, ["there is no such image in the cache; image ls lists them\n"]),
    ("localhost:1/x:1", ["localhost:1/x:1: pinging container registry", ": connection refused\n"]),
    ("docker-archive:{tmp}/plain.tar", ["no archive of docker save", "tar:FILE for a plain root file system\n"]),
    ("oci-archive:{tmp}/plain.tar", ["no archive of an OCI layout", "tar:FILE for a plain root file system\n"]),
    ("oci:{tmp}/plain", ["{tmp}/plain is no OCI layout: it has no index.json", "rootfs:DIR for a plain root directory\n"]),
    ("dir:{tmp}/plain", ["{tmp}/plain is no directory of skopeo's", "rootfs:DIR for a plain root directory\n"]),
    ("oci:{tmp}/none", ["none"]),
    ("docker-archive:{tmp}/none.tar", ["none.tar"]),
    ("tar:{tmp}/none.tar", ["none.tar", "No such file or directory"]),
    ("rootfs:{tmp}/none", ["none", "No such file or directory"]),
    ("dir:{tmp}/none", ["none"]),
    ("tar:{tmp}/garbage.tar", ["garbage.tar"]),
    ("localhost:1/x@sha256:" + "0" * 64, ["localhost:1"]),
])
def test_an_image_that_is_not_there(sandbox, tmp_path, ref, words):
    (tmp_path / "garbage.tar").write_bytes(os.urandom(100000))
    (tmp_path / "plain/bin").mkdir(parents=True)
    tar_of(tmp_path / "plain.tar", ("bin/x", tarfile.REGTYPE, b"x"))
    done = sandbox.run("run", "--image", ref.format(tmp=tmp_path), "--", "true")
    check_failed(done, 125, *(word.format(tmp=tmp_path) for word in words))
    assert sandbox.runs() == []


@pytest.mark.parametrize("members", [
    [("../escape", tarfile.REGTYPE, b"x")],
    [("a/../../escape", tarfile.REGTYPE, b"x")],
    [("link", tarfile.SYMTYPE, "/tmp"), ("link/escape", tarfile.REGTYPE, b"x")],
    [("hard", tarfile.LNKTYPE, "../../etc/passwd")],
], ids=["climbing", "climbing inside", "through a link", "hard link out"])
def test_a_hostile_archive_writes_nothing_outside(sandbox, tmp_path, members):
    """Refused, or taken as what it means inside of the image: never a file of the host."""
    path = tar_of(tmp_path / "hostile.tar", ("bin/x", tarfile.REGTYPE, b"x"), *members)
    done = sandbox.run("image", "import", f"tar:{path}", "hostile:1", env={"RESOLUTO_CACHE_DIR": str(tmp_path / "cache")})
    assert done.returncode in (0, 125), done.stderr
    for place in ("/tmp/escape", tmp_path / "escape", tmp_path.parent / "escape", "/escape"):
        assert not os.path.lexists(place)
    if done.returncode:
        check_failed(done, 125, "hostile.tar")


def test_an_image_with_only_a_static_program(sandbox, tmp_path):
    source = tmp_path / "hello.c"
    source.write_text('#include <unistd.h>\nint main(void) { return write(1, "static\\n", 7) == 7 ? 9 : 1; }\n')
    subprocess.run(["cc", "-static", "-O2", "-o", tmp_path / "hello", source], check=True)
    path = tar_of(tmp_path / "static.tar", ("hello", tarfile.REGTYPE, (tmp_path / "hello").read_bytes()))
    done = sandbox.run("run", "--image", f"tar:{path}", "--", "/hello")
    assert (done.returncode, done.stdout) == (9, b"static\n"), done.stderr


def test_images_have_names_until_they_are_removed(sandbox, tmp_path):
    env = {"RESOLUTO_CACHE_DIR": str(tmp_path / "cache")}
    path = tar_of(tmp_path / "x.tar", ("bin/x", tarfile.REGTYPE, b"x" * 1000))
    assert sandbox.run("image", "import", f"tar:{path}", "mine:1", env=env).returncode == 0
    listed = json.loads(sandbox.run("image", "ls", "--json", env=env).stdout)
    mine = [image for image in listed if image["ref"].endswith("mine:1")]
    assert len(mine) == 1 and re.fullmatch(r"sha256:[0-9a-f]{64}", mine[0]["digest"])
    assert pathlib.Path(mine[0]["path"]).stat().st_size == mine[0]["size_bytes"]
    assert b"mine:1" in sandbox.run("image", "ls", env=env).stdout
    for image in listed:
        if image["digest"] == mine[0]["digest"]:
            assert sandbox.run("image", "rm", image["ref"], env=env).returncode == 0
    assert sandbox.run("image", "prune", env=env).returncode == 0
    assert not list((tmp_path / "cache").rglob("*.squashfs"))
    check_failed(sandbox.run("image", "rm", "mine:1", env=env), 125, "mine:1")


# what the machine lacks

@pytest.mark.parametrize("env, words", [
    ({"RESOLUTO_LIBEXEC_DIR": "/no/such"}, "resoluto-shim"),
    ({"RESOLUTO_LOCAL_QEMU": "", "PATH": "/no/such"}, "qemu-system"),
    ({"RESOLUTO_LOCAL_ENV": "/dev/null/x"}, "/dev/null/x"),
], ids=["shim", "QEMU", "configuration"])
@pytest.mark.parametrize("how", [[], ["--detach"]], ids=["run", "detach"])
def test_what_cannot_be_claimed_is_refused_in_json_too(as_json, sandbox, env, words, how):
    result, code, err = as_json(*how, "--id", "unclaimed", "--", "true", env=env)
    assert code == 125 and words in err.decode()
    assert (result["run_id"], result["disposition"], result["reason"]) == ("unclaimed", "refused", "refused")
    assert (result["ran"], result["exit_code"], result["isolation"]["own_kernel"]) == (False, 1, None)
    assert sandbox.runs() == []


@pytest.mark.parametrize("variable", ["RESOLUTO_LOCAL_KERNEL", "RESOLUTO_LOCAL_INITRD", "RESOLUTO_LOCAL_QEMU"])
def test_a_file_that_is_not_there(sandbox, variable):
    check_failed(sandbox.run("run", "--", "true", env={variable: "/no/such/file"}), 125, "/no/such/file",
                 "No such file or directory")
    assert sandbox.runs() == []


def test_a_kernel_that_is_cut_off(sandbox, tmp_path):
    whole = pathlib.Path(needed("RESOLUTO_TEST_KERNEL")).read_bytes()
    cut = tmp_path / "vmlinux"
    cut.write_bytes(whole[:len(whole) // 3])
    done = sandbox.run("run", "--", "true", env={"RESOLUTO_LOCAL_KERNEL": str(cut)})
    check_failed(done, 125)
    assert re.search(rb"boot-failed|emulator-failed|guest-panic|guest-reset|refused", done.stderr), done.stderr
    assert sandbox.runs() == []


def test_an_initramfs_that_is_cut_off(sandbox, tmp_path):
    whole = pathlib.Path(needed("RESOLUTO_TEST_INITRD")).read_bytes()
    cut = tmp_path / "initrd.img"
    for size in (len(whole) // 2, len(whole) - 8):
        cut.write_bytes(whole[:size])
        done = sandbox.run("run", "--", "true", env={"RESOLUTO_LOCAL_INITRD": str(cut)})
        check_failed(done, 125, f"the guest initramfs {cut} is damaged or truncated", "bash scripts/local-backend-up.sh")
    assert sandbox.runs() == []
    told = json.loads(sandbox.run("doctor", "--json", env={"RESOLUTO_LOCAL_INITRD": str(cut)}).stdout)
    found = [check for check in told["checks"] if check["id"] == "initrd"]
    assert found[0]["status"] == "missing" and "cut off" in found[0]["note"], found


def test_a_guest_kernel_that_panics(as_json, tmp_path):
    """An initramfs without an init: the kernel has nothing to start."""
    empty = tmp_path / "initrd.img"
    name = b"TRAILER!!!\0"
    empty.write_bytes((b"070701" + b"0" * 88 + b"%08x" % len(name) + b"0" * 8 + name).ljust(512, b"\0"))
    result, code, err = as_json("--", "true", env={"RESOLUTO_LOCAL_INITRD": str(empty)})
    assert code == 125 and not result["ran"]
    assert result["reason"] in ("guest-panic", "boot-failed")
    assert "Kernel panic" in result["substrate_logs"]
    assert b"Kernel panic" in err and b"\x1b" not in err, "the end of the console is shown, made harmless"


def test_a_cached_image_that_is_cut_off(sandbox, tmp_path):
    env = {"RESOLUTO_CACHE_DIR": str(tmp_path / "cache")}
    path = tar_of(tmp_path / "x.tar", ("bin/x", tarfile.REGTYPE, os.urandom(1 * MIB)))
    for name in ("cut:1", "resoluto-sandbox-base:x"):
        assert sandbox.run("image", "import", f"tar:{path}", name, env=env).returncode == 0
    squashfs = next((tmp_path / "cache").rglob("*.squashfs"))
    squashfs.chmod(0o644)
    os.truncate(squashfs, 200000)
    digest = json.loads(squashfs.with_suffix(".json").read_text())["digest"]
    for ref, words in (("cut:1", "image import REF cut:1"), (digest, "image import REF NAME"),
                       ("resoluto-sandbox-base:x", "bash scripts/local-backend-up.sh makes it again")):
        done = sandbox.run("run", "--image", ref, "--", "/bin/x", env=env)
        check_failed(done, 125, "truncated: 200000 of", words)
    assert sandbox.runs() == []
    assert sandbox.run("image", "import", f"tar:{path}", "cut:1", env=env).returncode == 0
    assert squashfs.stat().st_size > MIB, "it was made again"


@pytest.mark.parametrize("size, words", [("16Mi", ["memory"]), ("1Pi", ["memory"])], ids=["small", "large"])
def test_memory_that_cannot_be(sandbox, size, words):
    done = sandbox.run("run", "--memory", size, "--", "true")
    check_failed(done, 2, *words)
    assert sandbox.runs() == []


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


@needs_root
def test_a_cache_that_is_full(sandbox, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    path = tar_of(tmp_path / "large.tar", ("large", tarfile.REGTYPE, os.urandom(16 * MIB)))
    done, left = in_small_places(sandbox, 4, {"RESOLUTO_CACHE_DIR": cache},
                                 ["image", "import", f"tar:{path}", "large:1"])
    check_failed(done, 125, "No space left on device")
    assert not [name for name in left if "squashfs" in name or "part" in name], left


@needs_root
def test_the_place_that_is_full_is_named(sandbox, tmp_path):
    cache, out = tmp_path / "cache", tmp_path / "out"
    cache.mkdir()
    out.mkdir()
    path = tar_of(tmp_path / "large.tar", ("large", tarfile.REGTYPE, os.urandom(16 * MIB)))
    done, _ = in_small_places(sandbox, 4, {"RESOLUTO_CACHE_DIR": cache}, ["run", "--image", f"tar:{path}", "--", "true"])
    check_failed(done, 125, f"free space in {cache}, or set RESOLUTO_CACHE_DIR")
    assert b"STATE_DIR" not in done.stderr
    done, _ = in_small_places(sandbox, 4, {"OUT": out}, [
        "run", "--output", "large", "--output-dir", out, "--", *shell("head -c 16000000 /dev/urandom >large")])
    check_failed(done, 125, "store-full", "No space left on device", f"free space in {out}")
    assert b"STATE_DIR" not in done.stderr


@needs_root
def test_a_conduit_that_is_full(sandbox, tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    done, left = in_small_places(sandbox, 8, {"RESOLUTO_STATE_DIR": state},
                                 ["run", "--", *shell("head -c 100000000 /dev/zero | tr '\\0' x; echo the end")])
    assert done.returncode == 125, done.stderr[-500:]
    assert b"store-full" in done.stderr and b"free space, or set RESOLUTO_STATE_DIR" in done.stderr
    assert not [name for name in left if "/runs/" in name], left


# doctor of a machine that works

def test_doctor_is_content(sandbox):
    done = sandbox.run("doctor", "--fix")
    assert done.returncode == 0, done.stdout
    assert b"[MISSING]" not in done.stdout
    told = json.loads(sandbox.run("doctor", "--json").stdout)
    assert told["ok"] is True
