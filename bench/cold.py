# SPDX-License-Identifier: Apache-2.0
"""Cold `run -- /bin/true`, whole command, on the kernel of our own and on the distribution's, and beside each the bare
boot: the same QEMU, kernel and command line booting an init that leaves at once.  All interleaved in one run."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import bare  # noqa: E402
import sandbox  # noqa: E402

KINDS = ("built", "distro")
SIZES = {"4Gi": [], "256Mi": ["--memory", "256Mi"]}  # 4Gi is the default
TO_DISTRO_MAX = 0.40
TO_BARE_MAX = 1.20


class Side:
    """One kernel at one size of memory: a run and a bare boot, and their seconds."""

    def __init__(self, kind, size, folder):
        self.name = f"{kind} {size}"
        self.env = sandbox.environment() | sandbox.kernel(kind)
        self.argv = [sandbox.cli(), "run", *SIZES[size], "--", "/bin/true"]
        self.bare = bare.BareBoot(SIZES[size], self.env, folder)
        self.runs, self.bares = [], []

    def round(self):
        sandbox.ask_memory_back()
        self.runs.append(sandbox.timed(self.argv, env=self.env))
        sandbox.ask_memory_back()
        self.bares.append(self.bare.boot())

    def report(self):
        return (sandbox.report(f"{self.name} run -- /bin/true", self.runs),
                sandbox.report(f"{self.name} bare boot", self.bares))


def compare(built, distro, size):
    """How far the figures are from their limits; over 1 is too slow."""
    run, bare_boot = built.report()
    other, _ = distro.report()
    ratios = {f"{size} run(built)/run(distro)": (run / other, TO_DISTRO_MAX),
              f"{size} run(built)/bare(built)": (run / bare_boot, TO_BARE_MAX)}
    for name, (ratio, limit) in ratios.items():
        print(f"{name:34} {ratio:.3f}  limit {limit}")
    return max(ratio / limit for ratio, limit in ratios.values())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    sizes = sys.argv[2:] or list(SIZES)
    if rounds < 1 or not set(sizes) <= set(SIZES):
        sys.exit(f"usage: bench/cold.sh [ROUNDS [{'|'.join(SIZES)}]...]")
    with tempfile.TemporaryDirectory() as folder:
        sides = {(kind, size): Side(kind, size, folder) for size in sizes for kind in KINDS}
        for side in sides.values():
            side.round()  # what is read for the first time is in the cache now
            side.runs, side.bares = [], []
        for _ in range(rounds):
            for side in sides.values():
                side.round()
    worst = max(compare(sides["built", size], sides["distro", size], size) for size in sizes)
    print("the worst of these as a part of its limit:")
    sandbox.ratio(worst, 1.0)


main()
