# SPDX-License-Identifier: Apache-2.0
"""The Python original's facade, driver, reader and staging against our runner in a real microVM, over its LocalConduit."""
import asyncio
import ctypes
import io
import json
import os
import signal
import types
from contextlib import asynccontextmanager

import pytest

from conftest import Processes, build_dir, needed
from peers import check_written, microvm_runtime, original  # noqa: F401 (original: a fixture)

MEMORY = 256 << 20
AWKWARD = b"plain\n\n\xff\xfe\n\xe2\x80\xa8 and \xc2\x85\n" + b"x" * 70_000 + b"\nno newline"


class Driver:
    def __init__(self, top, original):
        self.original, self.conduit_dir, self.workspace = original, top / "conduit", top / "workspace"
        self.workspace.mkdir()
        self.conduit = original.LocalConduit(self.conduit_dir)
        (top / "state").mkdir(mode=0o700)
        self.runtime = microvm_runtime(original, RESOLUTO_STATE_DIR=str(top / "state"))(self.conduit_dir)
        self.events = []

    def spec(self, run_id, argv, **env):
        prefix = f"run/{run_id}/nodes/n1"
        return self.original.SandboxLaunchSpec(
            image=needed("RESOLUTO_TEST_ROOTFS"), store_prefix=prefix,
            resources=self.original.contracts.Resources(memory_bytes=MEMORY, cpu_cores=1),
            labels={"resoluto.run_id": run_id, "resoluto.node_id": "n1"},
            env={"RESOLUTO_STORE_KIND": "localfs", "RESOLUTO_STORE_ROOT": "/conduit", "RESOLUTO_STORE_PREFIX": prefix,
                 "RESOLUTO_RUN_ID": run_id, "RESOLUTO_NODE_ID": "n1", "RESOLUTO_WORKLOAD_ARGV": json.dumps(argv), **env})

    async def drive(self, spec, **options):
        return await self.original.drive_node(self.runtime, self.conduit, spec, on_event=self.events.append,
                                              poll_interval_s=0.1, **options)

    def logged(self, kind):
        """The data of lines in spans of that kind."""
        spans = {event.span_id for event in self.events if event.kind == kind and event.event == "open"}
        return [event.data for event in self.events if event.event == "log" and event.parent_span_id in spans]

    def lines(self, kind):
        return [data["line"] for data in self.logged(kind)]

    def written(self, spec):
        return check_written(self.conduit_dir / spec.store_prefix, self.original)


@pytest.fixture
def driver(tmp_path, original):
    driver = Driver(tmp_path, original)
    yield driver
    assert not driver.runtime.peers


def test_its_facade(driver):
    original, workspace = driver.original, driver.workspace
    (workspace / "in").mkdir()
    (workspace / "in/data").write_bytes(os.urandom(300_000))
    (workspace / "in/run.sh").write_text("#!/bin/sh\necho from a script\n")
    (workspace / "in/run.sh").chmod(0o755)
    (workspace / "node_modules").mkdir()
    os.symlink("in/data", workspace / "link")
    backend = original.SubstrateBackend(runtime=driver.runtime, conduit=driver.conduit, image=needed("RESOLUTO_TEST_ROOTFS"),
                                        store_env={"RESOLUTO_STORE_KIND": "localfs", "RESOLUTO_STORE_ROOT": "/conduit"},
                                        resources=original.contracts.Resources(memory_bytes=MEMORY, cpu_cores=1))
    shown = io.StringIO()
    result = original.Sandbox(backend=backend).run(
        ["sh", "-c", """echo "$HELLO"; ls; in/run.sh; mkdir -p out/deep; cat link > out/deep/copy; echo '{"passed": true}' > result.json
         printf 'no newline' >&2"""],
        workspace=str(workspace), env={"HELLO": "wörld \u2028"}, output_paths=["out/**", "result.json"], stream=shown)
    assert (result.exit_code, result.ok, result.result) == (0, True, {"passed": True})
    assert (workspace / "out/deep/copy").read_bytes() == (workspace / "in/data").read_bytes()
    assert {os.path.relpath(path, workspace) for path in result.artifacts} >= {"out/deep/copy", "result.json"}
    lines = result.output.split("\n")
    start = lines.index("wörld \u2028")
    assert sorted(lines[start:start + 5]) == sorted(["wörld \u2028", "in", "link", "from a script", "no newline"])
    assert shown.getvalue() == result.output and result.reason == "succeeded"
    (prefix,) = (driver.conduit_dir / "run").iterdir()
    assert check_written(prefix, original)[0]["kind"] == "node"
    assert json.loads((prefix / "result.json").read_text())["output_archive"] == "outbox/output.tar.gz"


def test_a_node_of_a_run(driver):
    """Admission, several archives, hooks, a failed program, bytes that are no text."""
    original, spec = driver.original, driver.spec(
        "r-2", ["sh", "-c", "cat one two prepared; cat bytes; touch kept; exit 7"], RESOLUTO_WORKSPACE_DIR="/somewhere/else",
        RESOLUTO_SETUP_ARGV='["sh", "-c", "echo preparing; echo prepared > prepared"]',
        RESOLUTO_CLEANUP_ARGV='["sh", "-c", "echo cleaning; ls"]', RESOLUTO_OUTPUT_PATHS='["kept"]')
    leases = []

    class Admission:
        @asynccontextmanager
        async def lease(self, spec):
            leases.append("taken")
            yield types.SimpleNamespace(handle=await driver.runtime.launch(spec))
            await driver.runtime.sweep({"resoluto.node_id": "n1"})
            leases.append("released")

        async def acquire(self, spec):
            return self.lease(spec)

    async def run():
        for name, content in {"one": b"1\n", "two": b"2\n", "bytes": AWKWARD}.items():
            folder = driver.workspace / name
            folder.mkdir()
            (folder / name).write_bytes(content)
            await original.put_dir(driver.conduit, spec.store_prefix, str(folder), name=f"from-{name}")
        result = await driver.drive(spec, admit=Admission())
        return result, await original.fetch_outputs(driver.conduit, spec.store_prefix, str(driver.workspace / "back"))

    result, fetched = asyncio.run(run())
    assert leases == ["taken", "released"]
    assert (result.node_id, result.status, result.exit_code, result.observed_phase) == ("n1", "failure", 7, "succeeded")
    assert (driver.workspace / "back/kept").exists() and fetched == [f"{spec.store_prefix}/outbox/output.tar.gz"]
    text = "".join(data["line"] + ("" if data.get("nl") is False else "\n") for data in driver.logged("workload"))
    assert text == "1\n2\nprepared\n" + AWKWARD.decode("utf-8", "replace")
    assert [event.model_dump() for event in driver.events] == driver.written(spec)
    assert driver.lines("setup") == ["preparing"] and driver.lines("cleanup")[0] == "cleaning"
    assert [event.kind for event in driver.events if event.event == "open"] == ["node", "egress_canary", "setup", "workload",
                                                                                "cleanup"]
    assert driver.events[-1].event == "close" and driver.events[-1].span_id == driver.events[0].span_id


def test_a_guest_that_is_killed(driver):
    """Its driver reads what came before, and finds no result."""
    spec = driver.spec("r-3", ["sh", "-c", "echo started; sleep 1000"])

    async def run():
        node = asyncio.ensure_future(driver.drive(spec))
        while "started" not in driver.lines("workload"):
            await asyncio.sleep(0.05)
            assert not node.done(), node.result()
        (qemu,) = Processes.qemu_of("r-3")
        os.kill(qemu, signal.SIGKILL)
        return await node

    result = asyncio.run(asyncio.wait_for(run(), 300))
    assert (result.status, result.observed_phase, result.reason) == ("failure", "failed", "no result.json in store")
    assert driver.written(spec)[-1]["data"]["line"] == "started"


class Source(ctypes.Structure):
    _fields_ = [("read", ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
                ("ctx", ctypes.c_void_p)]


def test_what_is_being_written_is_not_listed(driver):
    """Its listing looks at the size of every file, and would stumble over one of ours that is renamed meanwhile."""
    library = ctypes.CDLL(build_dir() / "libresoluto-sandbox.so")
    conduit, listed = ctypes.c_void_p(), []

    def keys():
        return [info.key for info in asyncio.run(driver.conduit.list_prefix("run"))]

    @Source._fields_[0][1]
    def read(ctx, buffer, size):
        listed.append(keys())
        ctypes.memmove(buffer, b"half", 4)
        return 4 if len(listed) < 3 else 0

    assert library.resoluto_conduit_open_url(f"localfs://{driver.conduit_dir}".encode(), ctypes.byref(conduit), None) == 0
    assert library.resoluto_conduit_put(conduit, b"run/r/result.json", ctypes.byref(Source(read)), None) == 0
    library.resoluto_conduit_close(conduit)
    assert listed == [[], [], []] and keys() == ["run/r/result.json"]
