#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that have no place in this code base, each with what to use instead."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BANNED = {
    "strcpy": "snprintf or memcpy", "strcat": "buf_add_str", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "gets": "fgets", "strtok": "strsep", "system": "proc_run", "popen": "proc_run", "tmpnam": "mkstemp",
    "mktemp": "mkstemp", "atoi": "quantity.h or strtoul with a check", "atol": "strtol with a check",
    "alloca": "malloc", "rand": "random_bytes", "srand": "random_bytes", "random": "random_bytes",
    "signal_handler": "a pidfd or a self-pipe", "usleep": "loop timers", "sleep": "loop timers",
    "select": "poll", "getpwnam": "users.h (static programs must not use NSS)", "getgrnam": "users.h",
    "gethostbyname": "the resolver", "vfork": "proc_spawn",
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.S)


def main():
    bad = 0
    for path in sorted([*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("guest/**/*.[ch]")]):
        text = COMMENT.sub(lambda m: "\n" * m.group(0).count("\n"), path.read_text(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"(?<![\w.>])([a-z_]\w*)\s*\(", line):
                if name in BANNED:
                    print(f"{path.relative_to(ROOT)}:{number}: {name}(): use {BANNED[name]}")
                    bad += 1
    return 1 if bad else 0


sys.exit(main())
