# SPDX-License-Identifier: Apache-2.0
"""Runs that are injured at random moments: what kind, how often, and whether every promise held."""
import argparse
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench/lib"), str(ROOT / "tests/faults")]
import sandbox  # noqa: E402
from campaign import Campaign  # noqa: E402
from injury import KINDS  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repeats", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, help="of an earlier report, to do the same again (default: a new one)")
    parser.add_argument("--only", type=int, help="this one repeat of it")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of " + ",".join(KINDS))
    return parser.parse_args()


def main():
    given = arguments()
    build = pathlib.Path(sandbox.cli()).parents[2]
    subprocess.run(["ninja", "-C", str(build), "tests/faults/libfault_points.so", "tests/faults/mortal_runner"],
                   check=True, stdout=subprocess.DEVNULL)
    campaign = Campaign(build, sandbox.environment(), given.kinds.split(","), given.seed)
    print(f"seed {campaign.seed}")
    try:
        for number in [given.only] if given.only is not None else range(given.repeats):
            campaign.repeat(number)
            sys.stdout.flush()
        campaign.report()
    finally:
        campaign.close()
    print(f"value {sum(n for (_, _, held), n in campaign.table.items() if held == 'held')} held")
    return 1 if campaign.broken else 0


if __name__ == "__main__":
    os.umask(0o022)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    sys.exit(main())
