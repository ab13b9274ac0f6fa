# SPDX-License-Identifier: Apache-2.0
"""The limits of the program's cgroup: out of memory is told, and processes end somewhere."""
from inside import guest, prepared  # noqa: F401 (fixtures)

TAKES_ALL = """
taken = []
while True:
    taken.append(bytearray(b"x") * (1 << 24))
"""

CHILD_TAKES_ALL = f"""
import subprocess, sys
print("child", subprocess.run([sys.executable, "-c", {TAKES_ALL!r}]).returncode)
"""

MANY_THREADS = """
import _thread, errno, os
_thread.stack_size(65536)
lock, count = _thread.allocate_lock(), 0
lock.acquire()
try:
    while count < 20000:
        _thread.start_new_thread(lock.acquire, ())
        count += 1
except RuntimeError as error:
    print(error)
try:
    os.fork()
except OSError as error:
    print(errno.errorcode[error.errno])
print(count, flush=True)
os._exit(0)
"""


def test_too_much_memory_is_told_as_such(guest):
    result = guest.run("python3", "-c", TAKES_ALL, options=("--memory", "384Mi"))
    assert (result["reason"], result["exit_code"], result["signal"]) == ("out-of-memory", 137, 9)
    assert result["disposition"] == "completed"


def test_a_child_that_takes_too_much_does_not_take_the_program_along(guest):
    result = guest.run("python3", "-c", CHILD_TAKES_ALL, options=("--memory", "384Mi"))
    assert (result["exit_code"], result["stdout"]) == (0, "child -9\n"), result["output"]


def test_processes_have_a_bound_and_fork_says_so(guest):
    lines = guest.passes("python3", "-c", MANY_THREADS).splitlines()
    assert lines[:2] == ["can't start new thread", "EAGAIN"], lines
    assert 4000 < int(lines[2]) < 4096, lines
