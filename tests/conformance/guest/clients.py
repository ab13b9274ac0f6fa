# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of clients.json, two at a time and each with a home of its own; prints how each ended as a line of JSON."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import time

HOME = pathlib.Path("/tmp/clients")


def run(name, script):
    home = HOME / name
    home.mkdir(parents=True)
    start = time.monotonic()
    try:
        done = subprocess.run(["sh", "-ec", script], env={**os.environ, "HOME": str(home)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        code, said = "no end", (e.stdout or b"").decode()
    return {"client": name, "code": code, "said": said[-3000:], "seconds": round(time.monotonic() - start, 1)}


def main():
    scripts = json.loads(pathlib.Path("clients.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, *item) for item in scripts.items()]):
            print(json.dumps(done.result()), flush=True)


main()
