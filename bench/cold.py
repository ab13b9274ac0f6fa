# SPDX-License-Identifier: Apache-2.0
"""Cold `run -- /bin/true` against the same QEMU, kernel and command line booting an init that powers off at once.

The bare side is the very command line of a run, read from /proc while one is up, with its descriptors replaced by
fresh ones and its initramfs by one that only holds bench/init."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402


def capture_command_line():
    """argv of QEMU during a run, and what each descriptor it names is."""
    name = f"cold-{os.getpid()}"
    run = subprocess.Popen([sandbox.cli(), "run", "--id", name, "--", "/bin/sleep", "60"], env=sandbox.environment(),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        pid = sandbox.wait_for(lambda: [p for p in sandbox.processes("qemu-system") if f"guest={name},".encode() in
                                        pathlib.Path(f"/proc/{p}/cmdline").read_bytes()], "QEMU")[0]
        argv = [a.decode() for a in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]
        executable = os.readlink(f"/proc/{pid}/exe")
        kinds = {}
        for number in set(re.findall(r"\bfd=(\d+)", " ".join(argv))) | set(re.findall(r"/fd/(\d+)", " ".join(argv))):
            path = f"/proc/{pid}/fd/{number}"
            flags = int(re.search(r"flags:\s*(\d+)", pathlib.Path(f"/proc/{pid}/fdinfo/{number}").read_text())[1], 8)
            target = os.readlink(path)
            # Opened while the run is up: its files are unlinked or removed afterwards.
            kinds[number] = None if target.startswith("socket:") else os.open(path, flags & os.O_ACCMODE)
        return [executable] + argv[1:], kinds
    finally:
        run.terminate()
        run.communicate()


def make_initramfs(folder):
    init = os.path.join(folder, "init")
    subprocess.run(["cc", "-static", "-O2", "-o", init, str(sandbox.ROOT / "bench/init/init.c")], check=True)
    path = os.path.join(folder, "bare.cpio")
    with open(path, "wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=folder, input=b"init\n", stdout=out, check=True)
    return path


def bare_boot(argv, kinds, initrd):
    """One boot of the captured command line; returns its seconds."""
    sockets, mapping = [], {}
    for number, file in kinds.items():
        if file is None:
            ours, theirs = socket.socketpair()
            sockets += [ours, theirs]
            mapping[number] = theirs.fileno()
        else:
            mapping[number] = file
    replay = [re.sub(r"\bfd=(\d+)", lambda m: f"fd={mapping[m[1]]}", a) for a in argv]
    replay = [re.sub(r"/fd/(\d+)", lambda m: f"/fd/{mapping[m[1]]}", a) for a in replay]
    replay[replay.index("-initrd") + 1] = initrd
    start = time.monotonic()
    qemu = subprocess.Popen(replay, pass_fds=list(mapping.values()), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
    try:
        for ours, theirs in zip(sockets[::2], sockets[1::2]):
            theirs.close()
            ours.setblocking(False)
        while qemu.poll() is None:
            # Drain the console and ports, else a full one would stop the guest.
            for ours in sockets[::2]:
                try:
                    while ours.recv(65536):
                        pass
                except (BlockingIOError, ConnectionError):
                    pass
            try:
                qemu.wait(0.005)
            except subprocess.TimeoutExpired:
                if time.monotonic() - start > 60:
                    sys.exit("the bare boot hangs")
    finally:
        if qemu.poll() is None:
            qemu.kill()
            qemu.wait()
        for ours in sockets[::2]:
            ours.close()
    if qemu.returncode != 0:
        sys.exit(f"the bare boot ended with {qemu.returncode}: {qemu.stderr.read().decode(errors='replace')}")
    qemu.stderr.close()
    return time.monotonic() - start


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    argv, kinds = capture_command_line()
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        initrd = make_initramfs(folder)
        bare_boot(argv, kinds, initrd)
        sandbox.timed([sandbox.cli(), "run", "--", "/bin/true"], env=sandbox.environment())
        for _ in range(rounds):
            ours.append(sandbox.timed([sandbox.cli(), "run", "--", "/bin/true"], env=sandbox.environment()))
            bare.append(bare_boot(argv, kinds, initrd))
    a = sandbox.report("run -- /bin/true", ours)
    b = sandbox.report("bare boot, powers off at once", bare)
    sandbox.ratio(a / b, 1.20)


main()
