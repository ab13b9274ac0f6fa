#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom (docs/design/layers.md).  Prints each broken rule; exit 1 if there is one.

base <- wire <- http <- { conduit, secrets, egress, image } <- runtime <- sandbox <- cli; siblings never
include each other; public headers are open to all, but they include only each other.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

LOWER = {
    "base": [],
    "wire": ["base"],
    "http": ["base", "wire"],
    "conduit": ["base", "wire", "http"],
    "secrets": ["base", "wire", "http"],
    "egress": ["base", "wire", "http"],
    "image": ["base", "wire", "http"],
    "runtime": ["base", "wire", "http", "conduit", "secrets", "egress", "image"],
    "sandbox": ["base", "wire", "http", "conduit", "secrets", "egress", "image", "runtime"],
    "cli": ["base", "wire", "http", "conduit", "secrets", "egress", "image", "runtime", "sandbox"],
    # Helper programs (interfaces.md section 7): a trailing name is one module of a layer.
    "shim": ["base", "wire", "conduit/local", "runtime/microvm"],
    "gateway": ["base", "wire/base64", "wire/frame", "wire/json_text", "egress"],
    "relay": ["base", "wire", "http", "conduit"],
    "guest": [
        "base",
        "wire",
        "conduit/local",
        *("egress/" + module for module in ("dns", "mux", "name", "policy", "reason")),
    ],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def area_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def is_allowed(area, target):
    """target is the path in the include directive, e.g. "conduit/local.h" or "runtime/microvm/x.h"."""
    if target.startswith("resoluto/") or "/" not in target:
        return True  # public, or a file beside the including one
    head = target.split("/")[0]
    if head == area or head not in LOWER:
        return head == area
    stem = target.rsplit(".", 1)[0]
    return any(stem == allowed or stem.startswith(allowed + "/") for allowed in LOWER[area])


def main():
    bad = 0
    files = sorted([*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("guest/**/*.[ch]")])
    for path in files:
        area = area_of(path)
        if area not in LOWER:
            print(f"{path.relative_to(ROOT)}: folder '{area}' has no place in the layers")
            bad += 1
            continue
        for target in INCLUDE.findall(path.read_text()):
            if not is_allowed(area, target):
                print(f"{path.relative_to(ROOT)}: {area} must not include {target}")
                bad += 1
    for path in sorted(ROOT.glob("include/resoluto/*.h")):
        for target in INCLUDE.findall(path.read_text()):
            if not target.startswith("resoluto/"):
                print(f"{path.relative_to(ROOT)}: a public header includes only public ones, not {target}")
                bad += 1
    if len(files) < 20:
        print(f"only {len(files)} files found: the check looks in the wrong place")
        bad += 1
    return 1 if bad else 0


sys.exit(main())
