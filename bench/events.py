# SPDX-License-Identifier: Apache-2.0
"""Emitting and tailing events, ours against the Python original, interleaved in one run.

Both redact each line, write it as an event and store chunks as files of a directory; both read all chunks back into
events.  The original flushes each chunk to disk, ours (as a run does) only renames it into place, so emitting is
also measured with a flush of each chunk: "emit, flushed".

No round's files are deleted before the end: an ext4 without a journal does not give out an inode for a minute after it
was freed, and looks at each such one again for each file that is made.  After some rounds that took 0.7 ms of the
0.9 ms that ours spends on a chunk."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

LINES = 200_000


def seconds(argv, env):
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True, text=True)
    took, count = done.stdout.split()
    return float(took), int(count)


def one_round(scratch, ours, original, env, rates):
    def emit(side, name, program, *more):
        took, _ = seconds([*program, "emit", f"{scratch}/{name}", str(LINES), *more], env)
        rates[side].append(LINES / took)

    def tail(side, name, program):
        took, events = seconds([*program, "tail", f"{scratch}/{name}"], env)
        if events < LINES:
            sys.exit(f"{side}: {events} events of {LINES} lines")
        rates[side].append(events / took)

    os.mkdir(scratch)
    emit("emit ours", "ours", ours)
    emit("emit original", "original", original)
    emit("emit ours, flushed", "flushed", ours, "flushed")
    # Both readers over the same chunks: ours, which hold more about a line, and the original's.
    tail("tail ours", "ours", ours)
    tail("tail original", "ours", original)
    tail("tail ours, original's chunks", "original", ours)
    tail("tail original, original's chunks", "original", original)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ours, original, env = sandbox.both_sides("events")
    rates = {name: [] for name in ("emit ours", "emit original", "emit ours, flushed", "tail ours",
                                   "tail original", "tail ours, original's chunks",
                                   "tail original, original's chunks")}
    with tempfile.TemporaryDirectory(prefix="events-") as scratch:
        # The first round is not counted: in it the file system reads its tables of free inodes.
        one_round(f"{scratch}/first", ours, original, env, {name: [] for name in rates})
        for i in range(rounds):
            one_round(f"{scratch}/{i}", ours, original, env, rates)
    medians = {name: sandbox.report(name, values, "1,000/s", 0.001) for name, values in rates.items()}

    def ratio(ours, original):
        return f"ratio {medians[ours] / medians[original]:.3f}"

    print(f"emit, each chunk flushed: {ratio('emit ours, flushed', 'emit original')}")
    chunks = "original's chunks"
    print(f"tail, {chunks}: {ratio(f'tail ours, {chunks}', f'tail original, {chunks}')}")
    print("emit, then tail (each at least 10):")
    print(ratio("emit ours", "emit original"))
    print(ratio("tail ours", "tail original"))


main()
