#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions stay short: none over 100 lines unless tools/length-exceptions names it with a reason; 90 % at
most 45; median at most 15 (style: "Plain and short").  Counts the lines from the opening to the closing brace of
each function of src/ and guest/.  --list prints the longest ones."""
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX, P90, MEDIAN = 100, 45, 15
NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")


def functions(path):
    """Yields (name, line, length): a '{' in column 0 behind a line with a parameter list opens one."""
    lines = path.read_text(errors="replace").splitlines()
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line.startswith("}") and start is not None:
            head = []
            for back in range(start - 1, max(start - 12, -1), -1):
                if not lines[back] or lines[back].startswith(("}", "#", "/*", " */")) or lines[back].endswith(";"):
                    break
                head.insert(0, lines[back])
            match = NAME.search(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", " ".join(head)))
            if match:
                yield match.group(1), start + 1, i - start - 1
            start = None


def exceptions():
    allowed = {}
    for line in (ROOT / "tools/length-exceptions").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            place, _, reason = line.partition(" ")
            allowed[place] = reason.strip()
    return allowed


def main():
    allowed = exceptions()
    found = []
    for path in sorted([*ROOT.glob("src/**/*.c"), *ROOT.glob("guest/**/*.c")]):
        name = path.relative_to(ROOT).as_posix()
        found += [(length, f"{name}:{function}", line) for function, line, length in functions(path)]
    if len(found) < 100:
        print(f"only {len(found)} functions found: the check looks in the wrong place")
        return 1
    if "--list" in sys.argv:
        for length, place, line in sorted(found, reverse=True)[:40]:
            print(f"{length:5} {place} (line {line})")
    bad = 0
    places = {place for _, place, _ in found}
    for length, place, line in found:
        if length > MAX and not allowed.get(place):
            print(f"{place} (line {line}) has {length} lines; the limit is {MAX} (tools/length-exceptions)")
            bad += 1
    for place in allowed:
        if place not in places:
            print(f"tools/length-exceptions names {place}, which is not there")
            bad += 1
    lengths = sorted(length for length, _, _ in found)
    median, p90 = statistics.median(lengths), lengths[int(len(lengths) * 0.9)]
    print(f"{len(lengths)} functions: median {median:g}, 90 % at most {p90}, longest {lengths[-1]} lines")
    if median > MEDIAN or p90 > P90:
        print(f"the median must be at most {MEDIAN} and the 90th percentile at most {P90}")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
