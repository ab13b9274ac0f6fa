# SPDX-License-Identifier: Apache-2.0
"""The Python original (resoluto-sandbox 0.1.0) beside ours: its package, our runtime behind its interface, its runner behind ours,
and a look at everything that either has written."""
import asyncio
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys

import jsonschema
import pytest

from conftest import ROOT, build_dir, needed

OLDER_PYTHON = pathlib.Path(__file__).parent / "older_python"


def original_folder():
    folder = pathlib.Path(needed("RESOLUTO_TEST_ORIGINAL"))
    if not (folder / "resoluto/sandbox").is_dir():
        pytest.fail(f"RESOLUTO_TEST_ORIGINAL={folder} does not hold the package: pip install --ignore-requires-python"
                    f" --target {folder} resoluto-sandbox==0.1.0 pydantic", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def original():
    """Its package.  RESOLUTO_TEST_ORIGINAL names a folder into which it was installed with `pip install --target`.  It
    wants Python 3.12 and is used here with whatever runs the tests."""
    folder = str(original_folder())
    runpy.run_path(str(OLDER_PYTHON / "sitecustomize.py"))
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("resoluto.sandbox")
    finally:
        sys.path.remove(folder)


def microvm_runtime(original, **settings):
    """Its SandboxRuntime over our microVMs: one microvm_peer for each sandbox."""

    class MicrovmRuntime(original.SandboxRuntime):
        def __init__(self, conduit_dir):
            self.conduit_dir = str(conduit_dir)
            self.peers = {}
            self.labels = {}

        async def ask(self, handle, **request):
            peer = self.peers[handle.id]
            peer.stdin.write(json.dumps(request).encode() + b"\n")
            await peer.stdin.drain()
            answer = json.loads(await peer.stdout.readline())
            if "error" in answer:
                raise RuntimeError(f"{answer['error']}: {answer['code']}")
            return answer

        async def launch(self, spec):
            handle = original.SandboxHandle(id=spec.labels["resoluto.run_id"], labels=spec.labels)
            self.labels[handle.id] = spec.labels
            self.peers[handle.id] = await asyncio.create_subprocess_exec(
                build_dir() / "tests/interop/microvm_peer", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                limit=1 << 20, env={**os.environ, **settings})
            await self.ask(handle, id=handle.id, image=spec.image, env=spec.env, labels=spec.labels,
                           memory_bytes=spec.resources.memory_bytes, cpu_milli=int(spec.resources.cpu_cores * 1000),
                           conduit=self.conduit_dir, store_prefix=spec.store_prefix)
            return handle

        async def status(self, handle):
            if handle.id not in self.peers:
                return original.SandboxStatus(phase="unknown")
            answer = await self.ask(handle, op="status")
            code = answer.pop("exit_code")
            return original.SandboxStatus(**answer, exit_code=None if code < 0 else code)

        async def logs(self, handle, *, tail=200):
            return (await self.ask(handle, op="logs", tail=tail))["text"]

        async def isolation(self, handle):
            return json.loads((await self.ask(handle, op="isolation"))["text"])

        async def destroy(self, handle):
            if handle.id not in self.peers:
                return
            await self.ask(handle, op="destroy")
            peer = self.peers.pop(handle.id)
            peer.stdin.close()
            assert await peer.wait() == 0

        async def sweep(self, labels):
            found = [run for run in self.peers if labels.items() <= self.labels[run].items()]
            for run in found:
                await self.destroy(original.SandboxHandle(id=run))
            return len(found)

    return MicrovmRuntime


def original_runner():
    """Its runner as a plain process in a network namespace that has only `lo`."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["env", f"PYTHONPATH={OLDER_PYTHON}:{original_folder()}", f"PATH={os.environ['PATH']}", "unshare", *user, "--net",
            sys.executable, "-m", "resoluto.sandbox.runner_main"]


def process_host(mode, **config):
    """Our host (facade or driver alone) over original_runner()."""
    return subprocess.run([build_dir() / "tests/interop/process_host", mode], input=json.dumps(config).encode(),
                          capture_output=True, timeout=300)


def validator_of(name):
    return jsonschema.Draft202012Validator(json.loads((ROOT / f"spec/{name}.schema.json").read_text()))


def check_written(folder, original):
    """Every document of a run against our schema and its model; returns the events."""
    event, result, manifest = validator_of("event"), validator_of("result"), validator_of("manifest")
    chunks = sorted(folder.glob("events-*.jsonl"))
    lines = [line for chunk in chunks for line in chunk.read_bytes().split(b"\n")[:-1]]
    events = [json.loads(line) for line in lines]
    for line, document in zip(lines, events):
        event.validate(document)
        original.SpanEvent.model_validate_json(line)
    if (folder / "result.json").exists():
        result.validate(json.loads((folder / "result.json").read_text()))
        original.NodeResult.model_validate_json((folder / "result.json").read_text())
    if (folder / "_manifest.json").exists():
        document = json.loads((folder / "_manifest.json").read_text())
        manifest.validate(document)
        assert [chunk.name for chunk in chunks] == [f"events-{n:06d}.jsonl" for n in range(1, document["total_chunks"] + 1)]
    return events
