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


def output_validator():
    schema = json.loads((ROOT / "spec/event.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema["$defs"]["output"])


def test_what_the_writer_writes_of_output_is_valid(documents):
    mine = [document["data"] for name, document in documents if name == "event" and "line" in document["data"]]
    assert len(mine) >= 5 and any("b64" in data for data in mine) and any("nl" in data for data in mine)
    for data in mine:
        output_validator().validate(data)


@pytest.mark.parametrize("change", [{"stream": "stdin"}, {"seq": 0}, {"seq": "1"}, {"nl": True}, {"nl": "false"}, {"line": b""},
                                    {"b64": 1}])
def test_is_no_output(change):
    valid = {"line": "", "stream": "stderr", "seq": 1}
    output_validator().validate(valid)
    assert not output_validator().is_valid({**valid, **change})


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
    ("event", {"event": "other"}), ("event", {"ts": "1"}), ("event", {"data": []}), ("event", {"data": None}),
    ("result", {"status": "ok"}), ("result", {"exit_code": 256}), ("result", {"exit_code": -65}),
    ("result", {"output_archive": "outbox/../x.tar.gz"}), ("result", {"output_archive": "inbox/x.tar.gz"}),
    ("result", {"signal": 0}), ("result", {"canary": [{"ok": True}]}), ("result", {"output_archive": "outbox/x.tar.gz\n"}),
    ("manifest", {"total_chunks": 1000000}), ("manifest", {"total_chunks": -1}),
    ("task", {"env": {"A": 1}}), ("task", {"output_paths": [1]}),
])
def test_is_refused(name, document):
    valid = {"event": {"run_id": "r", "span_id": "s", "kind": "k", "event": "log", "ts": 1},
             "result": {"status": "success"}, "task": {"workspace_dir": "/w"}, "manifest": {"total_chunks": 1}}[name]
    assert not validator(name).is_valid({**valid, **document})
