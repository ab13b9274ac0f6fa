# SPDX-License-Identifier: Apache-2.0
"""Tools that look into processes, build programs, or make sandboxes themselves."""
import os
import platform
import re
import tempfile
import time

from probe import main, probe, run, same

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
static int deep(int n) { return n ? deep(n - 1) + 1 : getenv("CRASH") ? *(volatile int *) 8 : 0; }
static void *thread(void *arg) { return arg; }
int main(void) {
	pthread_t id; void *out;
	pthread_create(&id, NULL, thread, (void *) 7L); pthread_join(id, &out);
	printf("%d %ld %d\\n", deep(3), (long) out, (int) sizeof(void *));
	return 0;
}
"""


def _compiled(folder, *options):
    with open(folder + "/p.c", "w") as file:
        file.write(PROGRAM)
    run("gcc", "-g", "-O0", "-pthread", *options, "-o", folder + "/p", folder + "/p.c")
    return folder + "/p"


@probe
def gcc_and_make_build_in_parallel():
    with tempfile.TemporaryDirectory() as folder:
        _compiled(folder)
        with open(folder + "/Makefile", "w") as file:
            file.write("all: a b\na b: p.c\n\tgcc -O0 -pthread -o $@ p.c\n")
        run("make", "-j2", "-C", folder)
        same(run(folder + "/a"), "3 7 8\n")


@probe
def a_static_program_of_32_bits():
    if platform.machine() != "x86_64":
        return
    with tempfile.TemporaryDirectory() as folder:
        same(run(_compiled(folder, "-m32", "-static")), "3 7 4\n")


@probe
def gdb_on_a_child():
    with tempfile.TemporaryDirectory() as folder:
        text = run("gdb", "-q", "-batch", "-nx", "-ex", "break deep if n == 0", "-ex", "run", "-ex", "backtrace", "-ex",
                   "print n", "-ex", "continue", "--args", _compiled(folder))
        same(len(re.findall(r"^#\d.* deep \(", text, re.M)), 4)
        assert "$1 = 0" in text and "3 7 8" in text and "exited normally" in text, text


@probe
def gdb_attaches_to_a_process_of_the_same_user():
    with tempfile.TemporaryDirectory() as folder:
        _compiled(folder)
        text = run("sh", "-ec", 'sleep 60 & gdb -q -batch -nx -p $! -ex "info proc" -ex detach; kill $!', code=None)
        assert re.search(r"process \d+\ncmdline = 'sleep 60'", text), text


@probe
def gdb_reads_a_core():
    with tempfile.TemporaryDirectory() as folder:
        program = _compiled(folder)
        text = run("sh", "-c", 'ulimit -c unlimited; CRASH=1 ./p; ls; gdb -q -batch -nx ./p core* -ex backtrace',
                   code=None, cwd=folder)
        assert "SIGSEGV" in text and "deep (n=0)" in text and "main ()" in text, text
        assert program


@probe
def strace_on_a_child():
    text = run("strace", "-f", "-e", "trace=openat,execve,exit_group", "sh", "-c", "cat /etc/hostname; true")
    assert 'openat(AT_FDCWD, "/etc/hostname", O_RDONLY)' in text and "exited with 0" in text, text


@probe
def strace_injects_an_error():
    text = run("strace", "-e", "inject=openat:error=EIO:when=3+", "-o", "/dev/null", "cat", "/etc/hostname", code=1)
    assert "Input/output error" in text, text


@probe
def bubblewrap_runs_a_program():
    text = run("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
               "--new-session", "--die-with-parent", "sh", "-ec",
               "echo $$; touch /tmp/x; ls /tmp; touch /etc/x || echo refused; ls /sys/class/net", code=None)
    assert re.search(r"^\d\nx\n", text) and "refused" in text, text


@probe
def unshare_runs_a_program():
    text = run("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork",
               "--mount-proc", "sh", "-ec", "ip link set lo up; mount -t tmpfs none /tmp; id -u; ls -d /proc/[0-9]*; "
               "cat /proc/net/dev | wc -l")
    same(text.split()[0], "0")
    assert "/proc/1\n" in text, text


@probe
def a_chroot_in_a_user_namespace():
    with tempfile.TemporaryDirectory() as folder:
        program = _compiled(folder, "-static")
        same(run("unshare", "-r", "chroot", folder, "/" + os.path.basename(program)), "3 7 8\n")


def _repository(folder):
    os.makedirs(folder + "/work")
    run("sh", "-ec", "git init -q -b main .; git config user.name N; git config user.email n@example.com; "
        "seq 200 >numbers; mkdir d; ln -s ../numbers d/link; git add .; git commit -q -m first; "
        "git tag -a v1 -m one; git checkout -q -b side; seq 100 >numbers; git commit -qam side; git checkout -q main; "
        "echo more >>d/file; git add .; git commit -q -m more; git merge -q -m merged side; git clone -q --bare . ../r",
        cwd=folder + "/work")
    return folder + "/r"


def _clone_and_push(folder, address):
    run("git", "clone", "-q", address, folder + "/copy")
    run("sh", "-ec", "git config user.name N; git config user.email n@example.com; test -L d/link; git describe; "
        "echo new >new; git add new; git commit -q -m new; git push -q origin HEAD:refs/heads/pushed; git fsck; "
        "git gc -q", cwd=folder + "/copy")
    assert "pushed" in run("git", "ls-remote", address), "the push did not arrive"


@probe
def git_over_a_remote_of_files():
    with tempfile.TemporaryDirectory() as folder:
        _clone_and_push(folder, "file://" + _repository(folder))


@probe
def git_over_its_own_protocol():
    with tempfile.TemporaryDirectory() as folder:
        _repository(folder)
        run("git", "daemon", "--detach", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1",
            "--port=9418", "--base-path=" + folder)
        address, end = "git://127.0.0.1/r", time.monotonic() + 60
        while "HEAD" not in run("git", "ls-remote", address, code=None) and time.monotonic() < end:
            time.sleep(0.2)
        _clone_and_push(folder, address)


if __name__ == "__main__":
    main()
