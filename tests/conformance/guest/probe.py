# SPDX-License-Identifier: Apache-2.0
"""Small tests that run in the guest, many to a virtual machine; only the standard library is needed.

A probe is a function marked @probe.  main() runs each in a process of its own and writes one line of JSON for it:
{"probe": NAME, "ok": BOOL, "detail": TEXT, "seconds": N}.  The host imports the same files for the names alone, so a
probe that did not report is noticed."""
import ctypes
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time
import traceback

SECONDS_MAX = 120  # of one probe, under emulation on a busy host
DETAIL_MAX = 2000  # characters of what a probe says

probes = []

# Numbers of system calls that the C library has no function for.
SYSCALLS = {
    "x86_64": {"init_module": 175, "delete_module": 176, "add_key": 248, "keyctl": 250, "kexec_load": 246,
               "perf_event_open": 298, "name_to_handle_at": 303, "finit_module": 313, "kcmp": 312, "seccomp": 317,
               "bpf": 321, "userfaultfd": 323, "membarrier": 324, "ioperm": 173, "getrandom": 318, "rseq": 334,
               "kexec_file_load": 320},
    "aarch64": {"init_module": 105, "delete_module": 106, "add_key": 217, "keyctl": 219, "kexec_load": 104,
                "perf_event_open": 241, "name_to_handle_at": 264, "finit_module": 273, "kcmp": 272, "seccomp": 277,
                "bpf": 280, "userfaultfd": 282, "membarrier": 283, "getrandom": 278, "rseq": 293,
                "kexec_file_load": 294},
}.get(platform.machine(), {})
SYSCALLS.update(io_uring_setup=425, io_uring_enter=426, openat2=437, landlock_create_ruleset=444,
                landlock_add_rule=445, landlock_restrict_self=446)

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.shmat.restype = ctypes.c_void_p


def probe(function):
    probes.append(function)
    return function


def name_of(function):
    return function.__name__


def checked(value, what):
    """The result of a C function, or the error it left in errno."""
    if value is None or value == -1 or value == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return value


def syscall(name, *arguments):
    libc.syscall.restype = ctypes.c_long
    fixed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(libc.syscall(ctypes.c_long(SYSCALLS[name]), *fixed), name)


def same(value, expected):
    if value != expected:
        raise AssertionError(f"{value!r}, not {expected!r}")


def run(*argv, input=None, code=0, env=None, cwd=None):
    """A program's output, both streams; another exit code than expected is a failure that shows it."""
    done = subprocess.run(argv, input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **(env or {})}, cwd=cwd)
    if code is not None:
        assert done.returncode == code, f"{argv[0]} ended with {done.returncode}: {done.stdout}"
    return done.stdout


def _in_child(function, report):
    os.setsid()
    os.dup2(2, 1)  # standard output is the report's
    try:
        function()
        text = ""
    except BaseException:
        text = traceback.format_exc()[-DETAIL_MAX:] or "failed"
    os.write(report, text.encode() or b"\0")
    os._exit(0)


def _one(function):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(function, writing)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], SECONDS_MAX)
    text = os.read(reading, 2 * DETAIL_MAX).decode(errors="replace") if ready else f"no end after {SECONDS_MAX} s"
    os.close(reading)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, status = os.waitpid(child, 0)
    return text or f"died: wait status {status}"


def main():
    for function in probes:
        begin = time.monotonic()
        text = _one(function)
        print(json.dumps({"probe": name_of(function), "ok": text == "\0", "detail": text.strip("\0"),
                          "seconds": round(time.monotonic() - begin, 2)}), flush=True)
    sys.exit(0)
