# SPDX-License-Identifier: Apache-2.0
"""The bare boot: the very command line of a run, booting an init that leaves at once.

It is read from /proc while a run is up; its descriptors are replaced by fresh ones, its initramfs by one that only
holds bench/init."""
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import time

import sandbox

sys.path.insert(0, str(sandbox.ROOT / "tests"))
import newc  # noqa: E402

BOOT_MAX_S = 60
# As the shim says it (src/shim/qmp.h): the machine stands still before.
QMP_HELLO = b'{"execute":"qmp_capabilities"}\n{"execute":"cont"}\n'


def make_initramfs(folder, by_reset):
    """An archive with bench/init alone; by_reset: for a machine without ACPI."""
    folder = pathlib.Path(folder, "reset" if by_reset else "off")
    if (folder / "bare.cpio").exists():
        return str(folder / "bare.cpio")
    folder.mkdir()
    subprocess.run(["cc", "-static", "-O2", *(["-DBY_RESET"] if by_reset else []), "-o", str(folder / "init"),
                    str(sandbox.ROOT / "bench/init/init.c")], check=True)
    (folder / "bare.cpio").write_bytes(newc.cpio({"init": (folder / "init").read_bytes()}))
    return str(folder / "bare.cpio")


class BareBoot:
    """What boots where `resoluto-sandbox run OPTIONS` would, with everything of the run left out."""

    def __init__(self, options, env, folder):
        self.argv, self.files = self._capture(options, env)
        self.monitor = re.search(r"id=qmp,fd=(\d+)", " ".join(self.argv))[1]
        machine = self.argv[self.argv.index("-M") + 1]
        self.argv[self.argv.index("-initrd") + 1] = make_initramfs(folder, "acpi=off" in machine)

    @staticmethod
    def _capture(options, env):
        """argv of QEMU during a run, and what each descriptor it names is."""
        name = f"bare-{os.getpid()}"
        run = subprocess.Popen([sandbox.cli(), "run", "--id", name, *options, "--", "/bin/sleep", "60"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            pid = sandbox.wait_for(lambda: sandbox.machines_of(name), "QEMU")[0]
            argv = [a.decode() for a in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]
            argv[0] = os.readlink(f"/proc/{pid}/exe")
            files = {}
            for number in set(re.findall(r"\bfd=(\d+)|/fd/(\d+)", " ".join(argv))):
                number = number[0] or number[1]
                path = f"/proc/{pid}/fd/{number}"
                flags = int(re.search(r"flags:\s*(\d+)", pathlib.Path(f"/proc/{pid}/fdinfo/{number}").read_text())[1],
                            8)
                # Opened while the run is up: its files are unlinked or removed afterwards.
                is_socket = os.readlink(path).startswith("socket:")
                files[number] = None if is_socket else os.open(path, flags & os.O_ACCMODE)
            return argv, files
        finally:
            run.terminate()
            run.communicate()

    def _replay(self, mapping):
        argv = [re.sub(r"\bfd=(\d+)", lambda m: f"fd={mapping[m[1]]}", a) for a in self.argv]
        return [re.sub(r"/proc/self/fd/(\d+)", lambda m: f"/proc/self/fd/{mapping[m[1]]}", a) for a in argv]

    def boot(self):
        """One boot; returns its seconds."""
        pairs = {number: socket.socketpair() for number, file in self.files.items() if file is None}
        mapping = {**self.files, **{number: theirs for number, (_, theirs) in pairs.items()}}
        mapping = {number: file if isinstance(file, int) else file.fileno() for number, file in mapping.items()}
        argv = self._replay(mapping)
        start = time.monotonic()
        qemu = subprocess.Popen(argv, pass_fds=list(mapping.values()), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        pairs[self.monitor][0].sendall(QMP_HELLO)
        for _, theirs in pairs.values():
            theirs.close()
        try:
            await_end(qemu, [ours for ours, _ in pairs.values()], start + BOOT_MAX_S)
            seconds = time.monotonic() - start
        finally:
            qemu.kill()
            qemu.wait()
            for ours, _ in pairs.values():
                ours.close()
        if qemu.returncode != 0:
            sys.exit(f"the bare boot ended with {qemu.returncode}: {qemu.stderr.read().decode(errors='replace')}")
        qemu.stderr.close()
        return seconds


def await_end(process, sockets, end):
    """Its end, while what it says on the sockets is thrown away: a full one would stop the guest."""
    poll = select.poll()
    pidfd = os.pidfd_open(process.pid)
    by_fd = {s.fileno(): s for s in sockets}
    for fd in [pidfd, *by_fd]:
        poll.register(fd, select.POLLIN)
    try:
        while time.monotonic() < end:
            for fd, _ in poll.poll(1000):
                if fd == pidfd:
                    process.wait()
                    return
                try:
                    there = by_fd[fd].recv(65536)
                except ConnectionError:
                    there = b""
                if not there:
                    poll.unregister(fd)
    finally:
        os.close(pidfd)
    sys.exit("the bare boot hangs")
