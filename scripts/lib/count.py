#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sum JUnit files into the one last line "N passed, N failed".

usage: count.py FAILED-STEPS FILE...   (a step that gave no results counts as one failure)
Names what failed and what was skipped; exit 1 if anything failed or nothing passed."""
import sys
import xml.etree.ElementTree as ET


def main():
    failed = int(sys.argv[1])
    passed = skipped = 0
    for path in sys.argv[2:]:
        for case in ET.parse(path).getroot().iter("testcase"):
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            bad = case.find("failure") if case.find("failure") is not None else case.find("error")
            if bad is not None:
                failed += 1
                print(f"FAILED {path.rsplit('/', 1)[-1]} {name}")
            elif case.find("skipped") is not None:
                skipped += 1
                print(f"SKIPPED {path.rsplit('/', 1)[-1]} {name}: {case.find('skipped').get('message', '')}")
            else:
                passed += 1
    if skipped:
        print(f"{skipped} skipped, for the reasons above")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
