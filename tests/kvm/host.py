# SPDX-License-Identifier: Apache-2.0
"""The test host: a Debian with a working /dev/kvm, since QEMU's emulator implements AMD's SVM (docs/design/kvm.md).

It boots once for all chosen tests, from two disks: a root that is built once and cached, and the product as it is now,
laid over it.  What the tests inside found comes back as one JSON object a line."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

from conftest import ROOT, build_dir, needed

sys.path.append(str(ROOT / "tests/vm"))
from guest_host import tsc_khz  # noqa: E402

MEMORY = "2G"  # also what a sandbox there has by default, which is less than on a large host
CPUS = 1  # with more, QEMU before 8.1 may run stale code of a kernel that patches itself (docs/design/machine.md)
CPU = "max,la57=off"  # a fifth level of page tables makes each nested walk so long that boots take minutes
SECONDS_MAX = 1800  # of a host on which every test waits in vain
# Without a heartbeat (inside.py): the host itself stands still, as emulated SVM sometimes does, not a test in it.
SECONDS_SILENT = 120
BOOTS_MAX = 10  # one nested boot in some 25 makes it stand still; the whole suite has 41
CONSOLE_TAIL = 4000

# Compiling is what the test host cannot do: what these would make is on the product disk already.
STAND_IN = "#!/bin/sh\nexit 0\n"
BASE_IMAGE = "resoluto-sandbox-base:"


class ProductDisk:
    """Product, sources and caches as a squashfs, at the places where an installation has them."""

    def __init__(self, path):
        self.tar_path = path.with_suffix(".tar")
        self.tar = tarfile.open(self.tar_path, "w", format=tarfile.PAX_FORMAT)
        self.path = path

    def add(self, source, name):
        self.tar.add(source, name, filter=self.owned_by_root)

    @staticmethod
    def owned_by_root(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return None if "__pycache__" in member.name else member

    def text(self, name, text, mode=0o644):
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(text.encode()), mode
        self.tar.addfile(member, io.BytesIO(text.encode()))

    def link(self, name, target):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = tarfile.SYMTYPE, target
        self.tar.addfile(member)

    def finish(self):
        self.tar.close()
        with open(self.tar_path, "rb") as tar:
            subprocess.run(["tar2sqfs", "-q", "-c", "lz4", "-f", self.path], stdin=tar, check=True)
        self.tar_path.unlink()


def add_installation(disk, temporary):
    """`meson install`, as provisioning does it; the runner also where a build folder has it."""
    installed = temporary / "installed"
    subprocess.run(["meson", "install", "-C", build_dir(), "--no-rebuild", "--quiet", "--destdir", installed], check=True)
    if not (installed / "usr/local/bin/resoluto-sandbox").exists():
        raise RuntimeError(f"{build_dir()} installs to another place than /usr/local")
    disk.add(installed / "usr/local", "usr/local")
    disk.add(build_dir() / "guest/resoluto-runner", "src/build/guest/resoluto-runner")
    disk.link("src/build/src/cli/resoluto-sandbox", "/usr/local/bin/resoluto-sandbox")


def add_sources(disk):
    for name in ("scripts", "include", "tests/conftest.py", "tests/kvm", "tests/e2e/test_nothing_left.py"):
        disk.add(ROOT / name, f"src/{name}")
    disk.link("job", "src/tests/kvm/job.sh")
    for name in ("meson", "ninja"):
        disk.text(f"src/stand-ins/{name}", STAND_IN, 0o755)


def add_image(disk):
    """The default image, out of the cache it was provisioned to."""
    rootfs = pathlib.Path(needed("RESOLUTO_TEST_ROOTFS"))
    refs = json.loads((rootfs.parents[1] / "refs.json").read_text())
    refs["refs"] = {name: ref for name, ref in refs["refs"].items() if name.startswith(BASE_IMAGE)}
    disk.text("var/cache/resoluto-sandbox/refs.json", json.dumps(refs))
    for path in (rootfs, rootfs.with_suffix(".json")):
        disk.add(path, f"var/cache/resoluto-sandbox/images/{path.name}")


def package_record(name, depends):
    return (f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: a kernel\n"
            f"Depends: {depends}\nFilename: ./none.deb\nSize: 1\nSHA256: {'0' * 64}\n\n")


def add_kernels(disk):
    """The kernels of the sandboxes, and an archive that knows the distribution's, as a host has it."""
    kernels = pathlib.Path(needed("RESOLUTO_TEST_KERNELS"))
    for path in kernels.iterdir():
        if (path / "MACHINE").exists():
            disk.add(path, f"var/cache/resoluto-sandbox/kernel/{path.name}")
    version = (kernels / "distro/VERSION").read_text().split()[0]
    image = f"linux-image-{version}"
    disk.text("src/archive/Packages", package_record("linux-image-cloud-amd64", image) + package_record(image, ""))
    disk.text("etc/apt/sources.list", "deb [trusted=yes] file:/src/archive ./\n")


def build_product_disk(temporary, selected):
    disk = ProductDisk(temporary / "product.squashfs")
    add_installation(disk, temporary)
    add_sources(disk)
    add_image(disk)
    add_kernels(disk)
    disk.text("src/selected", "".join(f"tests/kvm/{name}\n" for name in selected))
    disk.finish()
    return disk.path


def build_host(temporary):
    """Returns the cached folder of build-host.sh, and an initramfs for it."""
    folder = pathlib.Path(needed("RESOLUTO_TEST_CACHE")) / "kvm"
    subprocess.run(["bash", ROOT / "tests/kvm/build-host.sh", folder], check=True)
    initrd = temporary / "initrd.img"
    subprocess.run(["bash", ROOT / "scripts/build-initramfs.sh", build_dir() / "tests/kvm/kvm_host_init",
                    folder / "kernel", initrd], check=True)
    return folder, initrd


def qemu_arguments(folder, initrd, product, temporary):
    def file(path):
        return str(path).replace(",", ",,")

    disks = []
    for name, path in (("host", folder / "root.squashfs"), ("product", product)):
        disks += ["-drive", f"if=none,id={name},format=raw,readonly=on,file={file(path)}",
                  "-device", f"virtio-blk-device,drive={name},serial={name}"]
    return ["setpriv", "--pdeathsig", "KILL", shutil.which("qemu-system-x86_64") or "qemu-system-x86_64",
            "-accel", "tcg", "-M", "microvm,rtc=on", "-cpu", CPU, "-smp", str(CPUS), "-m", MEMORY,
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", folder / "kernel/vmlinux", "-initrd", initrd, *disks,
            "-chardev", f"file,id=console,path={file(temporary / 'console')}", "-serial", "chardev:console",
            "-device", "virtio-serial-device,max_ports=2",
            "-chardev", f"file,id=report,path={file(temporary / 'report')}",
            "-device", "virtserialport,nr=1,chardev=report,name=report",
            "-append", f"console=ttyS0 quiet reboot=t panic=-1 tsc_early_khz={tsc_khz()} tsc=reliable"]


class Report:
    """What became of the tests inside."""

    def __init__(self):
        self.console = ""
        self.cases = {}

    def add(self, text):
        for line in text.splitlines():
            if line.endswith("}"):  # not one that the end of the host cut off
                part = json.loads(line)
                self.cases.setdefault(part["case"], []).append(part)

    def is_complete(self, name):
        parts = self.cases.get(name, [])
        return bool(parts) and (parts[-1]["when"] == "teardown" or parts[-1]["outcome"] != "passed")

    def forget(self, names):
        """They begin anew, on another host."""
        for name in names:
            self.cases.pop(name, None)

    def trouble_of(self, name):
        """Why this test is no success; "" if it is one."""
        parts = self.cases.get(name, [])
        for part in parts:
            if part["outcome"] != "passed":
                return f"{part['outcome']} inside, at {part['when']}, after {part['seconds']:.1f} s\n{part['text']}"
        if [part["when"] for part in parts] != ["setup", "call", "teardown"]:
            return f"it did not run to its end inside; the console of the test host ends with\n{self.console}"
        return ""


def text_of(path):
    return path.read_text(errors="replace") if path.exists() else ""


def stands_still(report, since):
    """Nothing came for so long that nobody in there can be running."""
    last = report.stat().st_mtime if report.exists() else since
    return time.time() - max(last, since) > SECONDS_SILENT


def boot(words, report):
    """Returns what went wrong, which is more than that a test failed, and whether another boot may help."""
    start = time.time()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as host:
        while time.time() - start < SECONDS_MAX and not stands_still(report, start):
            try:
                _, complaint = host.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                continue
            trouble = f"QEMU ended with {host.returncode}: {complaint}\n" if host.returncode != 0 else ""
            return trouble, False
        host.kill()
    return f"it was ended after {time.time() - start:.0f} s\n", stands_still(report, start)


def run_once(folder, initrd, selected, temporary, report):
    """One boot; returns whether the host stood still."""
    product = build_product_disk(temporary, selected)
    trouble, stood_still = boot(qemu_arguments(folder, initrd, product, temporary), temporary / "report")
    console = text_of(temporary / "console")
    if os.environ.get("RESOLUTO_TEST_CONSOLE"):
        pathlib.Path(os.environ["RESOLUTO_TEST_CONSOLE"]).write_text(console)
    report.console = console[-CONSOLE_TAIL:] + trouble
    report.add(text_of(temporary / "report"))
    return stood_still


def run_inside(selected):
    """Boot the test host, let it run these tests, and return its Report.  Where the host stands still, another one
    goes on with what is left: that is its emulator's fault; a test that hangs ends by its own limit, as failed."""
    report = Report()
    for _ in range(BOOTS_MAX):
        with tempfile.TemporaryDirectory(prefix="resoluto-kvm-") as name:
            try:
                folder, initrd = build_host(pathlib.Path(name))
                stood_still = run_once(folder, initrd, selected, pathlib.Path(name), report)
            except (OSError, RuntimeError, subprocess.CalledProcessError) as failure:
                report.console = f"nothing: the test host could not be made: {failure}"
                return report
        selected = [name for name in selected if not report.is_complete(name)]
        if not stood_still or not selected:
            break
        print(f"the test host stood still; {len(selected)} tests are left", file=sys.stderr)
        report.forget(selected)
    return report
