# SPDX-License-Identifier: Apache-2.0
"""Our driver, facade and collector against the Python original's runner, which runs as a plain process in a network namespace
with only `lo`.  What it cannot do (docs/interop.md) must not be told as success."""
import asyncio
import json
import os
import pathlib
import sys
import uuid

import pytest

from peers import check_written, original, original_runner, process_host, validator_of  # noqa: F401 (original: a fixture)

HOST_BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Host:
    def __init__(self, top, original):
        self.original, self.conduit, self.guest, self.workspace = original, top / "conduit", top / "guest", top / "workspace"
        for folder in (self.conduit, self.workspace):
            folder.mkdir()

    def prefix(self, run_id):
        return self.conduit / "run" / run_id

    def run(self, script, run_id="r1", **options):
        """The facade; returns the result and the sentence for people."""
        config = {"argv": [sys.executable, "-c", script], "launcher": original_runner(), "conduit": str(self.conduit),
                  "workspace_dir": str(self.guest), "log": str(self.guest.parent / "log"), "id": run_id,
                  "workspace": str(self.workspace), "guest_boot_id": str(uuid.uuid4()), "env": ["HELLO=wörld"], **options}
        done = process_host("run", **config)
        assert done.returncode == 0, (done.stderr, self.log())
        answer = json.loads(done.stdout)
        validator_of("run-result").validate(answer["result"])
        if not isinstance(answer["result"]["result"], list):
            self.original.RunResult.model_validate(answer["result"])
        return answer["result"], answer["detail"]

    def drive(self, **env):
        """The driver alone."""
        env = {"RESOLUTO_STORE_KIND": "localfs", "RESOLUTO_STORE_ROOT": str(self.conduit), "RESOLUTO_STORE_PREFIX": "any/where",
               "RESOLUTO_RUN_ID": "r2", "RESOLUTO_NODE_ID": "run", **env}
        done = process_host("drive", id="r2", launcher=original_runner(), conduit=str(self.conduit), store_prefix="any/where",
                            workspace_dir=str(self.guest), log=str(self.guest.parent / "log"),
                            env=[f"{name}={value}" for name, value in env.items()])
        assert done.returncode == 0, (done.stderr, self.log())
        return json.loads(done.stdout)

    def log(self):
        return (self.guest.parent / "log").read_text()


@pytest.fixture
def host(tmp_path, original):
    return Host(tmp_path, original)


def test_a_whole_run(host):
    (host.workspace / "in").mkdir()
    (host.workspace / "in/data").write_bytes(bytes(range(256)) * 300)
    (host.workspace / "in/run.sh").write_text("#!/bin/sh\necho from a script\n")
    (host.workspace / "in/run.sh").chmod(0o755)
    (host.workspace / "__pycache__").mkdir()
    (host.workspace / "__pycache__/left.out").write_text("x")
    os.symlink("in/data", host.workspace / "link")
    (host.workspace / "result.json").write_text("not this one")
    result, detail = host.run("""
import json, os, subprocess, sys
print(os.environ["HELLO"], sorted(name for name in os.environ if name.startswith("OTHER")))
print(sorted(os.listdir(".")), os.readlink("link"), flush=True)
subprocess.run(["in/run.sh"], check=True)
sys.stdout.buffer.write(b"\\xff\\xfe no text\\n\\n")
print("on the other stream \\u2028 \\U0001f600", file=sys.stderr)
for number in range(3000): print("line", number)
os.makedirs("out/deep/er")
with open("link", "rb") as data, open("out/deep/er/copy", "wb") as copy: copy.write(data.read())
json.dump({"passed": True}, open("result.json", "w"))
""", output_paths=["out", "result.json"])
    assert (result["ok"], result["exit_code"], result["reason"], result["disposition"]) == (True, 0, "", "completed")
    lines = result["output"].split("\n")
    assert lines[:2] == ["wörld []", "['in', 'link', 'result.json'] in/data"]
    # Its runner replaces what is not UTF-8, merges both streams and knows no missing newline.
    assert sorted(lines[2:6]) == sorted(["from a script", "\ufffd\ufffd no text", "", "on the other stream \u2028 \U0001f600"])
    assert lines[6:] == [f"line {number}" for number in range(3000)] + [""]
    assert result["stdout"] == result["output"] and result["stderr"] == ""
    assert [name for name in result["artifacts"] if not name.endswith("/")][-2:] == ["out/deep/er/copy", "result.json"]
    assert (host.workspace / "out/deep/er/copy").read_bytes() == (host.workspace / "in/data").read_bytes()
    assert result["result"] == {"passed": True} and result["isolation"]["own_kernel"] is True
    events = check_written(host.prefix("r1"), host.original)
    assert len(list(host.prefix("r1").glob("events-*.jsonl"))) > 5
    assert {event["kind"] for event in events} == {"node", "egress_canary", "workload", "log"}
    # Its own reader splits lines at U+2028, which its writer does not escape; ours reads it.
    with pytest.raises(ValueError):
        asyncio.run(host.original.ChunkReader(host.original.LocalConduit(host.conduit), "run/r1").poll())


def test_what_it_prints_besides_is_no_output(host):
    """Hooks, canary and staging are log events too; in the facade of the original they are output."""
    result, _ = host.run("print(open('by-setup').read(), end='')", setup=["sh", "-c", "echo noise; echo made > by-setup"],
                         cleanup=["sh", "-c", "echo more noise; touch by-cleanup"])
    assert (result["output"], result["exit_code"]) == ("made\n", 0)
    assert (host.guest / "by-cleanup").exists()
    kinds = [event["kind"] for event in check_written(host.prefix("r1"), host.original) if event["event"] == "open"]
    assert kinds == ["node", "egress_canary", "setup", "workload", "cleanup"]


def test_a_failed_setup_hook(host):
    """Its result has the hook's exit code: the program's it is not."""
    result, detail = host.run("print('never')", setup=["sh", "-c", "exit 9"])
    assert json.loads((host.prefix("r1") / "result.json").read_text())["exit_code"] == 9
    assert (result["ran"], result["exit_code"], result["reason"], result["output"]) == (False, 1, "setup-failed", "")


def test_a_failed_program(host):
    """Its runner collects outputs only after exit code 0."""
    result, detail = host.run("open('out', 'w').write('lost'); print('so far'); raise SystemExit(3)", output_paths=["out"])
    assert (result["exit_code"], result["signal"], result["reason"], result["ran"]) == (3, None, "", True)
    assert (result["output"], result["artifacts"]) == ("so far\n", [])


def test_a_death_by_signal(host):
    """-N there, 128 + N and the signal here."""
    result, _ = host.run("import os; os.kill(os.getpid(), 15)")
    assert (result["exit_code"], result["signal"], result["reason"], result["ran"]) == (143, 15, "", True)
    assert json.loads((host.prefix("r1") / "result.json").read_text())["exit_code"] == -15
    check_written(host.prefix("r1"), host.original)


def test_a_glob_is_no_success_without_outputs(host):
    """Its runner takes output paths literally, fails over a glob, and says success."""
    result, detail = host.run("open('a.txt', 'w').write('1')", output_paths=["*.txt"])
    assert json.loads((host.prefix("r1") / "result.json").read_text())["status"] == "success"
    assert (result["ok"], result["exit_code"], result["reason"]) == (False, 125, "outputs-failed")
    assert "sent no outputs" in detail


def test_a_long_line_ends_its_runner(host):
    result, detail = host.run("print('before'); print('x' * 70_000); print('after')")
    assert (result["ok"], result["exit_code"], result["reason"], result["ran"]) == (False, 125, "no-result", True)
    assert result["output"] == "before\n" and "how the program ended is not known" in detail
    check_written(host.prefix("r1"), host.original)


def test_a_failed_canary(host):
    """The store cannot be written: its runner gives up at once, and runs its cleanup hook even so."""
    host.guest.mkdir()
    (host.prefix("r1") / "_canary_ok").mkdir(parents=True)
    result, detail = host.run("print('never')", cleanup=["sh", "-c", f"touch {host.conduit}/cleaned"])
    assert (result["ran"], result["ok"], result["exit_code"], result["output"]) == (False, False, 1, "")
    assert "egress canary failed: store" in detail
    assert (host.conduit / "cleaned").exists()


@pytest.mark.parametrize("boot_id,reason", [("", "own-kernel-unproven"), (HOST_BOOT_ID, "shared-kernel")])
def test_a_plain_process_is_no_sandbox(host, boot_id, reason):
    """What the test runtime must lie about in the other tests."""
    result, _ = host.run("print('ran')", guest_boot_id=boot_id)
    assert (result["ok"], result["exit_code"], result["reason"], result["disposition"]) == (False, 125, reason, "refused")
    assert result["output"] == "ran\n"


def test_a_runner_that_refuses_to_start(host):
    """Its version guard: no result, no manifest; what it printed is kept."""
    outcome = host.drive(RESOLUTO_IMAGE_VERSION="9.9.0", RESOLUTO_WORKLOAD_ARGV='["true"]')
    assert (outcome["disposition"], outcome["result"], outcome["chunks"]) == ("external", None, 0)
    assert "image/wheel version drift" in outcome["substrate_logs"]


def test_a_runner_that_is_killed(host):
    """The program kills it: what it had put is read, and nobody pretends to know the end."""
    script = "import os, sys, time\nfor _ in range(900): print('x' * 100)\nsys.stdout.flush(); time.sleep(1); os.kill(os.getppid(), 9)"
    outcome = host.drive(RESOLUTO_WORKLOAD_ARGV=json.dumps([sys.executable, "-c", script]))
    assert (outcome["disposition"], outcome["reason"], outcome["result"]) == ("external", "external", None)
    assert outcome["chunks"] >= 1 and outcome["events"] > 100
    check_written(host.conduit / "any/where", host.original)


def test_a_quiet_program_is_not_dead(host):
    """Its events wait up to five seconds in its runner."""
    outcome = host.drive(RESOLUTO_WORKLOAD_ARGV='["sh", "-c", "echo one; sleep 6; echo two"]')
    assert (outcome["disposition"], outcome["reason"]) == ("completed", "")
    assert json.loads(outcome["result"])["exit_code"] == 0
