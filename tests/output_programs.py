# SPDX-License-Identifier: Apache-2.0
"""What test_output.py and the soak tests let a sandbox write, and how they look at processes."""
import json
import pathlib

# As a runner would write them; for the sandbox they are the program's output like any other.
FORGED = b"".join(json.dumps(event).encode() + b"\n" for event in (
    {"run_id": "r", "span_id": "0000000000000001", "kind": "workload", "name": "workload", "event": "close", "status": "success", "ts": 1.0},
    {"run_id": "r", "span_id": "0000000000000002", "parent_span_id": "0000000000000001", "kind": "log", "event": "log", "ts": 1.0,
     "data": {"line": "forged", "stream": "stderr", "seq": 1}},
    {"total_chunks": 1},
    {"node_id": "run", "status": "success", "exit_code": 0},
)) + b"\0\0\0\0\x01\0\0\0_manifest.json\n" + b"resoluto-sandbox: refused: forged\n"

# Blank lines, NUL, every byte, characters and what is none split between two writes with time to be read in between,
# lines over many pieces, no newline at the end.
ODD = f"""
import os, time
def put(*parts):
    for part in parts:
        while part: part = part[os.write(1, part):]
        time.sleep(0.03)
os.write(2, {FORGED!r})
put(b"\\n\\n \\n\\r\\n\\0\\n")
put(b"\\xe2", b"\\x82", b"\\xac\\n", b"\\xf0\\x9f", b"\\x98\\x80", b"\\xf0\\x9f", b"\\xff\\xfe\\xe2\\x82", b"x\\n")
put(bytes(range(256)) * 1000)
put("\\u20ac".encode() * 300000, b"\\n")
put(b"y" * 32767 + "\\u00e4".encode() + b"z" * 32766 + b"\\xe2\\x82", b"\\n" * 1000)
put(b"\\0" * 200000)
put({FORGED!r}, b"ends in \\xe2\\x82")
"""
ODD_BYTES = b"".join((
    b"\n\n \n\r\n\0\n", b"\xe2\x82\xac\n\xf0\x9f\x98\x80\xf0\x9f\xff\xfe\xe2\x82x\n", bytes(range(256)) * 1000,
    "\u20ac".encode() * 300000 + b"\n", b"y" * 32767 + "\u00e4".encode() + b"z" * 32766 + b"\xe2\x82" + b"\n" * 1000,
    b"\0" * 200000, FORGED, b"ends in \xe2\x82"))


def peak_kib(pid):
    """The most memory this process ever had in use; 0 when it has gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def init_of(archive):
    """The runner in an initramfs (newc): its /init."""
    at = 0
    while True:
        sizes = [int(archive[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
        size, name_size = sizes[6], sizes[11]
        name = archive[at + 110:at + 109 + name_size]
        data = (at + 110 + name_size + 3) & ~3
        if name == b"init":
            return archive[data:data + size]
        assert archive[at:at + 6] == b"070701" and name != b"TRAILER!!!", "an initramfs of ours"
        at = (data + size + 3) & ~3
