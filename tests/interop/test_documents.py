# SPDX-License-Identifier: Apache-2.0
"""10,000 documents by hypothesis: what our schemas call valid our readers take and the Python original's models take,
what its models write is valid and is read, and near misses are refused by schema and reader alike."""
import base64
import functools
import json
import math
import re
import subprocess

import jsonschema
import pytest

from conftest import build_dir
from documents import collect, from_schema, is_beyond_limits, near_misses, schema_of
from peers import original  # noqa: F401 (a fixture)

MODELS = {"event": "SpanEvent", "result": "NodeResult"}
OUTBOX_KEY = re.compile(r"(^|.*/)outbox/[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.tar\.gz", re.S)
COUNTS = {"event": 150, "result": 150, "manifest": 20}
MISSES = 32  # of each document
asked = {"documents": 0}


def read_all(name, texts):
    """What the host's readers read of each document; None: it was refused."""
    asked["documents"] += len(texts)
    done = subprocess.run([build_dir() / "tests/interop/wire_samples", "parse"], capture_output=True, timeout=300,
                          input="".join(f"{name}\t{text}\n" for text in texts).encode())
    assert done.returncode == 0 and not done.stderr, done.stderr
    answers = done.stdout.decode().split("\n")
    assert answers.pop() == "" and len(answers) == len(texts)
    return [None if answer == "refused" else json.loads(answer) for answer in answers]


def validator_of(name):
    return jsonschema.Draft202012Validator(schema_of(name))


def output_of(event):
    """spec/PROTOCOL.md, Events: the bytes that a line stands for."""
    data = event.get("data", {})
    if event["event"] != "log" or not isinstance(data.get("line"), str):
        return ""
    return data["line"] + ("" if data.get("nl") is False else "\n")


def check_event(event, seen):
    for key in ("run_id", "span_id", "kind", "event", "parent_span_id", "name", "status"):
        assert seen[key] == event.get(key, "")
    assert math.isclose(seen["ts"], event["ts"], rel_tol=1e-14, abs_tol=1e-300)
    assert seen["data"] == event.get("data", {})
    if not isinstance(seen["data"].get("b64"), str):
        assert base64.b64decode(seen["bytes"]).decode() == output_of(event)


def check_result(result, seen):
    code, signal, key = (result.get(name) for name in ("exit_code", "signal", "output_archive"))
    if code is not None and code < 0:
        code, signal = 128 - code, -code if signal is None else signal
    want = {"node_id": "", "reason": "", "ran": code is not None, "redactions": 0, "output_is_complete": True, **result,
            "exit_code": code, "signal": signal, "output_archive": key and key[key.rindex("outbox/"):],
            "guest_boot_id": result.get("guest_boot_id") or ""}
    for key in ("node_id", "status", "exit_code", "signal", "output_archive", "reason", "ran", "guest_boot_id", "redactions",
                "output_is_complete"):
        assert seen[key] == want[key], key


def check_manifest(manifest, seen):
    assert seen == {"total_chunks": manifest["total_chunks"]}


CHECKS = {"event": check_event, "result": check_result, "manifest": check_manifest}


@functools.cache
def made_from_our_schema(name):
    return collect(near_misses(from_schema(schema_of(name)), schema_of(name)["properties"], MISSES), COUNTS[name])


@pytest.mark.parametrize("name", COUNTS)
def test_valid_is_what_is_read(name):
    """Documents made from our schema, and near misses of them."""
    validator, made = validator_of(name), made_from_our_schema(name)
    for (document, text, _), seen in zip(made, read_all(name, [text for _, text, _ in made])):
        validator.validate(document)
        if not is_beyond_limits(document):
            CHECKS[name](document, seen)
    misses = [miss for _, _, some in made for miss in some]
    verdicts = {True: 0, False: 0}
    for miss, seen in zip(misses, read_all(name, [json.dumps(miss) for miss in misses])):
        if not is_beyond_limits(miss):
            verdicts[seen is not None] += 1
            assert (seen is not None) == validator.is_valid(miss), miss
    assert min(verdicts.values()) > len(misses) // 20


@pytest.mark.parametrize("name", MODELS)
def test_the_original_takes_what_is_valid(name, original):
    model = getattr(original, MODELS[name])
    for document, text, _ in made_from_our_schema(name):
        theirs = model.model_validate_json(text).model_dump()
        assert {key: document[key] for key in theirs if key in document}.items() <= theirs.items()


def is_refused_on_purpose(name, document):
    """docs/interop.md: an exit code that no program of Linux can have, and archives that lie elsewhere."""
    code, key = document.get("exit_code"), document.get("output_archive")
    return name == "result" and ((code is not None and not -64 <= code <= 255)
                                 or (key is not None and not OUTBOX_KEY.fullmatch(key)))


@pytest.mark.parametrize("name", MODELS)
def test_what_the_original_writes_is_read(name, original):
    model, validator = getattr(original, MODELS[name]), validator_of(name)
    documents = collect(from_schema(model.model_json_schema()), COUNTS[name])
    texts = [model.model_validate(document).model_dump_json() for document in documents]
    for text, seen in zip(texts, read_all(name, texts)):
        written = json.loads(text)
        is_right = not is_refused_on_purpose(name, written)
        assert validator.is_valid(written) == is_right, text
        if not is_beyond_limits(written):
            assert (seen is not None) == is_right, text
        if seen:
            CHECKS[name](written, seen)


def test_there_were_ten_thousand():
    assert asked["documents"] >= 10_000
