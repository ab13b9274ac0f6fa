#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/environment.md lists every RESOLUTO_* variable, and every other variable, that the sources read or set,
and nothing else (but what it marks as belonging to a later version).  The man page's table has every RESOLUTO_* variable
that the host reads."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORD = re.compile(r"\bRESOLUTO_[A-Z][A-Z0-9_]*\b")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
ROW = re.compile(r"^\|\s*`([A-Z][A-Z0-9_]*)`\s*\|(.*)$", re.M)
MAN_TABLE = "src/cli/environment.c"
TABLE_ROW = re.compile(r'^\t\{ "([A-Z][A-Z0-9_]*)"', re.M)
GETENV = re.compile(r'\b(?:getenv\(|config_get\([^,()]*,)\s*"([A-Z][A-Z0-9_]*)"')


def in_sources():
    names = {}
    for path in [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("guest/**/*.[ch]")]:
        text = path.read_text(errors="replace")
        for literal in STRING.findall(text):
            for name in WORD.findall(literal):
                names.setdefault(name, path.relative_to(ROOT).as_posix())
        for name in GETENV.findall(text):
            names.setdefault(name, path.relative_to(ROOT).as_posix())
    for path in [*ROOT.glob("scripts/**/*.sh"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("bench/*.sh"),
                 *ROOT.glob("tests/**/*.[ch]")]:
        for name in WORD.findall(path.read_text(errors="replace")):
            names.setdefault(name, path.relative_to(ROOT).as_posix())
    return names


def main():
    rows = dict(ROW.findall((ROOT / "docs/environment.md").read_text()))
    used = in_sources()
    in_man_page = set(TABLE_ROW.findall((ROOT / MAN_TABLE).read_text()))
    for name in in_man_page:
        used.setdefault(name, MAN_TABLE)
    constants = set()
    for path in [*ROOT.glob("include/resoluto/*.h")]:
        constants |= set(WORD.findall(path.read_text()))  # enums of the API, not variables
    bad = 0
    for name, where in sorted(used.items()):
        if name in rows or name in constants or name.endswith("_"):
            continue
        print(f"{where} uses {name}, which docs/environment.md does not list")
        bad += 1
    for name, rest in sorted(rows.items()):
        if name not in used and "later" not in rest:
            print(f"docs/environment.md lists {name}, which nothing uses (mark what is for a later version)")
            bad += 1
    for name, rest in sorted(rows.items()):
        if name.startswith("RESOLUTO_") and "| host |" in rest and name not in in_man_page:
            print(f"docs/environment.md lists {name} for the host, and {MAN_TABLE} does not")
            bad += 1
    if len(used) < 20:
        print(f"only {len(used)} names found: the check looks in the wrong place")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
