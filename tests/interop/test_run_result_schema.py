# SPDX-License-Identifier: Apache-2.0
"""Results of every kind against spec/run-result.schema.json, and the schema and docs/result.md against the closed
list of reasons in the sources."""
import base64
import copy
import json
import pathlib
import re
import subprocess

import jsonschema
import pytest

from conftest import ROOT, build_dir
from peers import original  # noqa: F401 (a fixture)

SCHEMA = json.loads((ROOT / "spec/run-result.schema.json").read_text())


def tool(*arguments):
    program = pathlib.Path(build_dir()) / "tests/interop/result_tool"
    done = subprocess.run([program, *arguments], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    return done.stdout.decode("ascii").splitlines() if not arguments else done.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def documents():
    return [json.loads(line) for line in tool()]


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def reasons():
    return [line.split("\t")[0] for line in tool("reasons")]


def test_every_result_is_valid(documents, validator):
    assert len(documents) > 1000
    for document in documents:
        validator.validate(document)


def test_the_originals_model_takes_them(documents, original):
    """All but those whose program left a result.json that is no object (docs/interop.md)."""
    for document in documents:
        if document["result"] is None or isinstance(document["result"], dict):
            theirs = original.RunResult.model_validate(document)
            assert theirs.ok == document["ok"]
            assert {key: document[key] for key in type(theirs).model_fields} == theirs.model_dump()


def test_outputs_decode(documents):
    encodings = {document["output_encoding"] for document in documents}
    assert encodings == {"utf-8", "base64"}
    for document in documents:
        if document["output_encoding"] == "base64":
            assert base64.b64decode(document["stdout"], validate=True) == b"\xff\xfe"


def test_the_schema_is_closed(documents, validator):
    good = documents[0]
    for change in (
        {"more": 1},
        {"reason": "because"},
        {"disposition": "done"},
        {"errors": "x"},
        {"schema": 2},
        {"exit_code": 256},
        {"exit_code": -9},
        {"output_encoding": "latin-1"},
        {"run_id": "../x"},
        {"ok": True, "exit_code": 1},
        {"ok": False, "exit_code": 0},
        {"ok": True, "exit_code": 0, "reason": "deadline"},
        {"egress": [1]},
        {"timings_ms": {"total": 1}},
    ):
        assert not validator.is_valid({**good, **change}), change
    for member in SCHEMA["required"]:
        broken = copy.deepcopy(good)
        del broken[member]
        assert not validator.is_valid(broken), member
    assert sorted(SCHEMA["required"]) == sorted(SCHEMA["properties"])


def test_reasons_are_the_same_everywhere():
    assert SCHEMA["properties"]["reason"]["enum"] == reasons()
    page = (ROOT / "docs/result.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \|", page.split("## Reasons")[1].split("\n## ")[0], re.M)
    assert listed == [name for name in reasons() if name]


def test_the_page_names_every_member():
    page = (ROOT / "docs/result.md").read_text()
    table = page.split("## Members")[1].split("\n##")[0]
    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.M) == list(SCHEMA["properties"])
