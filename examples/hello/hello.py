#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Greets whom it is told to, and leaves a greeting and a result behind."""
import json
import os
import pathlib
import sys

name = sys.argv[1] if len(sys.argv) > 1 else "world"
greeting = f"Hello, {name}, from Linux {os.uname().release}!"
print(greeting)
pathlib.Path("greeting.txt").write_text(greeting + "\n")
pathlib.Path("result.json").write_text(json.dumps({"greeted": name, "uid": os.getuid()}) + "\n")
