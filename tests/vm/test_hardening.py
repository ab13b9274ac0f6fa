# SPDX-License-Identifier: Apache-2.0
"""What the guest kernel lacks, as properties: seen by a program, by root of its user namespace, and by root of the guest.

docs/guest-kernel.md ("Hardening") lists them.  The distribution's kernel has more in it, and the runner takes it away;
ours never had it."""
import io
import json
import re
import tarfile

import pytest

from conftest import ROOT, build_dir
from newc import members_of

HERE = ROOT / "tests/vm"
REFUSED = {"EPERM", "EACCES"}
SETTINGS = {
    "kernel/dmesg_restrict": "1", "kernel/kptr_restrict": "2", "kernel/perf_event_paranoid": "4",
    "kernel/unprivileged_bpf_disabled": "1", "net/core/bpf_jit_harden": "2", "kernel/modprobe": "",
    "kernel/modules_disabled": "1", "kernel/kexec_load_disabled": "1", "dev/tty/ldisc_autoload": "0",
    "vm/unprivileged_userfaultfd": "0", "kernel/panic_on_oops": "1", "kernel/sysrq": "0",
    "fs/protected_symlinks": "1", "fs/protected_hardlinks": "1", "fs/protected_fifos": "2",
    "fs/protected_regular": "2", "net/ipv4/ip_unprivileged_port_start": "0",
}
# What a kernel of ours has none of; the distribution's has it, with 1, 2 or "" in it.
ONLY_OF_THE_DISTRIBUTION = {"kernel/modprobe", "kernel/modules_disabled", "kernel/kexec_load_disabled", "kernel/sysrq"}


def is_ours(kernel):
    return kernel["RESOLUTO_LOCAL_MACHINE"].endswith("-built")


@pytest.fixture(scope="module")
def seen(kernel, sandbox, tmp_path_factory):
    """What the probe saw, as the program and as root of a user namespace with a network of its own."""
    work = tmp_path_factory.mktemp("probe")
    (work / "probe.py").write_text((HERE / "hardening_probe.py").read_text())
    script = "python3 probe.py && unshare --user --map-root-user --net --mount --ipc --pid --fork python3 probe.py"
    done = sandbox.run("run", "--memory=256Mi", "--workspace", work, "--env", "SETTINGS=" + json.dumps(list(SETTINGS)),
                       "--", "/bin/sh", "-c", script, env=kernel, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_who_is_asking(seen):
    assert [probe["uid"] for probe in seen] == [1000, 0]


def test_no_network_device_appears(seen):
    for probe in seen:
        made = {kind: code for kind, code in probe["links"].items() if code == "ok"}
        assert not made and probe["devices"] == ["lo"]
        assert probe["paths"]["/dev/net/tun"] == "ENOENT"
    # Not for want of rights: a namespace's root has them, and still no such kind is there.
    assert {code for code in seen[1]["links"].values()} <= {"EOPNOTSUPP"}, seen[1]["links"]


def test_no_socket_reaches_out_of_the_machine(seen):
    for probe in seen:
        for name in ("vsock", "can", "bluetooth", "tipc"):
            assert probe["families"][name] == "EAFNOSUPPORT", probe["families"]


def test_no_code_gets_into_the_kernel(seen, kernel):
    missing = {"ENOSYS"} if is_ours(kernel) else REFUSED
    for probe in seen:
        calls = probe["calls"]
        for name in ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"):
            assert calls[name] in missing, (name, calls[name])
        assert calls["bpf program"] in REFUSED and calls["bpf map"] in REFUSED, calls
        assert calls["perf"] in REFUSED, calls
        usable = {number for number, code in probe["disciplines"].items() if code == "ok"}
        assert usable <= {"27"}, usable  # N_NULL: reads nothing, writes nothing


def test_nothing_shows_or_changes_memory_and_ports(seen, kernel):
    for probe in seen:
        there = {path: code for path, code in probe["paths"].items() if code not in {"ENOENT"} | REFUSED}
        assert not there
        assert probe["nodes"] == {node: "EPERM" for node in probe["nodes"]}
        assert probe["calls"]["iopl"] in REFUSED | {"ENOSYS"} and probe["calls"]["ioperm"] in REFUSED | {"ENOSYS"}
        assert probe["addresses"] == 0 and probe["calls"]["syslog"] in REFUSED
        assert probe["pci"] == ("no bus" if is_ours(kernel) else 0)
        assert probe["paths"]["/proc/kcore"] == "ENOENT" or not is_ours(kernel)


def test_no_view_of_the_kernel_can_be_mounted(seen, kernel):
    missing = {"ENODEV"} | REFUSED
    for probe in seen:
        for kind in ("debugfs", "tracefs", "securityfs", "configfs", "devtmpfs"):
            assert probe["mounts"][kind] in missing, probe["mounts"]


def test_the_machine_is_not_the_programs(seen):
    for probe in seen:
        for name in ("swapon", "acct", "clock_settime", "settimeofday"):
            assert probe["calls"][name] in REFUSED | {"ENOSYS"}, (name, probe["calls"][name])
        # A process namespace's root may end that namespace, and has nothing else to say.
        assert probe["calls"]["reboot"] in ({"EINVAL"} if probe["uid"] == 0 else REFUSED), probe["calls"]["reboot"]
        assert probe["sysrq"] != "ok"
        assert probe["calls"]["userfaultfd"] in REFUSED, probe["calls"]
    # What it may have: faults of its own memory.
    assert seen[0]["calls"]["userfaultfd of the program"] == "ok"


def test_the_settings_hold(seen, kernel):
    program, namespace = (probe["settings"] for probe in seen)
    for name, value in SETTINGS.items():
        if is_ours(kernel) and name in ONLY_OF_THE_DISTRIBUTION:
            value = "ENOENT"
        if name == "net/core/bpf_jit_harden":  # 0600; of a kernel without that compiler there is nothing to harden
            assert program[name] == "EACCES" or is_ours(kernel) and program[name] == "ENOENT"
        else:
            assert program[name] == value, name
        # Those of the network are another namespace's there.
        assert name.startswith("net/") or namespace[name] == value, name
    for probe in seen:
        written = {name for name, code in probe["writes"].items() if code == "ok"}
        assert all(name.startswith("net/") and probe["uid"] == 0 for name in written), written


def image_of(folder, links):
    """An image with one program, under two names, and these links."""
    program = (build_dir() / "tests/vm/key_probe").read_bytes()
    with tarfile.open(folder / "image.tar", "w") as archive:
        for name in ("program", "sbin/request-key"):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(program), 0o755
            archive.addfile(member, io.BytesIO(program))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return f"tar:{folder / 'image.tar'}"


def test_the_kernel_starts_no_program_of_the_image(sandbox, kernel, tmp_path):
    """One that it would start as root, beside the sandbox's rules, for a key that a program asks for."""
    done = sandbox.run("run", "--memory=256Mi", "--image", image_of(tmp_path, {}), "--", "/program", env=kernel)
    assert (done.returncode, done.stdout) == (0, b"ENOENT not started\n"), (done.stdout, done.stderr)


@pytest.mark.parametrize("workdir", ["/proc/2/root", "/proc/1/root", "/proc/1/cwd", "/link/sub", "/chain"])
def test_no_working_directory_lies_outside_of_the_root(sandbox, kernel, tmp_path, workdir):
    """Root follows such links of processes where the program could not: the root of the kernel's threads is another one."""
    image = image_of(tmp_path, {"link": "/proc/2/root", "chain": "/link"})
    done = sandbox.run("run", "--memory=256Mi", "--image", image, "--workdir", workdir, "--", "/program", env=kernel)
    assert (done.returncode, done.stdout) == (126, b""), (done.stdout, done.stderr)
    assert workdir.encode() in done.stderr


def test_root_gives_away_nothing_behind_the_image_s_links(sandbox, kernel, tmp_path):
    """A home in the control groups, which would be the program's then."""
    done = sandbox.run("run", "--memory=256Mi", "--image", image_of(tmp_path, {"home": "/sys/fs/cgroup"}), "--", "/program",
                       "/proc/self/cgroup", env=kernel)
    assert (done.returncode, done.stdout) == (125, b""), (done.stdout, done.stderr)
    assert b"make /home/sandbox" in done.stderr


def test_a_home_may_lie_behind_an_absolute_link(sandbox, kernel, tmp_path):
    done = sandbox.run("run", "--memory=256Mi", "--image", image_of(tmp_path, {"home": "/sbin"}), "--", "/program",
                       "/proc/self/cgroup", env=kernel)
    assert (done.returncode, done.stdout) == (0, b"0::/sandbox\n"), (done.stdout, done.stderr)


@pytest.mark.parametrize("target", ["/proc/1/maps", "/proc/1/root/init", "/dev/ttyS0", "/etc"])
def test_root_shows_nothing_behind_the_image_s_links(sandbox, kernel, tmp_path, target):
    done = sandbox.run("run", "--memory=256Mi", "--image", image_of(tmp_path, {"etc/passwd": target}), "--", "/program",
                       "/etc/passwd", env=kernel)
    assert (done.returncode, done.stdout) == (0, b"sandbox:x:1000:1000::/home/sandbox:/bin/sh\n"), (done.stdout, done.stderr)


def test_every_setting_of_the_runner_is_looked_at():
    table = (ROOT / "guest/settings.c").read_text().split("settings[] = {")[1].split("\n};")[0]
    listed = dict(re.findall(r'\{ "([a-z0-9_/]+)", "([^"]*)",', table))
    assert {name: value.replace("\\n", "") for name, value in listed.items()} == SETTINGS


# --- root of the guest ---


def archive_of(members):
    """A newc archive of {name: (mode, bytes)}."""
    out = b""
    for number, (name, (mode, data)) in enumerate([*members.items(), ("TRAILER!!!", (0, b""))], 1000):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return out


@pytest.fixture(scope="module")
def root_saw(kernel, sandbox, tmp_path_factory):
    """{when: {attempt: outcome}}: root_probe.c in the place of the runner, which it starts."""
    with open(kernel["RESOLUTO_LOCAL_INITRD"], "rb") as file:
        plain = file.read()
    members = members_of(plain)
    modules = [data for name, data in members.items() if name.startswith("modules/") and "overlay" in name]
    more = {"runner": (0o100755, members["init"]), "init": (0o100755, (build_dir() / "tests/vm/root_probe").read_bytes()),
            "early": (0o100755, b""), "spare.ko": (0o100644, modules[0] if modules else b"no module"), "scratch": (0o040755, b"")}
    initrd = tmp_path_factory.mktemp("initrd") / "initrd.img"
    initrd.write_bytes(plain + bytes(-len(plain) % 4) + archive_of(more))
    environment = {**kernel, "RESOLUTO_LOCAL_INITRD": str(initrd)}
    done = sandbox.run("run", "--json", "--memory=256Mi", "--", "sleep", "3600", env=environment, timeout=900)
    result = json.loads(done.stdout)
    assert result["signal"] == 10, result  # the probe ended it
    lines = re.findall(r"root-probe: (\w+) (\S+) (\w+)", result["substrate_logs"])
    return {when: {name: code for at, name, code in lines if at == when} for when in ("before", "after")}


def test_root_of_the_guest_had_what_is_taken_away(root_saw, kernel):
    """Else the tests below would prove nothing about the runner."""
    before = root_saw["before"]
    if is_ours(kernel):
        assert before["init_module"] == before["finit_module"] == before["kexec_load"] == "ENOSYS"
        assert before["/dev/mem"] == "ENXIO"
    else:
        assert before["init_module"] == "ENOEXEC" and before["finit_module"] == "ok", before
        assert before["kexec_load"] == before["/dev/mem"] == before["ioperm"] == before["iopl"] == "ok", before


def test_root_of_the_guest_cannot_change_the_kernel(root_saw, kernel):
    after = root_saw["after"]
    missing = {"ENOSYS"} if is_ours(kernel) else {"EPERM"}
    for name in ("init_module", "finit_module", "kexec_load", "kexec_file_load"):
        assert after[name] in missing, (name, after[name])
    assert after["ioperm"] in {"EPERM", "ENOSYS"} and after["iopl"] in {"EPERM", "ENOSYS"}, after
    for name in ("/dev/mem", "/dev/kmem", "/dev/port", "msr", "tun"):
        assert after[name] in {"EPERM", "ENXIO", "ENODEV"}, (name, after[name])
    assert after["kcore"] in ({"ENOENT"} if is_ours(kernel) else {"EPERM"})


def test_root_of_the_guest_makes_no_network_device(root_saw):
    links = {name: code for name, code in root_saw["after"].items() if name.startswith("link-")}
    assert len(links) == 6 and set(links.values()) == {"EOPNOTSUPP"}, links


def test_the_kernel_starts_no_program(root_saw, kernel):
    """Ours has no way to: not even root can name one.  The distribution's is left a place that has none to start."""
    assert root_saw["before"]["helper"] == ("ENOENT" if is_ours(kernel) else "ok")
    assert root_saw["after"]["helper"] == "ENOENT"


def test_the_kernel_s_root_is_root_s(root_saw):
    assert root_saw["after"]["root-of-others"] == "EPERM"


def test_root_of_the_guest_takes_nothing_back(root_saw, kernel):
    taken = {name: code for name, code in root_saw["after"].items() if name.startswith("take-back-")}
    assert len(taken) == 4 and "ok" not in taken.values(), taken
    if is_ours(kernel):
        assert root_saw["after"]["mount-debugfs"] == root_saw["after"]["mount-tracefs"] == "ENODEV"
    else:
        assert root_saw["after"]["mount-securityfs"] == "ok" and taken["take-back-lockdown"] == "EPERM", taken
