# SPDX-License-Identifier: Apache-2.0
"""Output and input of a program, exactly: its last bytes whatever ends it, what processes it leaves behind still write,
readers that are slow or look at one stream only, bounds that say what they left out, input that nobody reads.
docs/design/output.md; the long versions are in tests/soak."""
import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import threading

import pytest

from conftest import Processes, build_dir, kernel_environment, wait_until
from newc import in_place_of_runner
from output_programs import FORGED, ODD, ODD_BYTES, init_of, peak_kib

MIB = 1 << 20
# Of a CLI or shim, whatever passes through it; AddressSanitizer keeps a quarter of a gibibyte of what was freed.
RSS_MAX_KIB = 512 * 1024 if "ASAN_OPTIONS" in os.environ else 24 * 1024


def shell(text):
    return ("/bin/sh", "-c", text)


def python(text):
    return ("python3", "-c", textwrap.dedent(text))


@pytest.fixture(scope="module")
def built():
    return kernel_environment("built")


def run_json(sandbox, *arguments, **options):
    done = sandbox.run("run", "--json", *arguments, **options)
    return json.loads(done.stdout), done


def bytes_of(result, stream):
    text = result[stream]
    return base64.b64decode(text) if result["output_encoding"] == "base64" else text.encode()


# the last bytes

BIG_TAIL = MIB + 17  # more than pipes and chunks hold on the way


@pytest.mark.parametrize("end, code", [("exit 0", 0), ("exit 1", 1), ("kill -9 $$", 137)])
def test_the_last_bytes_are_there(sandbox, built, end, code):
    """Small tails many times, since a race would lose one now and then; and one that fills every buffer on the way."""
    for number in range(3):
        want = f"{number} the last line\nand its end".encode()
        done = sandbox.run("run", "--", *shell(f"printf '{number} the last line\\nand its end'; printf err >&2; {end}"), env=built)
        assert (done.returncode, done.stdout) == (code, want), done.stderr
        assert done.stderr.startswith(b"err") and (done.stderr == b"err") == (code < 128)
    big = f"head -c {BIG_TAIL} /dev/zero | tr '\\0' x"
    done = sandbox.run("run", "--", *shell(f"{big}; {big} >&2; printf last; {end}"), env=built)
    assert (done.returncode, done.stdout) == (code, b"x" * BIG_TAIL + b"last")
    assert done.stderr.startswith(b"x" * BIG_TAIL)


def test_the_last_bytes_of_a_program_without_memory(sandbox, kernel):
    result, done = run_json(sandbox, "--memory", "192Mi", "--max-output", "2Mi", "--", *python("""
        import sys
        sys.stdout.write("before\\n" * 20000 + "last words")
        sys.stdout.flush()
        data = []
        while True: data.append(bytearray(b"x" * (8 << 20)))
    """), env=kernel)
    assert (done.returncode, result["reason"], result["output_is_complete"]) == (137, "out-of-memory", True)
    assert result["stdout"] == "before\n" * 20000 + "last words"


def test_the_last_bytes_before_a_machine_is_switched_off(sandbox, kernel, tmp_path):
    """By root of the guest, who alone can.  All that was written in time is there, and nobody calls it complete."""
    plain = pathlib.Path(kernel["RESOLUTO_LOCAL_INITRD"]).read_bytes()
    initrd = tmp_path / "initrd.img"
    initrd.write_bytes(plain + in_place_of_runner((build_dir() / "tests/vm/guest_cut").read_bytes(), runner=init_of(plain)))
    initrd.chmod(0o644)
    result, done = run_json(sandbox, "--max-output", "1Mi", "--", *shell("head -c 300000 /dev/zero | tr '\\0' x; echo; printf 'last words'; exec sleep 71"),
                            env={**kernel, "RESOLUTO_LOCAL_INITRD": str(initrd)})
    assert (done.returncode, result["reason"], result["ran"]) == (125, "guest-power-off", True), done.stderr
    assert result["stdout"] == "x" * 300000 + "\nlast words"
    assert result["output_is_complete"] is False and result["output_dropped_bytes"] == 0


@pytest.mark.parametrize("how, code", [("kill", 137), ("qemu", 125)])
def test_endless_output_at_the_moment_of_a_kill(sandbox, built, how, code):
    """Whole lines up to somewhere, none twice; complete only if the sandbox itself says so."""
    run_id = f"out-{how}"
    run = sandbox.start("run", "--id", run_id, "--keep", "--", *python("""
        import os
        number = 0
        while True:
            os.write(1, b"".join(b"%d\\n" % n for n in range(number, number + 1000)))
            number += 1000
    """), env=built)
    seen = run.stdout.read(1 << 16)
    if how == "kill":
        assert sandbox.run("kill", "--signal", "KILL", run_id).returncode == 0
    else:
        for pid in Processes.qemu_of(run_id):
            os.kill(pid, signal.SIGKILL)
    rest, err = run.stdout.read(), run.stderr.read()
    assert run.wait(timeout=60) == code, err
    lines = (seen + rest).split(b"\n")
    torn = lines.pop()
    assert lines == [b"%d" % n for n in range(len(lines))]
    assert (b"%d" % len(lines)).startswith(torn)
    waited = json.loads(sandbox.run("wait", "--json", run_id).stdout)
    assert waited["output_is_complete"] is (how == "kill")
    assert sandbox.run("logs", run_id).stdout == seen + rest, "what was shown is what is kept"
    assert sandbox.run("rm", run_id).returncode == 0


# what is left behind

def test_a_process_that_keeps_the_output_open_is_cut_off_and_that_is_said(sandbox, built):
    forever = "setsid sh -c 'while :; do echo more; : > /tmp/up; sleep 0.05; done' & while [ ! -e /tmp/up ]; do sleep 0.02; done; echo end; exit 4"
    done = sandbox.run("run", "--drain-timeout", "600ms", "--", *shell(forever), env=built)
    assert done.returncode == 4, "the program's own code"
    assert set(done.stdout.split()) == {b"end", b"more"}
    assert re.fullmatch(rb"resoluto-sandbox: output-incomplete: [^\n]*--drain-timeout[^\n]*\n", done.stderr), done.stderr
    # silent, killed by a signal, as JSON
    result, done = run_json(sandbox, "--drain-timeout", "200ms", "--", *shell("sleep 1000 & printf early; kill -9 $$"), env=built)
    assert (result["exit_code"], result["signal"], result["reason"], result["disposition"]) == (137, 9, "", "completed")
    assert (result["output"], result["output_is_complete"]) == ("early", False)
    assert [w for w in result["warnings"] if w.startswith("output-incomplete: ")]
    assert done.stderr.count(b"output-incomplete") == 1
    # those who come later are told, too
    run_id = sandbox.run("run", "--detach", "--drain-timeout", "200ms", "--", *shell("sleep 1000 & echo early"), env=built).stdout.decode().strip()
    waited = sandbox.run("wait", run_id)
    attached = sandbox.run("attach", run_id)
    assert (waited.returncode, waited.stdout, attached.returncode, attached.stdout) == (0, b"", 0, b"early\n")
    for done in (waited, attached):
        assert re.fullmatch(rb"resoluto-sandbox: output-incomplete: [^\n]*\n", done.stderr)
    assert sandbox.run("rm", run_id).returncode == 0


def test_a_process_that_ends_in_time_is_waited_for(sandbox, built):
    done = sandbox.run("run", "--drain-timeout", "10m", "--", *shell("(sleep 0.5; echo late; echo later >&2) & echo early"), env=built)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"early\nlate\n", b"later\n")


def test_sigkill_ends_a_long_drain(sandbox, built):
    """The code stays that of the program, which has ended."""
    job = "(while kill -0 $$; do sleep 0.02; done 2>/dev/null; echo alone; exec sleep 1000) & exit 5"
    run = sandbox.start("run", "--id", "out-drain", "--drain-timeout", "10m", "--", *shell(job), env=built)
    assert run.stdout.readline() == b"alone\n", run.stderr.read()
    assert sandbox.run("kill", "--signal", "TERM", "out-drain").returncode == 0
    assert sandbox.run("kill", "--signal", "KILL", "out-drain").returncode == 0
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out, err) == (5, b"", b"")


# any bytes

def test_odd_bytes_and_long_lines(sandbox, built):
    """What passed the pipe is what logs and attach tell later, each stream by itself."""
    done = sandbox.run("run", "--id", "out-odd", "--keep", "--", "python3", "-c", ODD, env=built)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout == ODD_BYTES
    assert done.stderr == FORGED
    assert sandbox.run("logs", "out-odd", "--stream", "stdout").stdout == ODD_BYTES
    attached = sandbox.run("attach", "out-odd")
    assert (attached.stdout, attached.stderr) == (ODD_BYTES, FORGED)
    waited = json.loads(sandbox.run("wait", "--json", "--max-output", "16Mi", "out-odd").stdout)
    assert bytes_of(waited, "stdout") == ODD_BYTES and bytes_of(waited, "stderr") == FORGED
    assert waited["output_is_complete"] is True and waited["output_dropped_bytes"] == 0
    assert sandbox.run("rm", "out-odd").returncode == 0


# readers

def test_nobody_reads(sandbox, built):
    """The program runs to its end, what it wrote waits on the disk, no process of ours grows; an attached reader
    that stands still hinders nobody, and goes on where it was."""
    size = 6 * MIB
    job = f"yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c {size}; echo done >&2"
    run = sandbox.start("run", "--id", "out-unread", "--keep", "--", *shell(job), env=built)
    wait_until(lambda: "out-unread" in sandbox.runs(), "the run")
    stuck = sandbox.start("attach", "out-unread", env=built)
    head = stuck.stdout.read(10000)
    shims = [p for p in Processes.children(run.pid) if b"resoluto-shim" in Processes.argv(p)[0]]
    assert len(shims) == 1
    waiting, peaks = sandbox.start("wait", "out-unread"), {}

    def has_ended():
        for pid in [run.pid, stuck.pid, *shims]:
            peaks[pid] = max(peaks.get(pid, 0), peak_kib(pid))
        return waiting.poll() is not None
    wait_until(has_ended, "the program's end")
    assert waiting.returncode == 0
    assert min(peaks.values()) > 0 and max(peaks.values()) < RSS_MAX_KIB, peaks
    assert run.poll() is None and stuck.poll() is None, "both stand before their full pipes"
    want = hashlib.sha256((b"0123456789abcdef" * 3 + b"0123456789abcde\n") * (size // 64)).hexdigest()
    out = stuck.stdout.read()
    assert stuck.wait(timeout=60) == 0 and hashlib.sha256(head + out).hexdigest() == want
    out, err = run.communicate(timeout=120)
    assert (run.returncode, hashlib.sha256(out).hexdigest(), err) == (0, want, b"done\n")
    assert sandbox.run("rm", "out-unread").returncode == 0


def test_one_stream_alone_can_be_read(sandbox, built):
    """More than every pipe takes on the one that is not: with logs nothing waits for it."""
    job = "for i in 1 2 3 4 5 6 7 8 9; do head -c 131072 /dev/zero | tr '\\0' x; head -c 65536 /dev/zero | tr '\\0' y >&2; done; echo end >&2"
    run_id = sandbox.run("run", "--detach", "--", *shell(job), env=built).stdout.decode().strip()
    for stream, want in (("stderr", b"y" * 9 * 65536 + b"end\n"), ("stdout", b"x" * 9 * 131072)):
        done = sandbox.run("logs", "--follow", "--stream", stream, run_id)
        assert (done.returncode, getattr(done, stream)) == (0, want)
        assert done.stderr == (want if stream == "stderr" else b"")
    assert sandbox.run("wait", run_id).returncode == 0
    assert sandbox.run("rm", run_id).returncode == 0


# bounds

def test_max_output_keeps_head_and_tail_and_counts_the_rest(sandbox, built):
    count, line = 20000, 7  # bytes
    job = python(f"""
        import os
        os.write(1, b"".join(b"%06d\\n" % i for i in range({count})))
        os.write(2, b"short\\n")
    """)
    result, _ = run_json(sandbox, "--id", "out-max", "--keep", "--max-output", "1400", "--", *job, env=built)
    head, tail = (b"".join(b"%06d\n" % i for i in range(*r)) for r in ((100,), (count - 100, count)))
    assert bytes_of(result, "stdout") == head + tail
    assert (result["stdout_head_bytes"], result["stdout_dropped_bytes"]) == (700, count * line - 1400)
    assert (result["stderr"], result["stderr_head_bytes"], result["stderr_dropped_bytes"]) == ("short\n", 6, 0)
    assert result["output_dropped_bytes"] == count * line + 6 - len(bytes_of(result, "output"))
    assert result["output_is_complete"] is True, "what was dropped here is counted, not lost"
    waited = json.loads(sandbox.run("wait", "--json", "--max-output", "1400", "out-max").stdout)
    assert (waited["stdout"], waited["stdout_dropped_bytes"]) == (result["stdout"], result["stdout_dropped_bytes"])
    note = b"resoluto-sandbox: stdout: left out %d bytes behind the first 700 (--max-output)\n" % (count * line - 1400)
    for command in (["attach"], ["logs"], ["logs", "--follow"]):
        done = sandbox.run(*command, "--max-output", "1400", "out-max")
        assert (done.returncode, done.stdout, done.stderr) == (0, head + tail, b"short\n" + note)
    done = sandbox.run("run", "--max-output", "1400", "--", *job, env=built)
    assert (done.returncode, done.stdout, done.stderr) == (0, head + tail, b"short\n" + note)
    assert sandbox.run("rm", "out-max").returncode == 0


# input

def test_input_that_is_not_read(sandbox, built):
    """Never, or closed early, or more than there will ever be: the end of the program is the end."""
    for job in ("echo ok", "exec <&-; sleep 0.3; echo ok", "read line; echo ok"):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            done = sandbox.run("run", "-i", "--", *shell(job), stdin=endless.stdout, env=built)
            endless.stdout.close()
            assert (done.returncode, done.stdout, done.stderr) == (0, b"ok\n", b"")


def test_input_waits_for_a_slow_reader(sandbox, built, tmp_path):
    """Flow control from the program's pipe back to ours: nothing grows, nothing is lost."""
    size = 16 * MIB
    data = os.urandom(MIB) * (size // MIB)
    digest = hashlib.sha256(data).hexdigest().encode()
    run = sandbox.start("run", "--id", "out-slow", "-i", "--", *shell("echo up; read go < /dev/null; sleep 1; sha256sum"), env=built)
    writer = threading.Thread(target=lambda: (run.stdin.write(data), run.stdin.close()))
    writer.start()
    assert run.stdout.readline() == b"up\n"
    shims = [p for p in Processes.children(run.pid) if b"resoluto-shim" in Processes.argv(p)[0]]
    assert len(shims) == 1
    peaks = []

    def is_fed():
        peaks.extend(peak_kib(pid) for pid in [run.pid, *shims])
        return not writer.is_alive()
    wait_until(is_fed, "the input to be taken")
    out = run.stdout.read()
    assert (run.wait(timeout=60), out, run.stderr.read()) == (0, digest + b"  -\n", b"")
    assert max(peaks) < RSS_MAX_KIB


def test_a_detached_run_has_its_input_before_it_is_let_go(sandbox, built, tmp_path):
    """Bytes of a file or a pipe; a program that reads none of it is let go at its end, not before."""
    data = os.urandom(4 * MIB)
    path = tmp_path / "input"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest().encode() + b"  -\n"
    for options, given in (["--stdin", path], {}), (["-i"], {"input": data}):
        run_id = sandbox.run("run", "--detach", *options, "--", *shell("sleep 0.5; sha256sum"), env=built, **given).stdout.decode().strip()
        done = sandbox.run("attach", run_id)
        assert (done.returncode, done.stdout) == (0, digest), done.stderr
        assert sandbox.run("rm", run_id).returncode == 0
    done = sandbox.run("run", "--detach", "-i", "--", *shell("echo up; sleep 0.5; exit 3"), env=built, input=data)
    run_id = done.stdout.decode().strip()
    assert done.returncode == 0, done.stderr
    waited = sandbox.run("attach", run_id)
    assert (waited.returncode, waited.stdout) == (3, b"up\n")
    assert sandbox.run("rm", run_id).returncode == 0
