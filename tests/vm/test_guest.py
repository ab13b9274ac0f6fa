# SPDX-License-Identifier: Apache-2.0
"""The runner in a real virtual machine, without shim and library (guest_host.py plays the host)."""
import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import tempfile

import pytest
from conftest import needed

import guest_host
from guest_host import NAK_FULL, NAK_STORE, Guest, crc32c, make_inbox, make_job, run

SHELL = ["/bin/sh", "-c"]


@pytest.fixture(autouse=True)
def machine():
    for name in ("RESOLUTO_TEST_KERNEL", "RESOLUTO_TEST_INITRD", "RESOLUTO_TEST_ROOTFS"):
        needed(name)


def shell(script, **options):
    return run(SHELL + [script], **options)


def tar(members):
    """members: {name: bytes}"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def untar(data):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}


def refused(guest, reason):
    """The program was not started, and the run ended in good order all the same."""
    result = guest.result()
    assert (result["status"], result["reason"], result["ran"]) == ("failure", reason, False)
    assert result["exit_code"] is None and guest.started is None and guest.output() == b""
    assert_in_good_order(guest)
    return result


def assert_in_good_order(guest):
    keys = list(guest.objects)
    assert keys[-1] == "_manifest.json"
    chunks = [key for key in keys if key.startswith("events-")]
    assert chunks == [f"events-{n:06d}.jsonl" for n in range(1, len(chunks) + 1)]
    assert json.loads(guest.objects["_manifest.json"]) == {"total_chunks": len(chunks)}
    assert keys.index("result.json") < len(keys) - 1
    assert not guest.puts, "a put was begun and never ended"


# --- ends ---


def test_a_program_that_works():
    guest = run(["echo", "hello"])
    result = guest.result()
    assert guest.output() == b"hello\n"
    assert (result["status"], result["exit_code"], result["reason"], result["ran"]) == ("success", 0, "", True)
    assert result["output_is_complete"] is True and result["signal"] is None
    assert result["guest_boot_id"] == guest.started["guest_boot_id"] != guest_host.host_boot_id()
    assert set(result["timings_ms"]) == {"boot", "canary", "stage", "setup", "run", "collect"}
    assert [(p["probe"], p["ok"]) for p in result["canary"]] == [("external", True), ("metadata", True), ("store", True)]
    assert guest.objects["_canary_ok"] == b"ok" and list(guest.objects)[0] == "_canary_ok"
    kinds = [(e["kind"], e["event"]) for e in guest.events() if e["event"] != "log"]
    assert kinds == [("node", "open"), ("egress_canary", "open"), ("egress_canary", "close"),
                     ("workload", "open"), ("workload", "close"), ("node", "close")]
    # What came of the canary is told behind the program's start; when it was is told as it was.
    times = [e["ts"] for e in guest.events()]
    close = next(e["ts"] for e in guest.events() if (e["kind"], e["event"]) == ("egress_canary", "close"))
    start = next(e["ts"] for e in guest.events() if (e["kind"], e["event"]) == ("workload", "open"))
    assert times == sorted(times) and close < start
    assert (start - close) * 1000 >= result["timings_ms"]["stage"] + result["timings_ms"]["setup"]
    assert_in_good_order(guest)


@pytest.mark.parametrize("script, code, signo", [("exit 7", 7, None), ("kill -SEGV $$", 139, 11)])
def test_how_a_program_ends(script, code, signo):
    result = shell(script).result()
    assert (result["status"], result["exit_code"], result["signal"], result["ran"]) == ("failure", code, signo, True)


@pytest.mark.parametrize("argv, code, reason, words", [
    (["no-such-program"], 127, "not-found", "no-such-program: no such program in PATH"),
    (["/no/such/program"], 127, "not-found", "no such program"),
    (["/etc/passwd"], 126, "not-executable", "Permission denied"),
    (["/etc"], 126, "not-executable", "is a directory"),
    (["/workspace/text"], 126, "not-executable", "not in a format"),
    (["/workspace/lost"], 126, "not-executable", "interpreter"),
])
def test_a_program_that_cannot_be_executed(argv, code, reason, words):
    setup = "printf 'no format' > text; printf '#!/no/interpreter\\n' > lost; chmod +x text lost"
    result = run(argv, env={"RESOLUTO_SETUP_ARGV": json.dumps(SHELL + [setup])}).result()
    assert (result["exit_code"], result["reason"], result["ran"]) == (code, reason, False)
    assert words in result["detail"]


def test_two_megabytes_of_arguments_pass():
    argument = "x" * 100_000
    guest = run(SHELL + ["echo $#", "sh"] + [argument] * 20)
    assert guest.output() == b"20\n"


@pytest.mark.parametrize("arguments", [["x" * 131072], ["x" * 100_000] * 70])
def test_more_arguments_than_linux_takes(arguments):
    result = run(["/bin/true"] + arguments).result()
    assert (result["exit_code"], result["reason"], result["ran"]) == (126, "arguments-too-large", False)
    assert str(len(arguments[0]) + 1) in result["detail"]


# --- what the program is and sees ---


def test_the_program_is_nobody_special():
    script = """
    id -u; id -g; id -G; pwd; umask; echo $HOME $USER $PATH; stat -c %U:%G:%a . $HOME
    grep -E '^(Cap|NoNewPrivs)' /proc/self/status
    env | grep -c RESOLUTO
    ls /dev | tr '\\n' ' '; echo
    for d in /dev/mem /dev/vda /dev/vport0p1 /dev/kmsg; do [ -e $d ] && echo $d is there; done
    cat /proc/1/environ /proc/1/maps 2>&1 | grep -c denied
    echo x > /proc/sys/kernel/core_pattern; mknod n c 1 1; dmesg; python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)
print("mount:", os.strerror(ctypes.get_errno()), file=sys.stderr)'
    cat /etc/resolv.conf; hostname; cat /sys/class/net/lo/operstate; ls /sys/class/net
    cat /proc/sys/kernel/unprivileged_bpf_disabled /proc/sys/kernel/kptr_restrict /proc/sys/kernel/dmesg_restrict
    cat /proc/self/cgroup; cat /sys/fs/cgroup/sandbox/pids.max; echo 1 > /sys/fs/cgroup/sandbox/pids.max
    """
    guest = shell(script, env={"RESOLUTO_STORE_PREFIX": "x"})
    out = guest.output("stdout").decode().splitlines()
    assert out[:5] == ["1000", "1000", "1000", "/workspace", "0022"]
    assert out[5] == "/home/sandbox sandbox /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert out[6:8] == ["sandbox:sandbox:755"] * 2
    assert out[8:13] == [f"Cap{name}:\t0000000000000000" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
    assert out[13] == "NoNewPrivs:\t1" and out[14] == "0"
    assert out[15].split() == ["fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
                               "tty", "urandom", "zero"]
    assert out[16:] == ["2", "sandbox", "unknown", "lo", "1", "2", "1", "0::/sandbox", "4096"]
    errors = guest.output("stderr").decode()
    assert errors.count("denied") + errors.count("not permitted") + errors.count("must be superuser") >= 5


def test_loopback_works_and_nothing_else():
    script = """
import socket, errno
server = socket.create_server(("127.0.0.1", 80))
socket.create_connection(server.getsockname()).close()
socket.create_connection(("localhost", 80)).close()
for address in ("1.1.1.1", "169.254.169.254", "10.0.0.1", "198.18.0.1"):
    try:
        socket.create_connection((address, 80), timeout=5)
        print("reached", address)
    except OSError as e:
        print(errno.errorcode[e.errno])
try:
    socket.getaddrinfo("example.com", 80)
except socket.gaierror:
    print("no names")
"""
    assert run(["python3", "-c", script]).output() == b"ENETUNREACH\n" * 4 + b"no names\n"


def test_a_network_of_its_own_begins_with_loopback_closed():
    script = "unshare -Urn python3 -c 'import socket; print(socket.socket().connect_ex((\"127.0.0.1\", 80)))'"
    assert shell(script).output("stdout") == b"101\n"


def test_loopback_is_opened_though_nobody_looks():
    """A program that needs it later need not wait for it."""
    due = "/proc/sys/net/core/loopback_is_due"
    look = f"for i in $(seq 1000); do read due < {due}; [ $due = 1 ] || break; sleep 0.01; done; echo $due"
    assert shell(f"if [ -e {due} ]; then {look}; else cat /sys/class/net/lo/operstate; fi").output("stdout") in (b"0\n", b"unknown\n")


@pytest.mark.parametrize("spec, ids", [("0", "1000:1000"), ("root", "1000:1000"), ("33", "33:33"), ("daemon", "1:1"),
                                       ("4242", "4242:4242"), ("4242:7", "4242:7"), ("daemon:games", "1:60")])
def test_the_user_of_the_image(spec, ids):
    guest = shell("echo $(id -u):$(id -g); touch file $HOME/x 2>/dev/null; ls file; id -un",
                  env={"RESOLUTO_WORKLOAD_USER": spec})
    assert guest.output("stdout").split()[:2] == [ids.encode(), b"file"]
    assert guest.result()["exit_code"] == 0


def test_a_user_the_image_does_not_know():
    assert "no-such-user" in refused(run(["true"], env={"RESOLUTO_WORKLOAD_USER": "no-such-user"}), "inputs-failed")["detail"]


def test_the_environment_is_the_jobs():
    guest = run(["env"], env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "MY": "a b\u00e9\n", "EMPTY": ""})
    lines = guest.output()
    assert b"PATH=/usr/bin:/bin\n" in lines and b"HOME=/tmp\n" in lines
    assert "MY=a b\u00e9\n\n".encode() in lines and b"EMPTY=\n" in lines


def test_working_directory():
    assert run(["pwd"], env={"RESOLUTO_WORKLOAD_CWD": "/usr/share"}).output() == b"/usr/share\n"
    result = run(["pwd"], env={"RESOLUTO_WORKLOAD_CWD": "/nowhere"}).result()
    assert (result["exit_code"], result["reason"]) == (126, "not-executable") and "/nowhere" in result["detail"]


def test_an_image_with_nothing_but_a_program(tmp_path):
    source = '#include <stdio.h>\nint main(void) { FILE *f = fopen("/etc/passwd", "r"); char b[99]; puts(fgets(b, 99, f)); }'
    subprocess.run(["cc", "-static", "-x", "c", "-o", tmp_path / "program", "-"], input=source.encode(), check=True)
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        archive.add(tmp_path / "program", "program")
    with open(tmp_path / "image.tar", "rb") as image:
        subprocess.run(["tar2sqfs", "-q", "-c", "lz4", tmp_path / "image.sqfs"], stdin=image, check=True)
    guest = run(["/program"], rootfs=tmp_path / "image.sqfs")
    assert guest.output() == b"sandbox:x:1000:1000::/home/sandbox:/bin/sh\n\n"


# --- streams ---


def test_output_comes_out_exactly():
    script = r"printf 'a\n\n\nb'; sleep 0.1; printf 'err\377\000\n' >&2; sleep 0.1; printf '\303'; sleep 0.1; printf '\251 end'"
    guest = shell(script)
    assert guest.output("stdout") == b"a\n\n\nb\xc3\xa9 end"
    assert guest.output("stderr") == b"err\xff\x00\n"
    seqs = [e["data"]["seq"] for e in guest.events() if "seq" in e.get("data", {})]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_flood_and_a_very_long_line():
    guest = run(["python3", "-c", "import sys; sys.stdout.write('x'*3000000 + '\\n'); [print(i) for i in range(100000)]"])
    want = b"x" * 3_000_000 + b"\n" + b"".join(b"%d\n" % i for i in range(100_000))
    assert guest.output() == want
    assert max(len(data) for data in guest.objects.values()) <= 1 << 20
    assert_in_good_order(guest)


def test_stdin_of_some_megabytes():
    data = os.urandom(3 << 20)
    guest = run(["python3", "-c", "import sys,zlib; d=sys.stdin.buffer.read(); print(len(d), zlib.crc32(d))"], stdin=data)
    import zlib
    assert guest.output() == b"%d %d\n" % (len(data), zlib.crc32(data))


def test_a_program_that_does_not_read_its_stdin():
    guest = shell("exec 0<&-; sleep 1; echo done", stdin=bytes(2 << 20))
    assert guest.output() == b"done\n" and guest.credit >= 0


def test_an_empty_stdin():
    assert run(["wc", "-c"]).output() == b"0\n"
    assert run(["wc", "-c"], stdin=b"").output() == b"0\n"


def test_a_line_comes_back_while_the_program_runs():
    with Guest(make_job(["cat"], stdin=True)) as guest:
        for n in range(20):
            guest.send_stdin(b"line %d\n" % n, end=False)
            guest.run(until=lambda g: g.output().endswith(b"line %d\n" % n))
        guest.send_stdin(b"no newline", end=False)
        guest.run(until=lambda g: g.output().endswith(b"no newline"))
        guest.send_stdin(b"")
        guest.run()
        assert guest.result()["exit_code"] == 0


def test_a_prompt_is_seen_while_the_other_stream_floods():
    with Guest(make_job(SHELL + ["yes & printf 'password: ' >&2; cat >/dev/null; kill $!"], stdin=True)) as guest:
        guest.run(until=lambda g: any(b"password: " in data for data in list(g.objects.values())[-1:]))
        guest.send_stdin(b"")
        guest.run()
        assert guest.result()["exit_code"] == 0


def test_values_are_redacted_across_writes():
    script = "printf 'my hun'; sleep 0.3; printf 'ter2secret!\\n'; echo token ghp_0123456789abcdefghijABCDEFGHIJ012345"
    guest = run(SHELL + [script], job=make_job(SHELL + [script], redact=["hunter2secret"]))
    out = guest.output()
    assert b"hunter2" not in b"".join(guest.objects.values()) and b"ghp_" not in out
    assert out.startswith(b"my [REDACTED]!\n") and guest.result()["redactions"] == 2


# --- signals and what is left running ---


def test_a_signal_reaches_the_program():
    script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    with Guest(make_job(SHELL + [script])) as guest:
        guest.run(until=lambda g: b"ready\n" in g.output())
        guest.signal(signal.SIGTERM)
        guest.run()
        # On its stderr the shell may tell that its sleep, which is of the program, too, was terminated.
        assert guest.output("stdout") == b"ready\ngot it\n" and guest.result()["exit_code"] == 3


def test_a_signal_before_the_start_waits():
    with Guest(make_job(SHELL + ["sleep 100"])) as guest:
        guest.run(until=lambda g: "hello" in g.times)
        guest.signal(signal.SIGTERM)
        guest.run()
        result = guest.result()
        assert (result["exit_code"], result["signal"]) == (143, 15)


def test_sigkill_reaches_what_left_the_process_group():
    script = "setsid sh -c 'echo ready; while :; do sleep 0.1; done' & trap '' TERM; wait"
    with Guest(make_job(SHELL + [script])) as guest:
        guest.run(until=lambda g: b"ready\n" in g.output())
        guest.signal(signal.SIGKILL)
        guest.run()
        assert guest.result()["signal"] == 9 and guest.result()["output_is_complete"] is True


def test_output_of_grandchildren_within_the_drain_time():
    guest = shell("(sleep 0.5; echo late) & echo early")
    assert guest.output() == b"early\nlate\n" and guest.result()["output_is_complete"] is True


def test_a_grandchild_that_never_ends_is_cut_off():
    guest = shell("(setsid sh -c 'while :; do echo more; sleep 0.1; done') & echo early; exit 4",
                  env={"RESOLUTO_DRAIN_TIMEOUT_MS": "700"})
    result = guest.result()
    assert guest.output().startswith(b"early\n") or b"more\n" in guest.output()
    assert (result["exit_code"], result["output_is_complete"], result["ran"]) == (4, False, True)


def test_a_hook_that_leaves_a_process_behind_is_told():
    setup = json.dumps(SHELL + ["sleep 1000 & echo ready"])
    guest = run(["echo", "on"], env={"RESOLUTO_DRAIN_TIMEOUT_MS": "300", "RESOLUTO_SETUP_ARGV": setup})
    assert guest.output() == b"on\n" and guest.result()["output_is_complete"] is True
    assert any("the setup hook left a process behind" in e.get("data", {}).get("line", "") for e in guest.events())


def test_zombies_are_reaped():
    script = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'true & exec true' &); done; sleep 1; grep -l '^State:.Z' /proc/*/status | wc -l"
    assert shell(script).output() == b"0\n"


# --- limits ---


def test_out_of_memory_is_told():
    result = run(["python3", "-c", "x = [bytearray(1 << 20) for _ in range(4096)]"]).result()
    assert (result["reason"], result["exit_code"], result["signal"]) == ("out-of-memory", 137, 9)


def test_a_full_disk_is_told_apart():
    guest = shell("cat /dev/zero > big")
    assert guest.result()["reason"] == "guest-disk-full" and guest.result()["exit_code"] == 1
    assert b"No space left" in guest.output("stderr")


def test_there_is_a_limit_of_processes():
    script = """
import os, threading, time
threading.stack_size(65536)
count = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
except RuntimeError:
    print(4000 < count < 4096, flush=True)
os._exit(0)
"""
    guest = run(["python3", "-c", script], memory_mib=1024)
    assert guest.output() == b"True\n"
    assert_in_good_order(guest)


def test_scratch_disk():
    with tempfile.NamedTemporaryFile() as disk:
        disk.truncate(2 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,root_owner=0:0", disk.name], check=True,
                       env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin:/usr/sbin"))
        script = "head -c 500000000 /dev/zero > big && stat -c %s big && df -k / | tail -1 | awk '{print ($2 > 1000000)}'"
        guest = run(None, job=make_job(SHELL + [script], scratch=True), scratch=disk.name)
        assert guest.output() == b"500000000\n1\n", guest.result()


# --- inputs and outputs ---


def test_inputs_and_outputs():
    with make_inbox({"workspace.tar.gz": tar({"a/in.txt": b"input", "run.sh": b"cat a/in.txt > out/result.txt"}),
                     "more.tar.gz": tar({"b.txt": b"second"})}) as inbox:
        script = "mkdir out; sh run.sh; stat -c %U a/in.txt b.txt; ln -s /etc/passwd out/link; mkfifo out/fifo"
        guest = shell(script, inbox=inbox.name, env={"RESOLUTO_OUTPUT_PATHS": '["out", "*.txt", "none/*"]'})
    assert guest.output() == b"sandbox\nsandbox\n"
    assert guest.result()["output_archive"] == "outbox/output.tar.gz"
    assert untar(guest.objects["outbox/output.tar.gz"]) == {"out/result.txt": b"input", "b.txt": b"second"}
    assert_in_good_order(guest)


def test_outputs_come_back_after_a_failure_too():
    guest = shell("echo log > log; exit 9", env={"RESOLUTO_OUTPUT_PATHS": '["log"]'})
    assert guest.result()["exit_code"] == 9 and untar(guest.objects["outbox/output.tar.gz"]) == {"log": b"log\n"}


def test_no_archive_when_nothing_matches():
    guest = shell("true", env={"RESOLUTO_OUTPUT_PATHS": '["*.none"]'})
    assert "outbox/output.tar.gz" not in guest.objects and guest.result()["output_archive"] is None


def test_a_large_output_streams():
    guest = shell("head -c 8000000 /dev/urandom > big", env={"RESOLUTO_OUTPUT_PATHS": '["big"]'})
    assert len(untar(guest.objects["outbox/output.tar.gz"])["big"]) == 8_000_000


MANY_LINKS = """
import os, sys
for level in range(540):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
for number in range(800):
    os.mknod(f"{number}")
    os.link(f"{number}", f"{number}-again")
sys.exit(7)
"""


def test_outputs_that_want_more_kept_in_mind_than_there_is_memory():
    """800 files with another name, 132 KiB of a path each: 103 MiB.  The runner, and the kernel with it, would end of that."""
    guest = run(["python3", "-c", MANY_LINKS], env={"RESOLUTO_OUTPUT_PATHS": '["**/*-again"]'}, memory_mib=128, timeout=600)
    assert (guest.result()["exit_code"], guest.result()["reason"]) == (7, "")
    with tarfile.open(fileobj=io.BytesIO(guest.objects["outbox/output.tar.gz"]), mode="r:gz") as archive:
        assert sum(len(member.name) == 540 * 251 + len(member.name.split("/")[-1]) and member.isfile() for member in archive) == 800
    assert_in_good_order(guest)


@pytest.mark.parametrize("refusal", [NAK_FULL, NAK_STORE])
def test_outputs_that_the_store_refuses(refusal):
    guest = shell("head -c 3000000 /dev/urandom > big; exit 2", env={"RESOLUTO_OUTPUT_PATHS": '["big"]'},
                  refuse=lambda key: refusal if key.startswith("outbox/") else None)
    result = guest.result()
    assert (result["exit_code"], result["output_archive"]) == (2, None)
    assert result["reason"] == "outputs-failed"
    assert_in_good_order(guest)


@pytest.mark.parametrize("disk", [
    lambda: make_inbox({}, magic=b"NOTINBOX"),
    lambda: make_inbox({"../evil.tar.gz": b""}),
    lambda: make_inbox({"workspace.tar.gz": b"x" * 9000}, disk_size=8192),
    lambda: make_inbox({"workspace.tar.gz": b"this is no archive"}),
    lambda: make_inbox({"workspace.tar.gz": tar({"../../etc/evil": b"x"})}),
    lambda: make_inbox({"workspace.tar.gz": gzip.compress(b"y" * 5000)}),
])
def test_inputs_that_are_refused(disk):
    with disk() as inbox:
        refused(run(["true"], inbox=inbox.name), "inputs-failed")


@pytest.mark.parametrize("disk", ["inbox", "scratch"])
def test_a_disk_that_the_job_promises_and_nobody_attached(disk):
    guest = run(["true"], job=make_job(["true"], **{disk: True}))
    refused(guest, "inputs-failed")
    assert "disk" in guest.result()["detail"]


def test_inputs_that_do_not_fit():
    with make_inbox({"workspace.tar.gz": tar({"zero": bytes(300 << 20)})}) as inbox:
        refused(run(["true"], inbox=inbox.name), "guest-disk-full")


# --- hooks ---


def test_hooks_run_as_the_user_around_the_program():
    env = {"RESOLUTO_SETUP_ARGV": json.dumps(SHELL + ["id -u; echo prepared > p; sleep 1000 > /dev/null 2>&1 &"]),
           "RESOLUTO_CLEANUP_ARGV": json.dumps(SHELL + ["echo cleaning; pgrep sleep; exit 5"]),
           "RESOLUTO_OUTPUT_PATHS": '["p"]'}
    guest = run(["cat", "p"], env=env)
    assert guest.output(kind="setup") == b"1000\n" and guest.output() == b"prepared\n"
    assert guest.output(kind="cleanup").startswith(b"cleaning\n")
    assert guest.result()["exit_code"] == 0 and guest.result()["status"] == "success"
    opened = [e["kind"] for e in guest.events() if e["event"] == "open"]
    assert opened == ["node", "egress_canary", "setup", "workload", "cleanup"]
    assert list(guest.objects).index("outbox/output.tar.gz") < list(guest.objects).index("result.json")


@pytest.mark.parametrize("setup", [["false"], ["/no/such/hook"], SHELL + ["kill -9 $$"]])
def test_a_failing_setup_hook_stops_the_run(setup):
    guest = run(["echo", "never"], env={"RESOLUTO_SETUP_ARGV": json.dumps(setup),
                                        "RESOLUTO_CLEANUP_ARGV": '["echo", "cleaned"]'})
    refused(guest, "setup-failed")
    assert guest.output(kind="cleanup") == b"cleaned\n"


# --- fail closed ---


def test_canary_a_store_that_refuses():
    guest = run(["echo", "never"], refuse=lambda key: NAK_FULL if key == "_canary_ok" else None,
                env={"RESOLUTO_CLEANUP_ARGV": '["echo", "cleaned"]'})
    result = refused(guest, "canary-failed")
    assert result["canary"][2] == {"probe": "store", "ok": False, "detail": "the store is full: refused by the test"}
    assert guest.output(kind="cleanup") == b"" and guest.result()["guest_boot_id"] == ""


def test_canary_a_probe_that_cannot_be_made():
    assert "not an IP address" in refused(run(["true"], env={"RESOLUTO_CANARY_PROBE_HOST": "example.com"}), "canary-failed")["detail"]


@pytest.mark.parametrize("ids, reason", [(None, "own-kernel-unproven"), ("", "own-kernel-unproven"), ("nonsense", "own-kernel-unproven")])
def test_own_kernel_cannot_be_proven(ids, reason):
    refused(run(["echo", "never"], env={"RESOLUTO_HOST_BOOT_IDS": ids}), reason)


def test_version_guard():
    refused(run(["true"], env={"RESOLUTO_IMAGE_VERSION": "0.99.0"}), "version-mismatch")
    assert run(["true"], env={"RESOLUTO_IMAGE_VERSION": "0.1.7"}).result()["exit_code"] == 0


@pytest.mark.parametrize("job", [
    b"this is no JSON", b"[]", b"{}", b'{"schema": 2, "env": {}}', b"[" * 100000,
    json.dumps(make_job(["true"], env={"RESOLUTO_WORKLOAD_ARGV": None})).encode(),
    json.dumps(make_job([])).encode(), json.dumps(make_job([1])).encode(),
    json.dumps(make_job(["true"], env={"RESOLUTO_RUN_ID": None})).encode(),
    json.dumps(make_job(["true"], env={"RESOLUTO_OUTPUT_PATHS": '["../x"]'})).encode(),
    json.dumps(make_job(["true"], env={"RESOLUTO_WORKSPACE_DIR": "/"})).encode(),
    json.dumps(make_job(["true"], env={"RESOLUTO_DRAIN_TIMEOUT_MS": "-1"})).encode(),
    json.dumps(make_job(["true"], env={"A=B": "c"})).encode(),
])
def test_a_job_that_is_none(job):
    refused(run(None, job=job), "protocol")


def test_a_host_of_another_version():
    guest = run(["true"], hello=2)
    assert not guest.objects and "version 2" in guest.console_text


def test_the_store_is_asked_again():
    tried = []

    def refuse(key):
        tried.append(key)
        return NAK_STORE if tried.count(key) < 3 else None

    guest = run(["echo", "hello"], refuse=refuse)
    assert guest.output() == b"hello\n" and tried.count("result.json") == 3 and tried.count("events-000001.jsonl") == 3
    assert_in_good_order(guest)


def test_a_store_that_is_full_ends_the_machine():
    guest = run(["yes"], refuse=lambda key: NAK_FULL if key >= "events-000003" and key.startswith("events") else None)
    assert "_manifest.json" not in guest.objects and "store is full" in guest.console_text


def test_a_clone_of_the_checksum_agrees():
    assert crc32c(b"123456789") == 0xE3069283
