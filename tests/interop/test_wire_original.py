# SPDX-License-Identifier: Apache-2.0
"""Events, chunks, results and manifests against the Python original, both ways."""
import asyncio
import base64
import importlib
import json
import pathlib
import random
import subprocess

import jsonschema
import pytest

from conftest import ROOT, build_dir
from peers import original  # noqa: F401 (a fixture)

RUN = "run/run-0123456789abcdef"
AWKWARD = (b"plain\n\nblank above\ttab\r\n" + "ä € \U0001f600 \u2028 \u2029 \x85 \x0b \x0c \x1c\n".encode() + b"\xff\xfe\0\xed\xa0\x80\xe2\x80\n"
           + b"x" * 100_000 + b"\n" + bytes(range(256)) + b"\n" + b"no newline at the end")


def tool(*arguments, **options):
    done = subprocess.run([build_dir() / "tests/interop/wire_samples", *arguments], capture_output=True, timeout=300,
                          **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_run(root, output):
    folder = root / RUN
    folder.mkdir(parents=True)
    tool("write", folder, input=output)
    return folder


def read_run(folder):
    *events, result, _ = tool("read", folder).decode().split("\n")
    events = [json.loads(line) for line in events]
    for event in events:
        event["bytes"] = base64.b64decode(event["bytes"])
    return events, json.loads(result)


def polled(original, root):
    async def poll():
        reader = original.ChunkReader(original.LocalConduit(root), RUN)
        events = []
        while not reader.finished:
            new = await reader.poll()
            assert new, "chunks are missing"
            events += new
        return events

    return asyncio.run(poll())


def test_original_reads_our_events(original, tmp_path):
    write_run(tmp_path, AWKWARD)
    events = polled(original, tmp_path)
    assert [e.event for e in events[:1] + events[-1:]] == ["open", "close"]
    assert {e.kind for e in events} == {"workload", "log"}
    assert all(e.run_id == "run-0123456789abcdef" for e in events)
    text = "".join(e.data["line"] + ("" if e.data.get("nl") is False else "\n") for e in events if e.event == "log")
    # Pieces of one line are cut between characters, so replacing before or after cutting is the same.
    assert text == AWKWARD.decode("utf-8", "replace")


def test_original_reads_many_chunks_in_order(original, tmp_path):
    folder = write_run(tmp_path, b"".join(b"line %d\n" % i for i in range(5000)))
    assert len(list(folder.glob("events-*.jsonl"))) > 10
    lines = [e.data["line"] for e in polled(original, tmp_path) if e.event == "log"]
    assert lines == [f"line {i}" for i in range(5000)]


def test_original_reads_our_result(original, tmp_path):
    folder = write_run(tmp_path, b"")
    result = original.NodeResult.model_validate_json((folder / "result.json").read_text())
    assert (result.node_id, result.status, result.exit_code) == ("run", "failure", 137)
    assert (result.output_archive, result.reason) == ("outbox/output.tar.gz", "out-of-memory")


def emit(original, root, lines):
    telemetry = importlib.import_module("resoluto.sandbox.telemetry")

    async def run():
        shipper = telemetry.ChunkShipper(original.LocalConduit(root), RUN)
        emitter = original.SpanEmitter(shipper, "run-1")
        async with emitter.span("", "node", "n", inputs={"argv": ["ä", "\u2028"], "api_key": "x"}) as node:
            await emitter.log(node, "staged 1 input archive(s) → /workspace")
            async with emitter.span(node, "workload", "run") as span:
                for line in lines:
                    await emitter.log(span, line)
            await shipper.emit_line(telemetry._default_heartbeat(12.5))
        await shipper.close()

    asyncio.run(run())
    return pathlib.Path(root) / RUN


def put_result(folder, original, **members):
    (folder / "result.json").write_text(original.NodeResult(**members).model_dump_json())


def test_we_read_the_originals_events(original, tmp_path):
    # As its runner does with the bytes.
    text = AWKWARD.decode("utf-8", "replace")
    lines = text.split("\n")
    folder = emit(original, tmp_path, lines)
    put_result(folder, original, status="success", exit_code=0)
    events, _ = read_run(folder)
    assert b"".join(e["bytes"] for e in events if e["is_output"]) == (text + "\n").encode()
    others = [e for e in events if not e["is_output"] and e["event"] == "log"]
    assert [e["bytes"] for e in others] == ["staged 1 input archive(s) → /workspace\n".encode(), b""]
    assert (others[1]["kind"], others[1]["span_id"], others[1]["run_id"], others[1]["ts"]) == ("heartbeat", "hb", "", 12.5)
    opened = next(e for e in events if e["kind"] == "node" and e["event"] == "open")
    assert opened["data"] == {"argv": ["ä", "\u2028"], "api_key": "[REDACTED]"}
    assert all(e["seq"] == 0 and not e["is_stderr"] for e in events)


def test_the_originals_documents_are_valid(original, tmp_path):
    folder = emit(original, tmp_path, ["a", "b"])
    put_result(folder, original, status="failure", exit_code=-9, reason="r")
    for name, texts in {"event": [line for chunk in folder.glob("events-*.jsonl") for line in chunk.open()],
                        "result": [(folder / "result.json").read_text()],
                        "manifest": [(folder / "_manifest.json").read_text()]}.items():
        schema = json.loads((ROOT / f"spec/{name}.schema.json").read_text())
        for text in texts:
            jsonschema.Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("members,want", [
    ({"status": "success", "exit_code": 0, "output_archive": f"{RUN}/outbox/output.tar.gz"},
     {"status": "success", "exit_code": 0, "output_archive": "outbox/output.tar.gz", "signal": None}),
    ({"status": "failure", "exit_code": -15, "reason": "ä"}, {"exit_code": 143, "signal": 15, "reason": "ä"}),
    ({"status": "failure"}, {"status": "failure", "exit_code": None, "output_archive": None}),
])
def test_we_read_the_originals_results(original, tmp_path, members, want):
    folder = emit(original, tmp_path, [])
    put_result(folder, original, **members)
    _, result = read_run(folder)
    assert want.items() <= result.items()


def test_bytes_come_back_through_our_own_files(tmp_path):
    seeded = random.Random(7)
    for number, output in enumerate([AWKWARD, b"", b"\n", bytes(seeded.randbytes(300_000)), b"\xc3" * 70_000]):
        events, result = read_run(write_run(tmp_path / str(number), output))
        assert b"".join(e["bytes"] for e in events if e["is_output"]) == output
        assert result["redactions"] == 0
        seqs = [e["seq"] for e in events if e["is_output"]]
        assert seqs == list(range(1, len(seqs) + 1))


# What the original takes out we do too; where it leaves the secret behind the word "Bearer", ours does not.
SECRETS = {
    "Authorization: Basic dXNlcjpzM2NyM3Q=": "dXNlcjpzM2NyM3Q=",
    "authorization: Bearer s3cr3t-value-1": "s3cr3t-value-1",
    "https://x-access-token:s3cr3t-value-2@github.com/o/r": "s3cr3t-value-2",
    "x-access-token:s3cr3t-value-3": "s3cr3t-value-3",
    "clone https://user:s3cr3t-value-4@host/": "s3cr3t-value-4",
    "AWS_SECRET_ACCESS_KEY=s3cr3t-value-5": "s3cr3t-value-5",
    "aws_session_token: s3cr3t-value-6": "s3cr3t-value-6",
    "gho_" + "s3cr3tvalue7" * 3: "s3cr3tvalue7",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyM3Q.c2lnbmF0dXJlLW9m end": "eyJzdWIiOiJzM2NyM3Q",
}


@pytest.mark.parametrize("text,secret", SECRETS.items())
def test_redacts_what_the_original_redacts(original, text, secret):
    theirs = importlib.import_module("resoluto.sandbox.redact").redact_text(text)
    ours = tool("redact", input=text.encode()).decode()
    assert "[REDACTED]" in theirs and "[REDACTED]" in ours
    assert secret not in ours


def test_leaves_what_the_original_leaves(original):
    theirs = importlib.import_module("resoluto.sandbox.redact").redact_text
    for path in sorted((ROOT / "src").glob("*/*.c"))[:40]:
        text = path.read_text()
        if theirs(text) == text:
            assert tool("redact", input=text.encode()).decode() == text, path
