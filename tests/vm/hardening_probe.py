# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest, for test_hardening.py: tries what a hostile program would try, and prints what came of it as JSON.

An attempt is "ok", the name of its errno, or what was read."""
import ctypes
import errno
import fcntl
import json
import os
import platform
import pty
import socket
import struct
import termios

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {  # x86_64, aarch64
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "iopl": (172, None), "ioperm": (173, None),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "syslog": (103, 116),
    "reboot": (169, 142), "swapon": (167, 224), "clock_settime": (227, 112), "settimeofday": (170, 170),
    "pivot_root": (155, 41), "mount": (165, 40), "open_by_handle_at": (304, 265), "acct": (163, 89),
    "quotactl": (179, 60), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "vhangup": (153, 58),
}
KINDS = ("dummy veth bridge bond team macvlan macvtap ipvlan ipvtap vlan vxlan geneve gre gretap erspan ip6gre ip6gretap "
         "ipip sit ip6tnl vti vti6 xfrm tun ifb nlmon vcan vxcan can wireguard vrf hsr macsec gtp bareudp amt netdevsim "
         "batadv ipoib lowpan ppp rmnet virt_wifi wwan").split()


def name_of(number):
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]  # Python's name for it is another one's


def outcome(value):
    return "ok" if value >= 0 else name_of(ctypes.get_errno())


def call(name, *arguments):
    number = NUMBERS[name][platform.machine() == "aarch64"]
    if number is None:
        return "ENOSYS"
    ctypes.set_errno(0)
    return outcome(LIBC.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]))


def opened(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC))
    except OSError as error:
        return name_of(error.errno)
    return "ok"


def text_of(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        return name_of(error.errno)


def written(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        return name_of(error.errno)
    return "ok"


def mounted(kind):
    ctypes.set_errno(0)
    return outcome(LIBC.mount(b"none", b"/tmp", kind.encode(), 0, None))


def node(major, minor):
    path = f"/tmp/node-{major}-{minor}"
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(major, minor))
    except OSError as error:
        return name_of(error.errno)
    return opened(path, os.O_RDWR)


def new_link(kind):
    """RTM_NEWLINK, as `ip link add type KIND` sends it."""
    def attribute(number, payload):
        size = 4 + len(payload)
        return struct.pack("<HH", size, number) + payload + bytes(-size % 4)

    body = struct.pack("<BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"probe0\0")
    body += attribute(18 | 0x8000, attribute(1, kind.encode() + b"\0"))
    message = struct.pack("<IHHII", 16 + len(body), 16, 0x0001 | 0x0004 | 0x0400 | 0x0200, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as route:
        route.bind((0, 0))
        route.send(message)
        _, kind, _, _, _, code = struct.unpack_from("<IHHIIi", route.recv(65536))
    assert kind == 2, kind
    return "ok" if code == 0 else name_of(-code)


def family(number):
    try:
        socket.socket(number, socket.SOCK_STREAM if number != socket.AF_PACKET else socket.SOCK_RAW).close()
    except OSError as error:
        return name_of(error.errno)
    return "ok"


def line_discipline(number):
    _, terminal = pty.openpty()
    try:
        fcntl.ioctl(terminal, termios.TIOCSETD, struct.pack("i", number))
    except OSError as error:
        return name_of(error.errno)
    return "ok"


def program_load():
    """BPF_PROG_LOAD of the smallest program there is: return 0."""
    code = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))
    terms = ctypes.create_string_buffer(b"GPL")
    attributes = ctypes.create_string_buffer(struct.pack("<IIQQ", 1, 2, ctypes.addressof(code),
                                                         ctypes.addressof(terms)).ljust(120, b"\0"))
    return call("bpf", 5, attributes, 120)


def map_create():
    return call("bpf", 0, ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 4, 1).ljust(120, b"\0")), 120)


def perf_event():
    """A counter of this process, of nothing but its user space."""
    attributes = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", 1, 112, 1, 0, 0, 0, 1 | 1 << 5 | 1 << 6)
                                             .ljust(112, b"\0"))
    return call("perf_event_open", attributes, 0, -1, -1, 0)


def addresses():
    """How many symbols of the kernel show where they are."""
    lines = text_of("/proc/kallsyms").splitlines()
    return sum(1 for line in lines if " " in line and int(line.split()[0], 16) != 0)


def calls():
    name = ctypes.create_string_buffer(b"/tmp/x")
    results = {n: call(n, name, 0, 0) for n in ("init_module", "delete_module", "swapon", "acct")}
    results.update({n: call(n, 0, 0, 0, 0, 0) for n in ("kexec_load", "settimeofday", "syslog")})
    results["syslog"] = call("syslog", 3, ctypes.create_string_buffer(4096), 4096)
    results["finit_module"] = call("finit_module", os.open("/bin/true", os.O_RDONLY), name, 0)
    results["kexec_file_load"] = call("kexec_file_load", -1, -1, 0, name, 0)
    results["iopl"] = call("iopl", 3)
    results["ioperm"] = call("ioperm", 0x80, 1, 1)
    results["reboot"] = call("reboot", 0xFEE1DEAD - (1 << 32), 672274793, 0x89ABCDEF - (1 << 32), 0)  # CAD on
    results["clock_settime"] = call("clock_settime", 0, ctypes.create_string_buffer(struct.pack("<qq", 1, 0)))
    results["userfaultfd"] = call("userfaultfd", 0)
    results["userfaultfd of the program"] = call("userfaultfd", 1)
    results.update({"bpf program": program_load(), "bpf map": map_create(), "perf": perf_event()})
    return results


def main():
    settings = json.loads(os.environ["SETTINGS"])
    paths = ["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/net/tun", "/dev/vda", "/dev/cpu/0/msr",
             "/proc/kcore", "/dev/fuse", "/dev/vhost-vsock", "/dev/kvm"]
    print(json.dumps({
        "uid": os.getuid(),
        "calls": calls(),
        "paths": {path: opened(path) for path in paths},
        "nodes": {f"{major}:{minor}": node(major, minor) for major, minor in ((1, 1), (1, 2), (1, 4), (10, 200), (202, 0))},
        "links": {kind: new_link(kind) for kind in KINDS},
        "devices": sorted(name for _, name in socket.if_nameindex()),
        "families": {name: family(number) for name, number in (("vsock", 40), ("can", 29), ("alg", 38), ("bluetooth", 31),
                                                               ("xdp", 44), ("tipc", 30), ("packet", socket.AF_PACKET))},
        "mounts": {kind: mounted(kind) for kind in ("debugfs", "tracefs", "securityfs", "bpf", "configfs", "devtmpfs")},
        "disciplines": {str(number): line_discipline(number) for number in range(1, 31)},
        "settings": {name: text_of("/proc/sys/" + name) for name in settings},
        "writes": {name: written("/proc/sys/" + name, "0") for name in settings + ["kernel/core_pattern"]},
        "sysrq": written("/proc/sysrq-trigger", "h"),
        "addresses": addresses(),
        "pci": len(os.listdir("/sys/bus/pci/devices")) if os.path.isdir("/sys/bus/pci") else "no bus",
    }))


main()
