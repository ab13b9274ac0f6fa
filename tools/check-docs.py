#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents tell the truth where a program can tell: every path in backquotes exists, every option that an example
passes to `resoluto-sandbox` is in its --help, the reasons a run can end for are the same in docs/result.md,
spec/run-result.schema.json and src/wire/reason.c, those of egress in that schema and src/egress/reason.c, and the guest kernel's
patches are listed."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "spec/PROTOCOL.md", "examples/README.md"]
QUOTED = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
TOP = {p.name for p in ROOT.iterdir() if p.is_dir()}
PARENT = re.compile(r"`([a-z]\w*(?:/[\w-]+)*/)`")
SOURCE = re.compile(r"[\w-]+\.(?:[ch]|py|sh|md|json|build)$")
# What documents name in backquotes like a path and what is none of this tree.
NOT_OURS = {
    "result.json", "task.json", "state.json", "run.json", "refs.json",  # files of a run and of the cache
    "_manifest.json", "_stdin.json", "policy.json",  # objects of a run; a file of skopeo's
    "src/http/", "src/http", "src/relay/", "src/relay",  # later layers, named as such
}


def is_path(word):
    """A file of the tree: it begins with one of its folders, or ends as its sources do."""
    if any(c in word for c in " <>*?={}()$:|,") or word.startswith(("/", "~", "-", ".")) or "NNN" in word:
        return False
    return (word.split("/")[0] in TOP and "/" in word) or bool(SOURCE.search(word))


def exists(word, page, line):
    """As written from the top or beside the page; a bare name also in the folder that its line names (tables)."""
    word = word.rstrip("/")
    places = [ROOT, page.parent] + [ROOT / folder for folder in PARENT.findall(line)]
    places += [ROOT / "include/resoluto", ROOT / "src"]
    if any((place / word).exists() for place in places):
        return True
    return "/" not in word and any(found for folder in ("src", "guest", "tests", "tools", "scripts")
                                   for found in [next((ROOT / folder).rglob(word), None)] if found)


def check_paths(page):
    bad = seen = 0
    for line in FENCE.sub("", page.read_text()).splitlines():
        for word in QUOTED.findall(line):
            if word in NOT_OURS or not is_path(word):
                continue
            seen += 1
            if not exists(word, page, line):
                print(f"{page.relative_to(ROOT)} names {word}, which is not there")
                bad += 1
    return bad, seen


def check_options(page):
    """Examples: `resoluto-sandbox run --x ... --` as shell lines or in backquotes."""
    bad = 0
    for command, words in re.findall(r"resoluto-sandbox (run|doctor|image \w+)\b([^\n`|]*)", page.read_text()):
        golden = ROOT / f"tests/golden/cli/{command.replace(' ', '-')}.txt"
        if not golden.exists():
            print(f"{page.relative_to(ROOT)} calls resoluto-sandbox {command}, which is no command")
            bad += 1
            continue
        known = set(re.findall(r"--[a-z-]+", golden.read_text()))
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", words.split(" -- ")[0]):
            if option not in known:
                print(f"{page.relative_to(ROOT)} passes {option} to {command}, whose --help does not know it")
                bad += 1
    return bad


def check_patches():
    """The table of the guest kernel's patches has all of them, and no others."""
    table = (ROOT / "docs/guest-kernel.md").read_text().split("### The patches")[1].split("\n### ")[0]
    told = set(re.findall(r"^\| `(\d{4}-[\w-]+)` \|", table, re.M))
    there = {path.stem for path in (ROOT / "guest-kernel/patches").iterdir()}
    for name in sorted(told ^ there):
        print(f"docs/guest-kernel.md and guest-kernel/patches/ differ in {name}")
    return len(told ^ there)


def check_reasons():
    source = (ROOT / "src/wire/reason.c").read_text()
    ours = set(re.findall(r'^\t(?:\{|\[\w+\] = \{)\s*"([a-z-]+)"', source, re.M))
    schema = json.loads((ROOT / "spec/run-result.schema.json").read_text())
    theirs = set(schema["properties"]["reason"]["enum"]) - {""}
    table = (ROOT / "docs/result.md").read_text().split("## Reasons")[1].split("\n## ")[0]
    page = set(re.findall(r"^\| `([a-z-]+)` \|", table, re.M))
    bad = 0
    for name, found in (("spec/run-result.schema.json", theirs), ("docs/result.md", page)):
        for reason in sorted(ours ^ found):
            print(f"{name} and src/wire/reason.c differ in the reason {reason}")
            bad += 1
    if len(ours) < 20:
        print(f"only {len(ours)} reasons found in src/wire/reason.c: the check looks in the wrong place")
        bad += 1
    return bad


def check_egress_reasons():
    source = (ROOT / "src/egress/reason.c").read_text()
    ours = re.findall(r'\[EGRESS_\w+\] = \{\s*"([a-z-]+)"', source)
    schema = json.loads((ROOT / "spec/run-result.schema.json").read_text())
    theirs = schema["$defs"]["egress"]["properties"]["reason"]["enum"]
    if ours != theirs or len(ours) < 20:
        print(f"spec/run-result.schema.json and src/egress/reason.c differ: {sorted(set(ours) ^ set(theirs)) or 'order'}")
        return 1
    return 0


def main():
    bad = check_reasons() + check_egress_reasons() + check_patches()
    total = 0
    for page in [*(ROOT / name for name in PAGES), *sorted(ROOT.glob("docs/**/*.md"))]:
        wrong, seen = check_paths(page)
        bad += wrong + check_options(page)
        total += seen
    if total < 40:
        print(f"only {total} paths found: the check looks in the wrong place")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
