# SPDX-License-Identifier: Apache-2.0
"""The Python side of bench/staging.sh, with the original package: in TREE STORE, or out STORE TREE; prints seconds."""
import asyncio
import sys
import time

from resoluto.sandbox.conduit import LocalConduit
from resoluto.sandbox.staging import put_dir, stage_inputs

PREFIX = "run/run-0123456789abcdef"


async def main():
    what, source, target = sys.argv[1:]
    store = LocalConduit(target if what == "in" else source)
    start = time.monotonic()
    if what == "in":
        await put_dir(store, PREFIX, source)
    else:
        assert await stage_inputs(store, PREFIX, target)
    print(f"{time.monotonic() - start:.6f} 0")


asyncio.run(main())
