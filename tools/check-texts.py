#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file says its licence on top; none holds marks of unfinished work, paths of somebody's machine, or the
address of a package registry other than those the tools use by themselves."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["bench", "docs", "examples", "guest", "guest-kernel", "include", "scripts", "spec", "src", "tests", "tools", ".ci"]
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = (".c", ".h", ".py", ".sh", ".map", ".config")
NAMED = {"meson.build", "meson_options.txt", "Makefile", "run", "length-exceptions"}
LICENCE_LINES = 3  # the first may be #!
# A letter in brackets keeps each word from finding itself here.
FORBIDDEN = {
    "unfinished work": re.compile(r"\b(?:[T]ODO|[F]IXME|(?<!asked )for no[w]\b|(?<!Function )not implemente[d])"),
    "a path of one machine": re.compile(r"(?<![\w/.-])/(?:wor[k]|roo[t]|hom[e]/(?!sandbox|user\b|you\b))/\w"),
    "a package registry": re.compile(r"--(?:extra-)?index-ur[l]|GOPROX[Y](?!=off)|npm_config_registr[y]|trusted-hos[t]"),
}


def files():
    yield from (p for p in ROOT.iterdir() if p.is_file() and (p.name in NAMED or p.suffix == ".md"))
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in relative and "/samples/" not in relative:
                yield path


def main():
    bad = seen = 0
    for path in sorted(files()):
        lines = path.read_text(errors="replace").splitlines()
        name = path.relative_to(ROOT).as_posix()
        seen += 1
        if path.suffix in SOURCES or path.name in NAMED:
            if not any(LICENCE in line for line in lines[:LICENCE_LINES]):
                print(f"{name} does not say its licence on top ({LICENCE})")
                bad += 1
        for number, line in enumerate(lines, 1):
            for what, pattern in FORBIDDEN.items():
                if pattern.search(line):
                    print(f"{name}:{number}: {what}: {line.strip()[:80]}")
                    bad += 1
    if seen < 300:
        print(f"only {seen} files found: the check looks in the wrong place")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
