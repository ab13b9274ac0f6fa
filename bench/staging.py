# SPDX-License-Identifier: Apache-2.0
"""Staging a text tree in and out, ours against the Python original, interleaved in one run.

Beneath TMPDIR if that is set, else in memory where there is room, so that it is not the disk that is measured."""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import sandbox  # noqa: E402

MIB = 1 << 20
SIZE_LIMIT, MEMORY_LIMIT_MIB = 1.1, 32


def place_to_work():
    memory = "/dev/shm"
    if "TMPDIR" not in os.environ and os.path.isdir(memory) and shutil.disk_usage(memory).free > 4096 * MIB:
        return memory
    return None


def make_lines(draw, count):
    """Lines like those of programs: few words often, many seldom, indented, with names and numbers of their own."""
    letters = "etaoinshrdlcumwfgypbvk"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 11))) for _ in range(4_000)]
    weights = [1 / (rank + 1) ** 1.1 for rank in range(len(words))]
    signs = [" ", " ", " ", "_", "_", "(", ", ", " = ", ".", ".", "->", " + ", "[", ": "]
    lines = []
    for _ in range(count):
        picked = draw.choices(words, weights, k=draw.randint(1, 7))
        line = "\t" * draw.choice([0, 1, 1, 2, 2, 3])
        line += "".join(word + draw.choice(signs) for word in picked)
        if draw.random() < 0.1:
            line += str(draw.randrange(100_000))
        lines.append(line + draw.choice([";\n", ");\n", " {\n", "\n", "\n\n"]))
    return lines


def make_tree(top, size, seed):
    """Files of 0.5 to 80 KiB, mostly small, 40 to a directory; the same for the same seed."""
    draw = random.Random(seed)
    lines = make_lines(draw, 150_000)
    average = sum(map(len, lines)) / len(lines)
    total = count = 0
    while total < size:
        wanted = max(1, int(512 * 2 ** (draw.random() ** 1.5 * 7.3) / average))
        own = draw.choices(lines, k=1 + wanted // 2)  # a file repeats itself
        text = "".join(draw.choices(own, k=wanted))
        directory = top / f"part{count // 1600}" / f"module{count // 40 % 40}"
        if count % 40 == 0:
            directory.mkdir(parents=True)
        (directory / f"file{count}.c").write_text(text)
        total += len(text)
        count += 1
    return total, count


def timed(argv, env):
    os.sync()  # what the step before has left to write is not this one's
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True, text=True)
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def one_round(place, tree, ours, original, env, rates):
    """Into new directories, which stay: ext4 looks long for inodes while many were freed in the last seconds."""
    size = sum(f.stat().st_size for f in tree.rglob("*") if f.is_file()) / MIB
    for name in "ours", "original", "store":
        (place / name).mkdir(parents=True)
    steps = [("in ours", [*ours, "in", tree, place / "archive"]),
             ("in original", [*original, "in", tree, place / "store"]),
             ("out ours", [*ours, "out", place / "archive", place / "ours"]),
             ("out original", [*original, "out", place / "store", place / "original"])]
    peak = 0
    for name, argv in steps:
        seconds, kib = timed(list(map(str, argv)), env)
        rates[name].append(size / seconds)
        peak = max(peak, kib)
    subprocess.run(["diff", "-rq", place / "ours", place / "original"], check=True)
    return peak


def piped(command):
    return int(subprocess.run(["bash", "-o", "pipefail", "-c", command + " | wc -c"], check=True,
                              stdout=subprocess.PIPE).stdout)


def compare_sizes(tree, archive):
    """Against gzip -1 of the very same tar, and of what GNU tar makes of the tree."""
    ours = archive.stat().st_size
    same = piped(f"gzip -dc '{archive}' | gzip -1")
    other = piped(f"tar -C '{tree}' -cf - . | gzip -1")
    print(f"archive {ours / MIB:.1f} MiB, gzip -1 of the same tar {same / MIB:.1f} MiB: {ours / same:.3f} (at most"
          f" {SIZE_LIMIT}); of GNU tar's {other / MIB:.1f} MiB: {ours / other:.3f}")
    return ours / max(1, min(same, other))


def through_a_microvm(tree, back):
    """Staged in and brought back by the command line: the peak of all processes that do it here."""
    back.mkdir()
    start = time.monotonic()
    run = subprocess.Popen([sandbox.cli(), "run", "--quiet", "--disk", "8Gi", "--workspace", tree, "--output", "**",
                            "--output-dir", back, "--", "true"], env=sandbox.environment())
    peak, _ = sandbox.peak_memory_mib(run)
    print(f"through a microVM in {time.monotonic() - start:.0f} s; command line + shim, peak PSS {peak:.1f} MiB (at most"
          f" {MEMORY_LIMIT_MIB})")
    subprocess.run(["diff", "-rq", tree, back], check=True)
    return peak


def large_tree(scratch, ours, env):
    """The peaks at 1 GiB in MiB: of ours by itself, and of a run."""
    tree = scratch / "large"
    made, files = make_tree(tree, 1024 * MIB, 2)
    seconds_in, peak_in = timed([*ours, "in", str(tree), str(scratch / "archive")], env)
    (scratch / "out").mkdir()
    seconds_out, peak_out = timed([*ours, "out", str(scratch / "archive"), str(scratch / "out")], env)
    print(f"1 GiB in {files} files: in {made / MIB / seconds_in:.0f} MiB/s, out {made / MIB / seconds_out:.0f} MiB/s")
    shutil.rmtree(scratch / "out")
    (scratch / "archive").unlink()
    return max(peak_in, peak_out) / 1024, through_a_microvm(tree, scratch / "back")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ours, original, env = sandbox.both_sides("staging")
    rates = {name: [] for name in ("in ours", "in original", "out ours", "out original")}
    with tempfile.TemporaryDirectory(prefix="staging-", dir=place_to_work()) as directory:
        scratch = pathlib.Path(directory)
        made, files = make_tree(scratch / "tree", 100 * MIB, 1)
        print(f"{made / MIB:.0f} MiB of text in {files} files")
        peak = max(one_round(scratch / f"round{i}", scratch / "tree", ours, original, env, rates)
                   for i in range(rounds))
        medians = {name: sandbox.report(name, values, "MiB/s") for name, values in rates.items()}
        size = compare_sizes(scratch / "tree", scratch / "round0/archive")
        for old in scratch.iterdir():
            shutil.rmtree(old)
        peaks = [peak / 1024, *large_tree(scratch, ours, env)]
    print(f"peak memory: {peaks[0]:.1f} MiB at 100 MiB, {peaks[1]:.1f} MiB at 1 GiB, {peaks[2]:.1f} MiB of a run with 1 GiB"
          f" (at most {MEMORY_LIMIT_MIB})")
    ratios = [medians["in ours"] / medians["in original"], medians["out ours"] / medians["out original"]]
    print(f"ratio {ratios[0]:.3f}")
    print(f"ratio {ratios[1]:.3f}")
    return 0 if size <= SIZE_LIMIT and max(peaks) <= MEMORY_LIMIT_MIB else 1


sys.exit(main())
