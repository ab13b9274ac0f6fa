# SPDX-License-Identifier: Apache-2.0
"""What the C writer produces against the schemas of spec/, and the schemas against what must not pass."""
import copy
import json
import subprocess

import jsonschema
import pytest

from conftest import ROOT, build_dir

NAMES = ("event", "result", "task", "manifest")


def validator(name):
    schema = json.loads((ROOT / f"spec/{name}.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def documents():
    done = subprocess.run([build_dir() / "tests/interop/wire_samples", "documents"], capture_output=True, check=True,
                          timeout=60)
    found = [line.split("\t", 1) for line in done.stdout.decode("ascii").splitlines()]
    return [(name, json.loads(text)) for name, text in found]


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_one(name):
    schema = json.loads((ROOT / f"spec/{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", ("event", "result", "manifest"))
def test_what_the_writer_writes_is_valid(documents, name):
    mine = [document for which, document in documents if which == name]
    assert len(mine) >= 2
    for document in mine:
        validator(name).validate(document)


@pytest.mark.parametrize("name", ("event", "result", "manifest"))
def test_each_required_member_is_missed(documents, name):
    schema = validator(name)
    document = next(document for which, document in documents if which == name)
    for key in schema.schema["required"]:
        less = copy.deepcopy(document)
        del less[key]
        assert not schema.is_valid(less), key


@pytest.mark.parametrize("name", ("event", "result", "task", "manifest"))
def test_each_member_has_a_type(name):
    """A value of no type that the schema knows is refused for every member."""
    schema = validator(name)
    required = {"event": {"run_id": "r", "span_id": "s", "kind": "k", "event": "log", "ts": 1},
                "result": {"status": "success"}, "task": {"workspace_dir": "/w"}, "manifest": {"total_chunks": 1}}[name]
    schema.validate(required)
    for key, rule in schema.schema["properties"].items():
        wrong = [] if "array" not in str(rule.get("type")) else "text"
        assert not schema.is_valid({**required, key: wrong}), key


@pytest.mark.parametrize("name,document", [
    ("event", {"event": "other"}), ("event", {"ts": "1"}), ("event", {"data": {"stream": "stdin"}}),
    ("event", {"data": {"seq": -1}}), ("event", {"data": {"nl": "false"}}),
    ("result", {"status": "ok"}), ("result", {"exit_code": 256}), ("result", {"exit_code": -65}),
    ("result", {"output_archive": "outbox/../x.tar.gz"}), ("result", {"output_archive": "inbox/x.tar.gz"}),
    ("result", {"signal": 0}), ("result", {"canary": [{"ok": True}]}),
    ("manifest", {"total_chunks": 1000000}), ("manifest", {"total_chunks": -1}),
    ("task", {"env": {"A": 1}}), ("task", {"output_paths": [1]}),
])
def test_is_refused(name, document):
    valid = {"event": {"run_id": "r", "span_id": "s", "kind": "k", "event": "log", "ts": 1},
             "result": {"status": "success"}, "task": {"workspace_dir": "/w"}, "manifest": {"total_chunks": 1}}[name]
    assert not validator(name).is_valid({**valid, **document})


def test_reader_and_schema_agree_on_results(tmp_path):
    """What node_result_parse takes or refuses, the schema does too."""
    tool = build_dir() / "tests/interop/wire_samples"
    (tmp_path / "_manifest.json").write_text('{"total_chunks": 0}')
    schema = validator("result")
    for change in ({}, {"exit_code": -9}, {"exit_code": -65}, {"exit_code": 256}, {"exit_code": 1.5}, {"status": "x"},
                   {"output_archive": "a/b/outbox/x.tar.gz"}, {"output_archive": "outbox/.x.tar.gz"}, {"signal": 64},
                   {"output_archive": "outbox/" + "x" * 65 + ".tar.gz"}, {"signal": 65}, {"ran": 1}, {"canary": {}},
                   {"reason": 5}, {"timings_ms": []}, {"redactions": -1}, {"unknown": [1]}, {"output_archive": None}):
        document = {"status": "failure", "exit_code": 1, **change}
        (tmp_path / "result.json").write_text(json.dumps(document))
        done = subprocess.run([tool, "read", tmp_path], capture_output=True, timeout=60)
        assert (done.returncode == 0) == schema.is_valid(document), document
