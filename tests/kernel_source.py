# SPDX-License-Identifier: Apache-2.0
"""Something for scripts/build-guest-kernel.sh to build in a moment: a source of a few files that answers to the same targets of
make as the kernel's, a checkout with a patch for it, and the distribution's package of it."""
import os
import shutil
import subprocess
import tarfile

from conftest import ROOT
from programs import program

MAKEFILE = """VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
.PHONY: mrproper allnoconfig vmlinux kernelrelease

mrproper:
	rm -f .config
allnoconfig:
	sed 's/^\\(CONFIG_.*\\)=n$$/# \\1 is not set/' $(KCONFIG_ALLCONFIG) >.config
	test ! -f break-config || sed -i '/CONFIG_SQUASHFS=/d; s/^# CONFIG_MODULES is not set/CONFIG_MODULES=y/' .config
vmlinux:
	for i in $$(seq 500); do echo "  CC      part$$i.o"; done
	test ! -f slow || { touch $(FLAG) 2>/dev/null; sleep 300; }
	test ! -f large || head -c 200000000 /dev/zero >filler
	test ! -f broken || { echo 'kernel.c:1: error: it does not compile'; exit 1; }
	test -f vmlinux || $(CROSS_COMPILE)gcc -o vmlinux kernel.c
	for i in $$(seq 500); do echo "  LD      part$$i.o"; done
kernelrelease:
	@echo 6.1.7-resoluto
"""

PATCH = """SPDX-License-Identifier: GPL-2.0
Subject: another answer

--- a/kernel.c
+++ b/kernel.c
@@ -1,4 +1,4 @@
 int main(void)
 {
-	return 1;
+	return 2;
 }
"""


def make_source(folder, flag):
    """A file named slow, large, broken, break-config or vmlinux in it changes what it does; flag: what a slow one touches."""
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE.replace("$(FLAG)", str(flag)))
    (folder / "COPYING").write_text("the licence of the kernel\n")
    (folder / "kernel.c").write_text("int main(void)\n{\n\treturn 1;\n}\n")


def make_checkout(folder):
    """The scripts and our real configuration, with the patch for that source instead of the kernel's."""
    folder.mkdir()
    for name in ("scripts", "guest-kernel"):
        shutil.copytree(ROOT / name, folder / name)
    for patch in folder.glob("guest-kernel/patches/*"):
        patch.unlink()
    (folder / "guest-kernel/patches/0001-answer.patch").write_text(PATCH)


def package(source, folder):
    """The source as the package linux-source-6.1; returns a PATH with programs of apt that know it, and all else."""
    root = folder / "package"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr/src").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("Package: linux-source-6.1\nVersion: 6.1.7-1\nArchitecture: all\n"
                                         "Maintainer: nobody <nobody@example.com>\nDescription: a small one\n")
    with tarfile.open(root / "usr/src/linux-source-6.1.tar.xz", "w:xz") as archive:
        archive.add(source, "linux-source-6.1")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, folder / "linux-source-6.1_6.1.7-1_all.deb"], check=True,
                   capture_output=True)
    answers = {
        "dpkg-query": "*linux-source*) exit 1 ;;",
        "apt-get": f"*download*linux-source*) exec cp {folder}/*.deb . ;;",
        "apt-cache": 'depends*linux-source*) echo "linux-source"; echo "  Depends: linux-source-6.1" ;;\n'
                     'show*linux-source*) echo "Version: 6.1.7-1"; echo "SHA256: 0123" ;;',
    }
    for name, cases in answers.items():
        program(folder / "bin", name, f'#!/bin/sh\ncase "$*" in\n{cases}\n*) exec {shutil.which(name)} "$@" ;;\nesac\n')
    return f"{folder / 'bin'}:{os.environ['PATH']}"
