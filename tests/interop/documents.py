# SPDX-License-Identifier: Apache-2.0
"""JSON documents made by hypothesis from a schema, the near misses of them, and what is in them."""
import copy
import json
import random

from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from conftest import ROOT

INT_MAX, NUMBER_MAX, DEPTH_MAX = 2**63 - 1, 1e300, 32
REMARKS = {"$schema", "$id", "$defs", "title", "description", "default", "contentEncoding"}


def schema_of(name):
    return json.loads((ROOT / f"spec/{name}.schema.json").read_text())


def numbers():
    return st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def anything():
    leaves = st.none() | st.booleans() | numbers() | st.text(max_size=8)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3)
                        | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=4)


def of_string(schema, root):
    return st.from_regex(schema["pattern"]) if "pattern" in schema else st.text(max_size=20)


def of_integer(schema, root):
    low, high = schema.get("minimum"), schema.get("maximum")
    edges = [edge for edge in (low, high, 0) if edge is not None and (low is None or edge >= low)]
    return st.sampled_from(edges) | st.integers(low, high)


def of_array(schema, root):
    return st.lists(from_schema(schema.get("items", {}), root), max_size=min(3, schema.get("maxItems", 3)))


def of_object(schema, root):
    known = {key: from_schema(rule, root) for key, rule in schema.get("properties", {}).items()}
    required = {key: known.pop(key) for key in schema.get("required", [])}
    more = schema.get("additionalProperties", schema.get("maxProperties") != 0)
    named = st.fixed_dictionaries(required, optional=known)
    if more is False:
        return named
    unknown = st.text(max_size=6).filter(lambda key: key not in schema.get("properties", {}))
    others = st.dictionaries(unknown, from_schema({} if more is True else more, root), max_size=2)
    return st.builds(lambda one, two: {**two, **one}, named, others)


OF_TYPE = {"string": of_string, "integer": of_integer, "array": of_array, "object": of_object,
           "number": lambda schema, root: numbers(), "boolean": lambda schema, root: st.booleans(),
           "null": lambda schema, root: st.none()}
KEYWORDS = {"type", "enum", "const", "oneOf", "anyOf", "allOf", "$ref", "pattern", "minLength", "minimum", "maximum",
            "items", "maxItems", "properties", "required", "additionalProperties", "maxProperties"} | REMARKS


def from_schema(schema, root=None):
    """Documents that are valid; what the schemas of this project and of pydantic use, and no more.  `allOf` and
    `minLength` are left to a filter of the caller's."""
    root = root or schema
    if schema is True:
        schema = {}
    assert set(schema) <= KEYWORDS, set(schema) - KEYWORDS
    if "$ref" in schema:
        return from_schema(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    choices = schema.get("oneOf", schema.get("anyOf"))
    if choices:
        return st.one_of([from_schema(choice, root) for choice in choices])
    types = schema.get("type")
    if types is None:
        return anything()
    return st.one_of([OF_TYPE[name](schema, root) for name in ([types] if isinstance(types, str) else types)])


def places(document, path=()):
    """The path of every value within it."""
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


REMOVED = "\0removed"


def change(document, path, value):
    for key in path[:-1]:
        document = document[key]
    if value != REMOVED:
        document[path[-1]] = value
    elif isinstance(document, list):
        document.pop(path[-1])
    else:
        document.pop(path[-1], None)


NEAR_VALUES = (REMOVED, None, -65, 256, 1.0, 0.5, 1e30, 10**6, "", "success", "log", "outbox/x.tar.gz\n", [{}], {"x": "1"})


def collect(documents, count):
    """Always the same ones."""
    found = []

    @settings(max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(documents)
    def run(document):
        found.append(document)

    run()
    return found


@st.composite
def near_misses(draw, documents, names, count):
    """A document, one of the ways to write it on a line, and documents that differ from it in one or two values.
    (What hypothesis draws costs a millisecond each time: which values go where is left to a seed.)"""
    document = draw(documents)
    text = json.dumps(document, ensure_ascii=draw(st.booleans()),
                      separators=draw(st.sampled_from([(",", ":"), (", ", ": "), ("\t,\r", " : ")])))
    values = [*NEAR_VALUES, *draw(st.lists(anything(), min_size=3, max_size=3))]
    chance = random.Random(draw(st.integers(0, 2**32)))
    misses = [copy.deepcopy(document) for _ in range(count)]
    for number, miss in enumerate(misses):
        for _ in range(1 + number % 2):
            path = chance.choice([(name,) for name in names] + list(places(miss)))
            change(miss, path, copy.deepcopy(chance.choice(values)))
    return document, text, misses


def is_beyond_limits(value, depth=0):
    """Whether readers of ours refuse it for what spec/PROTOCOL.md says under Limits: no schema can say that."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return not -INT_MAX - 1 <= value <= INT_MAX
    if isinstance(value, float):
        return abs(value) >= NUMBER_MAX
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return depth >= DEPTH_MAX or any(is_beyond_limits(item, depth + 1) for item in inner)
