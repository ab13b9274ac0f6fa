# SPDX-License-Identifier: Apache-2.0
"""What programs ask of the kernel itself."""
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import pty
import resource
import select
import signal
import socket
import struct
import tempfile
import termios
import time

from probe import checked, libc, main, probe, run, same, syscall


@probe
def inotify_tells_of_a_new_file():
    with tempfile.TemporaryDirectory() as folder:
        fd = checked(libc.inotify_init1(os.O_CLOEXEC), "inotify_init1")
        checked(libc.inotify_add_watch(fd, folder.encode(), 0x100), "inotify_add_watch")
        open(folder + "/new", "w").close()
        _, mask, _, length = struct.unpack_from("iIII", os.read(fd, 4096))
        same((mask, length), (0x100, 16))


@probe
def fanotify_tells_of_a_new_file_without_rights():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        # FAN_REPORT_FID | FAN_REPORT_DFID_NAME: what a user may have since 5.13.
        fd = checked(libc.fanotify_init(0x200 | 0xC00, os.O_RDONLY), "fanotify_init")
        checked(libc.fanotify_mark(fd, 1, ctypes.c_uint64(0x100 | 0x40000000), -100, folder.encode()),
                "fanotify_mark")
        os.mkdir(folder + "/new")
        assert os.read(fd, 4096), "no event"


@probe
def memfd_and_its_seals():
    fd = os.memfd_create("m", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, b"data")
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    try:
        os.write(fd, b"more")
    except PermissionError:
        return
    raise AssertionError("a sealed memfd was written")


@probe
def a_program_runs_from_a_memfd():
    fd = os.memfd_create("true", 0)
    with open("/bin/true", "rb") as program:
        os.write(fd, program.read())
    child = os.fork()
    if child == 0:
        os.execve(fd, ["true"], {})
    same(os.waitpid(child, 0)[1], 0)


class _Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter))]


def _refuse_uname(action):
    number = {"x86_64": 63, "aarch64": 160}[platform.machine()]
    lines = (_Filter * 4)(_Filter(0x20, 0, 0, 0), _Filter(0x15, 0, 1, number), _Filter(0x06, 0, 0, action),
                          _Filter(0x06, 0, 0, 0x7FFF0000))
    return _Program(4, lines)


@probe
def seccomp_refuses_one_system_call():
    checked(libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
    syscall("seccomp", 1, 0, ctypes.byref(_refuse_uname(0x00050000 | errno.EDOM)))
    ctypes.set_errno(0)
    try:
        checked(libc.uname(ctypes.create_string_buffer(4096)), "uname")
    except OSError as error:
        same(error.errno, errno.EDOM)
        return
    raise AssertionError("the filter did not count")


@probe
def seccomp_hands_a_call_to_another_process():
    checked(libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
    listener = syscall("seccomp", 1, 8, ctypes.byref(_refuse_uname(0x7FC00000)))
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.uname(ctypes.create_string_buffer(4096)) == -1 and
                 ctypes.get_errno() == errno.EXDEV else 1)
    request = bytearray(80)
    fcntl.ioctl(listener, 0xC0502100, request)
    answer = struct.pack("=QqiI", struct.unpack_from("=Q", request)[0], 0, -errno.EXDEV, 0)
    fcntl.ioctl(listener, 0xC0182101, answer)
    same(os.waitpid(child, 0)[1], 0)


@probe
def a_user_namespace_with_root_in_it():
    same(run("unshare", "-Ur", "id", "-u").strip(), "0")
    same(run("unshare", "-Urm", "sh", "-ec", "mount -t tmpfs none /mnt; echo x >/mnt/x; cat /mnt/x").strip(), "x")


@probe
def every_kind_of_namespace():
    kinds = ("user", "mnt", "uts", "ipc", "pid", "net", "cgroup", "time")
    missing = [kind for kind in kinds if not os.path.exists(f"/proc/self/ns/{kind}")]
    same(missing, [])
    same(run("unshare", "-UrmuipnCT", "--fork", "--mount-proc", "sh", "-ec",
             "hostname inside; hostname; echo $$").split(), ["inside", "1"])


@probe
def a_network_namespace_with_loopback():
    same(run("unshare", "-Urn", "sh", "-ec", "ip link set lo up; ip -4 -o addr show dev lo | wc -l").strip(), "1")


@probe
def an_overlay_in_a_user_namespace():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        run("unshare", "-Urm", "sh", "-ec", "mkdir l u w m; echo low >l/file; mount -t overlay -o "
            "lowerdir=l,upperdir=u,workdir=w none m; echo high >m/file; grep -q high u/file; grep -q low l/file",
            cwd=folder)


@probe
def cgroup_v2_with_the_limits_of_the_sandbox():
    path = open("/proc/self/cgroup").read()
    same(path, "0::/sandbox\n")
    here = "/sys/fs/cgroup/sandbox/"
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = int(open(here + "memory.max").read())
    assert 64 << 20 <= total - limit < 320 << 20, f"memory.max {limit} of {total}"
    assert 1000 < int(open(here + "pids.max").read()) < 1_000_000
    assert int(open(here + "memory.current").read()) > 0
    for name in ("memory.max", "cgroup.procs"):
        try:
            open(here + name, "w").close()
        except OSError:
            continue
        raise AssertionError(f"{name} can be written by the program")


@probe
def shared_memory_of_posix():
    from multiprocessing import shared_memory
    memory = shared_memory.SharedMemory(create=True, size=1 << 20)
    child = os.fork()
    if child == 0:
        other = shared_memory.SharedMemory(memory.name)
        other.buf[7] = 42
        os._exit(0)
    os.waitpid(child, 0)
    same(memory.buf[7], 42)
    assert os.path.exists("/dev/shm/" + memory.name)
    memory.close()
    memory.unlink()


@probe
def shared_memory_of_system_v():
    handle = checked(libc.shmget(0, 65536, 0o1600), "shmget")
    address = checked(libc.shmat(handle, None, 0), "shmat")
    child = os.fork()
    if child == 0:
        ctypes.memset(address, 42, 8)
        os._exit(0)
    os.waitpid(child, 0)
    same(ctypes.string_at(address, 8), b"*" * 8)
    checked(libc.shmctl(handle, 0, None), "shmctl")
    assert "shmid" in open("/proc/sysvipc/shm").read()


@probe
def semaphores_of_system_v():
    handle = checked(libc.semget(0, 1, 0o1600), "semget")
    child = os.fork()
    if child == 0:
        time.sleep(0.1)
        libc.semop(handle, struct.pack("Hhh", 0, 1, 0), 1)
        os._exit(0)
    checked(libc.semop(handle, struct.pack("Hhh", 0, -1, 0), 1), "semop")
    os.waitpid(child, 0)
    checked(libc.semctl(handle, 0, 0), "semctl")


@probe
def messages_of_system_v():
    handle = checked(libc.msgget(0, 0o1600), "msgget")
    checked(libc.msgsnd(handle, struct.pack("l5s", 3, b"hello"), 5, 0), "msgsnd")
    text = ctypes.create_string_buffer(32)
    libc.msgrcv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int]
    same(checked(libc.msgrcv(handle, text, 16, 3, 0), "msgrcv"), 5)
    same(text.raw[8:13], b"hello")
    checked(libc.msgctl(handle, 0, None), "msgctl")


@probe
def message_queues_of_posix():
    attributes = struct.pack("8l", 0, 4, 64, 0, 0, 0, 0, 0)
    queue = checked(libc.mq_open(b"/conformance", os.O_CREAT | os.O_RDWR, 0o600, attributes), "mq_open")
    libc.mq_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint]
    checked(libc.mq_send(queue, b"low", 3, 1), "mq_send")
    checked(libc.mq_send(queue, b"high", 4, 9), "mq_send")
    text, priority = ctypes.create_string_buffer(64), ctypes.c_uint()
    libc.mq_receive.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    same(checked(libc.mq_receive(queue, text, 64, ctypes.byref(priority)), "mq_receive"), 4)
    same((text.value, priority.value), (b"high", 9))
    checked(libc.mq_unlink(b"/conformance"), "mq_unlink")


def _ring_field(ring, offset):
    return ctypes.c_uint32.from_buffer(ring, offset)


@probe
def io_uring_reads_a_file():
    parameters = bytearray(120)
    view = (ctypes.c_char * 120).from_buffer(parameters)
    fd = syscall("io_uring_setup", 4, view)
    sq_entries, cq_entries = struct.unpack_from("II", parameters)
    head, tail, mask, _, _, _, array_at = struct.unpack_from("7I", parameters, 40)
    cq_head, cq_tail, cq_mask, _, _, cqes = struct.unpack_from("6I", parameters, 80)
    size = max(array_at + sq_entries * 4, cqes + cq_entries * 16)
    ring = mmap.mmap(fd, size, offset=0)
    entries = mmap.mmap(fd, sq_entries * 64, offset=0x10000000)
    file = os.open("/proc/version", os.O_RDONLY)
    data = ctypes.create_string_buffer(64)
    entries[0:64] = struct.pack("BBHiQQIIQ24x", 22, 0, 0, file, 0, ctypes.addressof(data), 16, 0, 77)
    _ring_field(ring, array_at).value = 0
    _ring_field(ring, tail).value += 1
    same(syscall("io_uring_enter", fd, 1, 1, 1, None, 0), 1)
    user, result, _ = struct.unpack_from("QiI", ring, cqes)
    same((user, result, data.value[:5]), (77, 16, b"Linux"))


@probe
def a_terminal_with_job_control():
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("sh", ["sh", "-c", "test -t 0 && stty size && read line && echo got $line && exec sleep 60"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 33, 99, 0, 0))
    text = b""
    os.write(terminal, b"word\n")
    while b"got word" not in text:
        text += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGINT)
    assert b" " in text.splitlines()[0] or b"33 99" in text, text


@probe
def many_terminals():
    pairs = [pty.openpty() for _ in range(64)]
    assert os.ttyname(pairs[63][1]).startswith("/dev/pts/")


@probe
def epoll_eventfd_timerfd_signalfd():
    epoll = select.epoll()
    event = os.eventfd(0)
    timer = checked(libc.timerfd_create(1, 0), "timerfd_create")
    checked(libc.timerfd_settime(timer, 0, struct.pack("4l", 0, 0, 0, 1_000_000), None), "timerfd_settime")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    mask = (ctypes.c_ulong * 16)(1 << (signal.SIGUSR1 - 1))
    sign = checked(libc.signalfd(-1, mask, 0), "signalfd")
    for fd in (event, timer, sign):
        epoll.register(fd, select.EPOLLIN | select.EPOLLET)
    os.eventfd_write(event, 5)
    os.kill(os.getpid(), signal.SIGUSR1)
    seen, end = set(), time.monotonic() + 30
    while seen != {event, timer, sign} and time.monotonic() < end:
        seen |= {fd for fd, _ in epoll.poll(1)}
    same(seen, {event, timer, sign})


@probe
def pidfd_waits_and_signals():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    fd = os.pidfd_open(child)
    signal.pidfd_send_signal(fd, signal.SIGTERM)
    same(os.waitid(os.P_PIDFD, fd, os.WEXITED).si_status, signal.SIGTERM)


@probe
def memory_of_another_process_is_read():
    data = ctypes.create_string_buffer(b"there", 8)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    here = ctypes.create_string_buffer(8)
    local = struct.pack("PN", ctypes.addressof(here), 5)
    remote = struct.pack("PN", ctypes.addressof(data), 5)
    same(checked(libc.process_vm_readv(child, local, 1, remote, 1, 0), "process_vm_readv"), 5)
    same(here.value, b"there")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@probe
def keys_of_the_session():
    syscall("keyctl", 1, 0)  # KEYCTL_JOIN_SESSION_KEYRING
    key = syscall("add_key", b"user", b"conformance", b"secret", 6, -3)
    text = ctypes.create_string_buffer(16)
    same(syscall("keyctl", 11, key, text, 16), 6)
    same(text.value, b"secret")


@probe
def landlock_takes_rights_away():
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/x", "w").close()
        ruleset = syscall("landlock_create_ruleset", struct.pack("Q", 1 << 2), 8, 0)
        checked(libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
        child = os.fork()
        if child == 0:
            syscall("landlock_restrict_self", ruleset, 0)
            try:
                os.open(folder + "/x", os.O_RDONLY)
            except PermissionError:
                os._exit(0)
            os._exit(1)
        same(os.waitpid(child, 0)[1], 0)


@probe
def io_limited_to_one_directory_by_openat2():
    with tempfile.TemporaryDirectory() as folder:
        os.symlink("/etc/passwd", folder + "/link")
        base = os.open(folder, os.O_PATH)
        try:
            syscall("openat2", base, b"link", struct.pack("QQQ", os.O_RDONLY, 0, 0x08), 24)
        except OSError as error:
            same(error.errno, errno.EXDEV)
            return
        raise AssertionError("the link was followed")


@probe
def locks_on_files():
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os._exit(0)
            os._exit(1)
        same(os.waitpid(child, 0)[1], 0)


@probe
def files_without_a_name_with_holes_and_in_ranges():
    # Not in /tmp: an overlay has no nameless files in 6.1.
    fd = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.pwrite(fd, b"x" * 65536, 0)
    checked(libc.fallocate(fd, 3, ctypes.c_long(4096), ctypes.c_long(8192)), "fallocate, punch a hole")
    same(os.pread(fd, 2, 4095), b"x\0")
    other = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)
    same(os.copy_file_range(fd, other, 16384, 0, 0), 16384)
    same(os.lseek(fd, 0, os.SEEK_HOLE), 4096)


@probe
def extended_attributes_and_special_renames():
    with tempfile.TemporaryDirectory() as folder:
        one, two = folder + "/one", folder + "/two"
        for path in (one, two):
            with open(path, "w") as file:
                file.write(path)
        os.setxattr(one, "user.note", b"value")
        same(os.getxattr(one, "user.note"), b"value")
        checked(libc.renameat2(-100, one.encode(), -100, two.encode(), 2), "renameat2, exchange")
        same(open(one).read(), two)
        os.link(one, folder + "/hard")
        same(os.stat(one).st_nlink, 2)
        os.mkfifo(folder + "/fifo")


@probe
def read_and_write_past_the_page_cache():
    fd = os.open("/tmp/direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
    page = mmap.mmap(-1, 4096)
    page.write(b"d" * 4096)
    same(os.writev(fd, [page]), 4096)
    os.unlink("/tmp/direct")


@probe
def sendfile_splice_and_pipes_of_any_size():
    reading, writing = os.pipe()
    same(fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << 20), 1 << 20)
    with open("/bin/sh", "rb") as file:
        same(os.splice(file.fileno(), writing, 4096), 4096)
        same(os.read(reading, 4), b"\x7fELF")
        left, right = socket.socketpair()
        same(os.sendfile(left.fileno(), file.fileno(), 0, 4096), 4096)


@probe
def descriptors_and_credentials_over_a_unix_socket():
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(left, [b"x"], [1, 2])
    same(len(socket.recv_fds(right, 8, 4)[1]), 2)
    same(struct.unpack("3i", left.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1], os.getuid())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0conformance")
    listener.listen()
    socket.socket(socket.AF_UNIX).connect("\0conformance")


@probe
def addresses_by_netlink():
    names = [name for _, name in socket.if_nameindex()]
    same(names, ["lo"])
    assert "127.0.0.1" in run("ip", "-o", "addr"), "no address on lo"
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert f"127.0.0.1:{server.getsockname()[1]}" in run("ss", "-ltn"), "ss does not list a listener"


@probe
def raw_and_packet_sockets_in_a_user_namespace():
    run("unshare", "-Urn", "python3", "-c",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); "
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)")


@probe
def limits_and_priorities():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard >= 4096, hard
    os.nice(5)
    os.sched_setaffinity(0, {0})
    same(os.sched_getaffinity(0), {0})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@probe
def timers_of_posix_and_of_the_process():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.signal(signal.SIGVTALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)  # again and again: the first may come before pause() on a busy host
    signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
    end = time.monotonic() + 60
    hit = []
    signal.signal(signal.SIGVTALRM, lambda *_: hit.append(1))
    while not hit and time.monotonic() < end:
        pass
    assert hit, "no SIGVTALRM"


@probe
def memory_is_locked_advised_and_protected():
    area = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for advice in (mmap.MADV_HUGEPAGE, mmap.MADV_DONTFORK, mmap.MADV_WILLNEED, mmap.MADV_DONTNEED, mmap.MADV_FREE):
        area.madvise(advice)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    checked(libc.mlock(ctypes.c_void_p(address), 65536), "mlock")
    checked(libc.mprotect(ctypes.c_void_p(address), 4096, 1), "mprotect")
    syscall("membarrier", 16, 0)


@probe
def userfaultfd_for_the_program_s_own_faults():
    fd = syscall("userfaultfd", 1)  # UFFD_USER_MODE_ONLY
    api = bytearray(struct.pack("QQQ", 0xAA, 0, 0))
    fcntl.ioctl(fd, 0xC018AA3F, api)
    assert struct.unpack("QQQ", api)[2], "no ioctls"


@probe
def handles_of_files_and_comparing_of_processes():
    handle = bytearray(struct.pack("Ii128x", 128, 0))
    view = (ctypes.c_char * len(handle)).from_buffer(handle)
    syscall("name_to_handle_at", -100, b"/dev/shm", view, ctypes.byref(ctypes.c_int()), 0)
    same(syscall("kcmp", os.getpid(), os.getpid(), 0, 0, 0), 0)


@probe
def proc_as_tools_read_it():
    for name in ("cpuinfo", "meminfo", "loadavg", "stat", "uptime", "vmstat", "version", "mounts", "filesystems",
                 "swaps", "diskstats", "self/maps", "self/smaps", "self/smaps_rollup", "self/status", "self/statm",
                 "self/io", "self/limits", "self/mountinfo", "self/cgroup", "self/oom_score", "self/pagemap",
                 "net/dev", "net/tcp", "net/unix",
                 "sys/kernel/osrelease", "sys/kernel/random/uuid", "sys/fs/inotify/max_user_watches"):
        with open("/proc/" + name, "rb") as file:
            assert file.read(64), f"/proc/{name} is empty"
    same(open(f"/proc/self/task/{os.getpid()}/children").read(), "")
    same(open("/proc/cpuinfo").read().count("processor\t:"), os.cpu_count())


@probe
def a_crash_leaves_a_core():
    with tempfile.TemporaryDirectory() as folder:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            os.abort()
        status = os.waitpid(child, 0)[1]
        assert os.WCOREDUMP(status), f"no core: wait status {status:#x}"


@probe
def processes_in_great_number():
    children = []
    for _ in range(100):
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@probe
def scripts_and_their_interpreter_lines():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/script"
        with open(path, "w") as file:
            file.write("#!/usr/bin/env -S sh -e\necho $0 $1\n")
        os.chmod(path, 0o755)
        same(run(path, "word").split(), [path, "word"])


if __name__ == "__main__":
    main()
