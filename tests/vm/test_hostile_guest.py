# SPDX-License-Identifier: Apache-2.0
"""A guest that does what it likes on its channel, against the real shim, driver and collector: the whole command line.

hostile_qemu stands in the emulator's place, where a machine adds nothing; the main cases run in a real one, with
hostile_init as its PID 1.  After every run the host is looked over: the tree around the workspace, another run's
objects, the programs that were executed."""
import gzip
import json
import os
import pathlib
import shutil
import tarfile
import tempfile
import time

import pytest

from conftest import Processes, Sandbox, build_dir, kernel_environment
from hostile import (CLOCK, CREDIT, FAKE_BOOT_ID, HELLO, PUT_DATA, PUT_END, RUN, STARTED, Archive, Host, Place, Script,
                     archive, begin, by_protocol, ended, event, fake_host, frame, line, opening, over)
from newc import in_place_of_runner

DEFAULTS = {"bytes": 64 << 30, "objects": 900_000, "archive-bytes": 64 << 30, "members": 1_000_000, "ratio": 500}


@pytest.fixture(scope="module")
def host():
    with fake_host() as host:
        yield host


@pytest.fixture(autouse=True)
def nothing_of_the_test_before(host):
    yield
    if RUN in host.sandbox.runs():
        host.sandbox.run("rm", "--force", RUN)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def script():
    return Script(RUN)


def test_a_guest_that_keeps_the_protocol(host, place):
    """What all the others differ from."""
    archive = Archive().add("out/a.txt", b"a").packed()
    result = host.run(script().greet().put("_canary_ok", b"ok").says("hello", "world").ends(archive), place,
                      ["--output", "out/**"])
    assert result["ok"] and result["output"] == "hello\nworld\n" and result["artifacts"] == ["out/a.txt"], result
    assert {name: told["limit"] for name, told in result["quotas"].items()} == DEFAULTS
    assert place.landed() == {"out", "out/a.txt"} and result["warnings"] == []


# --- the channel ---

def greeted():
    return script().greet()


def on_conduit(*frames):
    return greeted().raw("conduit", b"".join(frames))


def on_control(*frames):
    return greeted().raw("control", b"".join(frames))


END = frame(PUT_END, b"\0\0\0\0", stream=1)

BREACHES = {
    # frames out of order
    "data before begin": on_conduit(frame(PUT_DATA, b"x", stream=1)),
    "end before begin": on_conduit(END),
    "put before hello": script().raw("conduit", begin(b"_canary_ok", 2)),
    "hello twice": on_conduit(frame(HELLO, b"\1\0\0\0")),
    "hello of another version": script().raw("conduit", frame(HELLO, b"\2\0\0\0")),
    "started twice": greeted().do("started"),
    "started on the conduit": on_conduit(frame(STARTED, b"{}")),
    "a put on control": on_control(begin(b"_canary_ok", 2)),
    "streams that go down": on_conduit(begin(b"_canary_ok", 2, 9), begin(b"result.json", 2, 8)),
    "five objects at once": on_conduit(*(begin(b"outbox/%d.tar.gz" % i, 2, i) for i in range(1, 6))),
    "a job of its own": on_control(frame(2, b"{}")),
    "an answer of its own": on_conduit(frame(19, stream=1)),
    "what only a caller says": on_control(frame(66, b"quota")),
    "a network that is not there": on_control(frame(32, b"example.org")),
    "a type that is none": on_conduit(frame(255)),
    # cut short, too long
    "no length": greeted().raw("conduit", bytes(64)),
    "a length of seven": on_conduit(frame(PUT_DATA, b"", length=7)),
    "a length beyond the limit": on_conduit(frame(PUT_DATA, b"x", length=64 * 1024 + 9)),
    "a length of four gigabytes": on_conduit(frame(PUT_DATA, b"x", length=2**32 - 1)),
    "a field that must be zero": on_conduit(frame(PUT_DATA, b"x", zero=1)),
    "flags that are none": on_conduit(frame(PUT_DATA, b"x", flags=254)),
    "a split begin": on_conduit(frame(16, b"x" * 20, flags=1, stream=1)),
    "a begin without a key": on_conduit(begin(b"")),
    "a begin that is too short": on_conduit(frame(16, b"1234", stream=1)),
    "an end that is too short": on_conduit(begin(b"_canary_ok", 0), frame(PUT_END, b"\0", stream=1)),
    "more than was announced": on_conduit(begin(b"_canary_ok", 1), frame(PUT_DATA, b"okok", stream=1)),
    "less than was announced": on_conduit(begin(b"_canary_ok", 2), END),
    "started without end": on_control(frame(STARTED, b" " * 60000)),
    "credit of a wrong size": on_control(frame(CREDIT, b"\0")),
    "a clock of its own": on_control(frame(CLOCK, bytes(16))),
    # objects
    "chunk two first": on_conduit(begin(b"events-000002.jsonl", 1)),
    "chunk nought": on_conduit(begin(b"events-000000.jsonl", 1)),
    "a chunk rewritten": greeted().says("one").put("events-000001.jsonl", b"{}\n"),
    "a chunk left out": greeted().says("one").put("events-000003.jsonl", b"{}\n"),
    "an archive rewritten": greeted().put("outbox/a.tar.gz", b"1").put("outbox/a.tar.gz", b"2"),
    "a result rewritten": greeted().result().result(exit_code=1),
    "a canary rewritten": greeted().put("_canary_ok", b"ok").put("_canary_ok", b"ok"),
    "a manifest that counts too many": greeted().says("one").result().manifest(2),
    "a manifest that counts too few": greeted().says("one").result().manifest(0),
    "a manifest of no number": greeted().result().put("_manifest.json", b'{"total_chunks": "0"}'),
    "a manifest of a negative number": greeted().result().put("_manifest.json", b'{"total_chunks": -1}'),
    "a manifest that is deep": greeted().result().put("_manifest.json", b"[" * 4000),
    "a manifest that is no JSON": greeted().result().put("_manifest.json", b"\xff\0{"),
    "a manifest before its result is whole": on_conduit(begin(b"result.json", 2, 1), begin(b"_manifest.json", 2, 2)),
    "a result of a gigabyte": on_conduit(begin(b"result.json", 1 << 30)),
    "a chunk of a gigabyte": on_conduit(begin(b"events-000001.jsonl", 1 << 30)),
    "a canary of a gigabyte": on_conduit(begin(b"_canary_ok", 1 << 30)),
    "a result without end": greeted().do("endless", key="result.json"),
    "a chunk without end": greeted().do("endless", key="events-000001.jsonl"),
    "a manifest without end": greeted().do("endless", key="_manifest.json"),
    "a canary without end": greeted().do("endless", key="_canary_ok"),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_of_the_protocol_ends_the_run(host, name):
    result = host.run(BREACHES[name])
    by_protocol(result)
    assert "the guest sent" in host.said and RUN not in host.sandbox.runs()


KEYS = [
    b"../result.json", b"../../run.json", b"../run-other/events-000001.jsonl", b"run/run-other/result.json",
    b"run-other/events-000002.jsonl", b"/etc/passwd", b"/result.json", b"./result.json", b"outbox/../result.json",
    b"outbox/../../run.json", b"outbox/..tar.gz", b"outbox/...tar.gz", b"outbox/.tar.gz", b"outbox/.git.tar.gz",
    b"outbox//a.tar.gz", b"outbox/a/b.tar.gz", b"outbox/a.tar.gz/", b"outbox\\a.tar.gz", b"outbox/a.tar.gz\0.txt",
    b"result.json\0", b"\0", b"events-000001.jsonl\n", b"events-1.jsonl", b"events-0000001.jsonl", b"events-1000000.jsonl",
    b"events-\xd9\xa1\xd9\xa2\xd9\xa3.jsonl", b"EVENTS-000001.jsonl", b"Result.json", b"result.json ", b" result.json",
    b"inbox/workspace.tar.gz", b"task.json", b"control-000001.json", b"stdin-000001.bin", b"_stdin.json", b"_shipped",
    b"launch/run-other/request.json", b"state.json", b"outbox/\xff.tar.gz", b"outbox/" + b"a" * 300 + b".tar.gz", b"a" * 5000,
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key[:40]))
def test_a_key_that_is_none_ends_the_run(host, key):
    by_protocol(host.run(on_conduit(begin(key, 1))))


def test_a_second_manifest_is_not_heard(host):
    """Everything behind a manifest is too late: the run has ended with the first."""
    says = greeted().says("once").result().manifest()
    result = host.run(says.put("_manifest.json", b'{"total_chunks": 1}').do("off"))
    assert result["disposition"] == "completed" and result["output"] == "once\n", result


@pytest.mark.parametrize("rest", [frame(PUT_DATA, b"x" * 1000, stream=1)[:-1], b"\x20", frame(PUT_DATA, b"")[:11]])
def test_a_frame_cut_short_leaves_nothing(host, rest):
    result = host.run(on_conduit(begin(b"outbox/output.tar.gz", 1000), rest).do("off"), options=["--keep"])
    ended(result, "guest-power-off", "external")
    assert host.objects(RUN) == {}
    assert host.sandbox.run("rm", RUN).returncode == 0


def test_damage_is_refused_and_costs(host):
    """Objects that arrive damaged are refused one by one, and charged: to send them for ever ends, too."""
    says = greeted()
    for _ in range(20):
        says.put("events-000001.jsonl", b"x" * 5000, crc=False)
    over(host.run(says, options=["--quota", "bytes=64Ki"]), "bytes")


# --- silence and floods ---

SILENCES = {
    "nothing at all": script(),
    "nothing after its start": greeted(),
    "half an object": on_conduit(begin(b"outbox/output.tar.gz", 1000), frame(PUT_DATA, b"x", stream=1)),
    "questions about the time": greeted().raw("control", frame(CLOCK), times=3000),
    "credit": greeted().raw("control", frame(CREDIT, b"\xff\xff\xff\xff"), times=3000),
}


@pytest.mark.parametrize("name", SILENCES)
def test_a_guest_without_events_is_silent(host, name):
    result = host.run(SILENCES[name], options=["--dead-after", "1s"])
    ended(result, "silent", "silent")


def test_heartbeats_alone_keep_a_guest_alive_until_its_quota(host):
    """They are signs of life, three silence windows long; and objects."""
    start = time.monotonic()
    result = host.run(greeted().do("beats", every_ms=300, run_id=RUN), options=["--dead-after", "1s", "--quota", "objects=10"])
    over(result, "objects")
    assert time.monotonic() - start > 2.7


FLOODS = {
    "tiny objects": (greeted().says("first").flood(), "objects=300", "objects"),
    "tiny objects cost names": (greeted().says("first").flood(), "bytes=300Ki", "bytes"),
    "small objects cost blocks": (greeted().says("first").flood(data=b"x"), "bytes=1Mi", "bytes"),
    "archives": (greeted().says("first").do("endless", key="outbox/output.tar.gz"), "archive-bytes=4Mi", "archive-bytes"),
    "archives cost bytes": (greeted().says("first").do("endless", key="outbox/output.tar.gz"), "bytes=4Mi", "bytes"),
    "an archive announced": (greeted().says("first").do("begin", key="outbox/output.tar.gz", size=5 << 20),
                             "archive-bytes=4Mi", "archive-bytes"),
    "an archive of all there is": (greeted().says("first").do("begin", key="outbox/output.tar.gz", size=2**63 - 1),
                                   "members=7", "archive-bytes"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_with_its_quota_and_keeps_what_was_within(host, name):
    says, quota, exceeded = FLOODS[name]
    result = host.run(says, options=["--quota", quota, "--keep"])
    over(result, exceeded)
    assert result["exit_code"] == 125 and result["output"] == "first\n"
    assert f"--quota {exceeded}=VALUE" in host.said
    kept = host.objects(RUN)
    if exceeded == "objects":
        assert len(kept) == 300
    assert sum(1024 + -(-len(content) // 4096) * 4096 for content, _ in kept.values()) <= 4 << 20
    assert "events-000001.jsonl" in kept and not any(name.startswith("outbox") for name in kept)
    # The same is told to who comes later.
    again = json.loads(host.sandbox.run("wait", "--json", RUN).stdout)
    over(again, exceeded)
    assert again["quotas"] == result["quotas"]
    assert host.sandbox.run("rm", RUN).returncode == 0


def test_thirty_two_archives_and_no_more(host):
    says = greeted()
    for number in range(40):
        says.put(f"outbox/a{number}.tar.gz", b"")
    over(host.run(says), "objects")


# --- results ---

RESULTS = {
    "not JSON": b"{]", "nothing": b"", "NUL": b'{"status":"success"}\0', "deep": b"[" * 500_000,
    "deep in a member": b'{"node_id":"run","status":"success","x":' + b"[" * 200 + b"]" * 200 + b"}",
    "a list": b"[]", "a number": b"7", "not UTF-8": b'{"status":"succ\xff"}', "no status": b"{}",
    "a member twice": b'{"status":"failure","status":"success"}',
    "a status of its own": b'{"node_id":"run","status":"great"}', "an exit code of text": b'{"status":"success","exit_code":"0"}',
    "an exit code beyond": b'{"status":"success","exit_code":256}',
    "an archive elsewhere": b'{"status":"success","exit_code":0,"output_archive":"../../etc/passwd"}',
    "a number beyond": b'{"status":"success","exit_code":1e999}',
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_is_none_is_told(host, place, name):
    result = host.run(greeted().says("x").put("result.json", RESULTS[name]).manifest().do("off"), place, ["--output", "**"])
    ended(result, "bad-result", "completed")
    assert result["exit_code"] == 125 and result["output"] == "x\n" and result["artifacts"] == []


def test_a_result_full_of_large_words_is_cut(host):
    words = {"reason": "x" * 300_000, "detail": "y" * 300_000, "warnings": ["z" * 200_000, *(["w"] * 10_000)],
             "canary": [{"probe": "p", "ok": True, "detail": "d"}] * 500, "timings_ms": {"run": 1e300, "boot": -1e300}}
    result = host.run(greeted().says("x").result(**words).manifest().do("off"))
    assert len(json.dumps(result)) < 64 * 1024 and result["timings_ms"]["run"] <= result["timings_ms"]["total"]
    assert len(host.said) < 32 * 1024


def test_a_forged_proof_of_its_kernel_is_no_result(host):
    result = host.run(greeted().says("x").ends(guest_boot_id="99999999-2222-4333-8444-555555555555"))
    ended(result, "own-kernel-unproven", "refused")
    with open("/proc/sys/kernel/random/boot_id") as file:
        result = host.run(greeted().says("x").ends(guest_boot_id=file.read().strip()))
    ended(result, "shared-kernel", "refused")
    assert FAKE_BOOT_ID == result["isolation"]["guest_boot_id"]


# --- events ---

def test_events_of_other_runs_are_not_believed(host):
    says = greeted().chunk(opening("run-other"), line("run-other", "not mine", 1), opening(RUN), line(RUN, "mine", 1),
                           line("", "nobody's", 2), event("", "hb", "heartbeat"), event("run-other", "hb", "heartbeat"))
    result = host.run(says.ends())
    assert result["ok"] and result["output"] == "mine\n", result
    [warning] = result["warnings"]
    assert warning.startswith("foreign-events: 4 events")
    assert host.sandbox.run("logs", "run-other").stdout == b"mine\n"


def test_clocks_and_lines_of_any_kind(host):
    """1970, 2100 and beyond: the guest's clock decides nothing.  Lines that are no events are passed over."""
    times = [0, 0.0, 4102444800, -1, -1e18, 1e299, 253402300800]
    lines = [{**line(RUN, str(ts), seq), "ts": ts} for seq, ts in enumerate(times, 1)]
    odd = ["", "\t", "{", "null", "[]", '{"ts": NaN}', "[" * 10_000, '{"a":' * 10_000, "\x00", "\ud7ff" * 10,
           json.dumps(event(RUN, "x" * 100_000)), json.dumps({**event(RUN, "b"), "ts": "soon"}),
           json.dumps({**event(RUN, "b"), "event": "explode"}), '{"ts": 1e999}']
    result = host.run(greeted().chunk(opening(RUN), *lines, *odd).ends(), options=["--dead-after", "20s"])
    assert result["ok"] and result["output"].split() == [str(ts) for ts in times], result
    assert result["timings_ms"]["total"] < 60_000


# --- archives ---

GOOD = ("good.txt", b"good\n")

REFUSED = {
    "a name that climbs": archive(GOOD, ("../escaped", b"x")),
    "a name that climbs from within": archive(GOOD, ("dir/../../escaped", b"x")),
    "a name that climbs back in": archive(GOOD, ("../ws/x", b"x")),
    "an absolute name": archive(GOOD, ("/tmp/escaped", b"x")),
    "a link out": archive(GOOD).link("l", "../victim"),
    "an absolute link": archive(GOOD).link("l", "/etc/passwd"),
    "a link planted, then written through": archive(GOOD).link("l", "dir").add("l/through", b"x"),
    "a link over a link": archive(GOOD).link("dot", ".").link("l", "dot/../victims").add("l/inner", b"x"),
    "a link that was there": archive(GOOD, ("to-victims/inner", b"x")),
    "a link that was there, further down": archive(GOOD, ("to-victims/new/file", b"x")),
    "a link inside that was there": archive(GOOD, ("inside/kept", b"x")),
    "a directory over a link": archive(GOOD).add("to-victims", kind=tarfile.DIRTYPE, mode=0o777),
    "a hard link out": archive(GOOD).hard("h", "../victim"),
    "an absolute hard link": archive(GOOD).hard("h", "/etc/passwd"),
    "a hard link to what was there": archive(GOOD).hard("h", "own.txt"),
    "a hard link through a link": archive(GOOD).hard("h", "to-victims/inner"),
    "a hard link to a link": archive(GOOD).link("s", "good.txt").hard("h", "s"),
    "a character device": archive(GOOD).add("d", kind=tarfile.CHRTYPE),
    "a block device": archive(GOOD).add("d", kind=tarfile.BLKTYPE),
    "a fifo": archive(GOOD).add("f", kind=tarfile.FIFOTYPE),
    "a kind of its own": archive(GOOD).add("k", kind=b"Z"),
    "a file over a directory": archive(GOOD, ("dir", b"x")),
    "a directory over a file": archive(GOOD).add("own.txt", kind=tarfile.DIRTYPE),
    "a file as a directory": archive(GOOD, ("good.txt/x", b"x")),
    "no name": archive(GOOD, ("./", b"x")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_that_climbs_out_is_refused(host, place, name):
    result = host.run(greeted().says("x").ends(REFUSED[name].packed()), place, ["--output", "**", "--output", "*"])
    ended(result, "bad-output", "completed")
    # What came before stays, and is told.
    assert "good.txt" in result["artifacts"] and (place.workspace / "good.txt").read_bytes() == b"good\n"
    assert not (place.top / "outer" / "escaped").exists() and not os.path.lexists("/tmp/escaped")


BROKEN = {
    "not gzip": b"this is no archive at all", "nothing": b"", "cut short": archive(GOOD, ("b", bytes(10_000))).packed()[:-20],
    "half a header": gzip.compress(b"x" * 300), "a checksum that lies": gzip.compress(b"a" * 1024),
    "gzip of gzip": gzip.compress(archive(GOOD).packed()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_archive_that_is_none_is_refused(host, place, name):
    result = host.run(greeted().says("x").ends(BROKEN[name]), place, ["--output", "**"])
    ended(result, "bad-output", "completed")
    assert place.landed() <= {"good.txt"}


def test_existing_files_are_replaced_and_never_written_through(host, place):
    made = archive(("to-victim", b"mine"), ("hard", b"mine"), ("to-victims", b"mine")).link("inside", "good.txt").add(*GOOD)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "*"])
    assert result["ok"], result
    for name in ("to-victim", "hard", "to-victims"):
        assert (place.workspace / name).read_bytes() == b"mine" and not (place.workspace / name).is_symlink()
    assert os.readlink(place.workspace / "inside") == "good.txt"


def test_names_that_collide_or_are_no_text_land_as_they_are(host, place):
    names = ["Readme", "README", "readme", "e\u0301", "\u00e9", "\udcff\udcfe", "a\nb", "\x1b[31mred", "-rf", "~", "$(touch x)",
             "%s%n", "'; rm -rf /", "CON", "n" * 255]
    made = archive(*((f"out/{name}", name.encode("utf-8", "surrogateescape")) for name in names))
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "out/*"])
    assert result["ok"] and len(result["artifacts"]) == len(names), result
    for name in names:
        assert (place.workspace / "out" / name).read_bytes() == name.encode("utf-8", "surrogateescape")


def test_what_would_make_the_host_run_something_stays_out(host, place):
    made = archive((".git/hooks/post-checkout", b"#!/bin/sh\n"), ("a/.git/config", b"x"), (".envrc", b"x"), (".vscode/tasks.json", b"x"),
                   (".idea/x", b"x")).add("setuid", b"#!/bin/sh\n", mode=0o6777)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "**"])
    assert result["ok"] and result["artifacts"] == ["setuid"] and place.landed() == {"setuid"}
    assert (place.workspace / "setuid").stat().st_mode & 0o7000 == 0


def test_a_link_does_not_lend_its_name(host, place):
    """What matches a pattern may be a link to what does not: the link comes, what it names is neither read nor touched."""
    made = archive(("out/real", b"r")).link("out/report", "../private.json").link("result.json", "private.json")
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "out/*", "--output", "result.json"])
    assert result["ok"] and result["artifacts"] == ["out/real", "out/report", "result.json"], result
    assert result["result"] is None and os.readlink(place.workspace / "out/report") == "../private.json"
    # A further name of a file that nobody asked for would bring its content along.
    for target in ("secret", "private.json"):
        made = archive(("secret", b"s")).hard("out/hard", target)
        ended(host.run(greeted().says("x").ends(made.packed()), place, ["--output", "out/*"]), "bad-output", "completed")
        assert not (place.workspace / "out/hard").exists()


def test_times_before_and_behind_all_clocks(host, place):
    made = archive(GOOD)
    for name, mtime in (("epoch", 0), ("before", -(10**9)), ("2100", 4102444800), ("far", 8**11)):
        made.add(name, b"x", mtime=mtime)
    made.add("beyond", b"x", pax={"mtime": "99999999999999999999.5"})
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "*"])
    assert len(result["artifacts"]) >= 5 and (place.workspace / "2100").stat().st_mtime == 4102444800, result


BOMBS = {
    # name: what makes the archive, quotas, patterns, the quota that is exceeded, what lands
    "a sparse petabyte": (lambda: archive(GOOD).sparse("hole", 1 << 50), [], "*", "archive-bytes", {"good.txt"}),
    "sparse terabytes": (lambda: archive(GOOD).sparse("a", 1 << 39).sparse("b", 1 << 39).sparse("c", 1 << 39), [], "*", "archive-bytes",
                         {"good.txt", "a"}),
    "a ratio": (lambda: archive(GOOD).zeros("zeros", 70 << 20), [], "*", "ratio", {"good.txt"}),
    "a ratio that nobody asked for": (lambda: archive(GOOD).zeros("zeros", 70 << 20), [], "good.txt", "ratio", {"good.txt"}),
    "bytes": (lambda: archive(GOOD, ("big", b"x" * 200_000)), ["archive-bytes=100k"], "*", "archive-bytes", {"good.txt"}),
    "small files": (lambda: archive(GOOD, *((f"f{i}", b"x") for i in range(50))), ["archive-bytes=52k"], "*", "archive-bytes",
                    {"good.txt", *(f"f{i}" for i in range(9))}),
    "members": (lambda: archive(GOOD).empties(1000), ["members=5"], "*", "members", {"good.txt", *(f"e{i:07}" for i in range(4))}),
    "members that nobody asked for": (lambda: archive(GOOD, level=1).empties(100_000), ["members=50k"], "good.txt", "members", {"good.txt"}),
    "links that wait": (lambda: archive(GOOD).link("d" * 90, "a/../x"), ["members=1"], "*", "members", {"good.txt"}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_with_its_quota_and_keeps_what_was_within(host, place, name):
    make, quotas, pattern, exceeded, landed = BOMBS[name]
    options = [word for quota in quotas for word in ("--quota", quota)]
    result = host.run(greeted().says("x").ends(make().packed()), place, ["--output", pattern, *options])
    over(result, exceeded)
    assert place.landed() == landed and set(result["artifacts"]) == landed, result["artifacts"]
    assert sum(os.lstat(place.workspace / name).st_blocks for name in landed) < 4096
    assert f"{exceeded}: " in host.said and f"--quota {exceeded}=VALUE" in host.said


def test_a_failed_program_over_a_quota_of_outputs_counts_as_stopped(host, place):
    made = archive(GOOD).empties(10)
    result = host.run(greeted().says("x").ends(made.packed(), status="failure", exit_code=7), place,
                      ["--output", "*", "--quota", "members=3"])
    over(result, "members")
    assert result["exit_code"] == 125 and len(result["artifacts"]) == 3


def test_a_hundred_thousand_members_of_no_bytes(host, place):
    """Within the quota; what nobody asked for costs nothing here."""
    made = archive(GOOD, level=1).empties(100_000)
    result = host.run(greeted().says("x").ends(made.packed()), place, ["--output", "good.txt"])
    assert result["ok"] and place.landed() == {"good.txt"}, result


def test_collect_in_another_process_is_under_the_same_quotas(host, place, tmp_path):
    says = greeted().says("x").ends(archive(GOOD).empties(10).packed())
    host.run(says, options=["--keep", "--output", "*", "--output-dir", tmp_path / "first", "--quota", "members=4"])
    done = host.sandbox.run("collect", RUN, "--workspace", tmp_path / "again")
    assert done.returncode == 125 and b"members: " in done.stderr, done.stderr
    assert len(list((tmp_path / "again").iterdir())) == len(list((tmp_path / "first").iterdir())) == 4
    assert host.sandbox.run("rm", RUN).returncode == 0


# --- in a real machine ---

@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A real guest whose PID 1 is hostile, and whose tree of programs is nobody's."""
    kernel = kernel_environment("built")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile-vm-"))
    folder.chmod(0o755)
    init = in_place_of_runner((build_dir() / "tests/vm/hostile_init").read_bytes())
    (folder / "initrd.img").write_bytes(pathlib.Path(kernel["RESOLUTO_LOCAL_INITRD"]).read_bytes() + init)
    yield Host(folder, {**kernel, "RESOLUTO_LOCAL_INITRD": str(folder / "initrd.img")})
    shutil.rmtree(folder)


def test_a_hostile_init_that_breaks_the_protocol(machine, place):
    by_protocol(machine.run(greeted().says("x").put("events-000001.jsonl", b"{}\n"), place))
    assert machine.sandbox.runs() == [] and not Processes.qemu_of(RUN)


def test_a_hostile_init_that_floods(machine, place):
    says = greeted().says("first").flood()
    result = machine.run(says, place, ["--quota", "objects=500"])
    over(result, "objects")
    assert result["output"] == "first\n" and machine.sandbox.runs() == [] and not Processes.qemu_of(RUN)


def test_a_hostile_init_with_bytes_without_end(machine, place):
    over(machine.run(greeted().do("endless", key="outbox/output.tar.gz"), place, ["--quota", "bytes=64Mi"]), "bytes")


def test_a_hostile_init_whose_archive_climbs_out(machine, place):
    """The events of another run and an archive that writes through a link, in one machine that ends in order."""
    made = archive(GOOD).link("l", "dir").add("l/kept", b"x")
    says = greeted().chunk(opening("run-other"), line("run-other", "not mine", 1), opening(RUN), line(RUN, "mine", 1))
    result = machine.run(says.ends(made.packed()), place, ["--output", "**"])
    ended(result, "bad-output", "completed")
    assert result["output"] == "mine\n" and result["warnings"][0].startswith("foreign-events: 2")
    assert result["artifacts"] == ["good.txt", "l"]
