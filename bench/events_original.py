# SPDX-License-Identifier: Apache-2.0
"""The Python side of bench/events.sh, with the original package: usage as events_bench.c."""
import asyncio
import pathlib
import sys
import time

from resoluto.sandbox.conduit import LocalConduit
from resoluto.sandbox.spans import SpanEmitter
from resoluto.sandbox.telemetry import ChunkReader, ChunkShipper

PREFIX = "run/run-0123456789abcdef"


async def emit(directory, lines):
    text = [f"2026-11-29 12:00:00 INFO worker-{i % 8}: step {i} of the job is done, 42 items left"
            for i in range(lines)]
    shipper = ChunkShipper(LocalConduit(directory), PREFIX)
    emitter = SpanEmitter(shipper, "run-0123456789abcdef")
    start = time.monotonic()
    async with emitter.span("", "workload", "run") as span:
        for line in text:
            await emitter.log(span, line)
    await shipper.close()
    print(f"{time.monotonic() - start:.6f} {shipper._index}")


async def tail(directory):
    reader = ChunkReader(LocalConduit(directory), PREFIX)
    start = time.monotonic()
    events = 0
    while not reader.finished:
        events += len(await reader.poll())
    print(f"{time.monotonic() - start:.6f} {events}")


def main():
    pathlib.Path(sys.argv[2]).mkdir(exist_ok=True)
    asyncio.run(emit(sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "emit" else tail(sys.argv[2]))


main()
