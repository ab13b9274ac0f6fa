#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly the functions that include/resoluto/ declares, all of them resoluto_*, and both
forms of the library hold them.

usage: check-exports.py NM SHARED-LIBRARY STATIC-LIBRARY"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DECLARATION = re.compile(r"^(?!typedef)[a-z][\w ]*[ *](resoluto_\w+)\(", re.M)


def symbols(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if len(line.split()) >= 3}


def main():
    nm, shared, static = sys.argv[1:]
    declared = set()
    for header in sorted(ROOT.glob("include/resoluto/*.h")):
        declared |= set(DECLARATION.findall(COMMENT.sub("", header.read_text())))
    exported = symbols(nm, "-D", "--defined-only", shared)
    bad = 0
    for name in sorted(exported - declared):
        print(f"{name} is exported, and no public header declares it")
        bad += 1
    for name in sorted(declared - exported):
        print(f"a public header declares {name}, and the shared library does not export it")
        bad += 1
    for name in sorted(declared - symbols(nm, "--defined-only", static)):
        print(f"a public header declares {name}, and the static library does not hold it")
        bad += 1
    if len(declared) < 20:
        print(f"only {len(declared)} declarations found: the check looks in the wrong place")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
