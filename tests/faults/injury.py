# SPDX-License-Identifier: Apache-2.0
"""What is done to a run, and when: chosen by a seed, so that the same seed does the same again."""
import collections
import contextlib
import os
import random
import signal
import struct
import threading
import time

from world import wait_for

# When: a run's time is cut by what can be seen of it from outside.
PHASES = ["staging", "boot", "program", "collecting"]
MODES = ["foreground", "kept", "detached"]
# What, and in which of its phases it can be.
KINDS = {
    "cli": PHASES,                               # SIGKILL of the command that is running
    "shim": ["boot", "program", "collecting"],   # SIGKILL
    "qemu": ["boot", "program", "collecting"],   # SIGKILL
    "runner": ["boot", "program", "collecting"],  # the guest's PID 1 is gone at once
    "program": ["boot", "program"],              # SIGKILL by `kill`
    "disk": PHASES,                              # no block left
    "frozen": ["boot", "program", "collecting"],  # SIGSTOP of QEMU
    "thawed": ["boot", "program", "collecting"],  # and SIGCONT a little later
    "call-cli": [""],                            # one call of the command fails
    "call-shim": [""],                           # one call of the shim fails
}
# What may become of a call.  EINTR and a short write are no failures: they must not be noticed.
ACTIONS = {
    "write": ["EIO", "ENOSPC", "EINTR", "short"],
    "pwrite": ["EIO", "ENOSPC", "EINTR", "short"],
    "fsync": ["EIO", "ENOSPC"],
    "syncfs": ["EIO"],
    "renameat": ["EIO", "ENOSPC"],
    "close": ["EIO", "ENOSPC"],
    "openat": ["EIO", "EMFILE", "ENOSPC"],
    "openat2": ["EIO", "EMFILE", "ENOSPC"],
    "mkdirat": ["EIO", "ENOSPC"],
    "ftruncate": ["EIO", "ENOSPC"],
    "copy": ["EIO", "ENOSPC"],
    "memfd": ["EMFILE", "ENOMEM"],
    "socketpair": ["EMFILE"],
    "fork": ["EAGAIN", "ENOMEM"],
    "malloc": ["ENOMEM"],
}
POINTS = list(ACTIONS)  # in the order of fault_points.c
HARMLESS = ("EINTR", "short")
COUNTS_SIZE = 4096

Choice = collections.namedtuple("Choice", "kind mode phase delay pause call")


def choose(seed, number, lengths, calls, kinds):
    """The injury of one repeat.  lengths: seconds of each phase; calls: {program: {point: count}} of a whole run."""
    chance = random.Random(f"{seed}:{number}")
    kind = kinds[number % len(kinds)]
    mode = chance.choice(MODES)
    phase = chance.choice(KINDS[kind])
    call = None
    if kind.startswith("call-"):
        counted = {p: n for p, n in calls[kind.removeprefix("call-")].items() if n > 0}
        # Each function as often as another: there are hundreds of mallocs to one fork.
        point = chance.choice(sorted(counted))
        call = f"{point}:{chance.randint(1, counted[point])}:{chance.choice(ACTIONS[point])}"
    return Choice(kind, mode, phase, chance.uniform(0, lengths.get(phase, 0)), chance.uniform(0.05, 1.0), call)


class Calls:
    """The fault points of a program: how often each was passed, and whether the chosen one came."""

    def __init__(self, path, library, program):
        self.path, self.library, self.program = path, library, program
        path.write_bytes(bytes(COUNTS_SIZE))

    def environment(self, call=None):
        return {"LD_PRELOAD": str(self.library), "FAULT_IN": self.program,
                "FAULT_COUNTS": str(self.path), "FAULT": call or ""}

    def read(self):
        happened, *counts = struct.unpack_from(f"<{1 + len(POINTS)}Q", self.path.read_bytes())
        return bool(happened), dict(zip(POINTS, counts))


def shim_folder(folder, world, calls, call=None):
    """A folder with a resoluto-shim that becomes the one to preload to, with these fault points: its environment is emptied before."""
    folder.mkdir(exist_ok=True)
    words = " ".join(f"{name}={value}" for name, value in calls.environment(call).items())
    script = folder / "resoluto-shim"
    script.write_text(f"#!/bin/sh\n{words} exec {world.build}/tests/faults/preloadable/resoluto-shim\n")
    script.chmod(0o755)
    return {"RESOLUTO_LIBEXEC_DIR": str(folder)}


class Injector(threading.Thread):
    """Waits for the phase, then the delay, then does it, beside the commands of the run."""

    def __init__(self, world, choice, watcher, current, calls=None):
        super().__init__(daemon=True)
        self.world, self.choice, self.watcher, self.current = world, choice, watcher, current
        self.calls = calls  # of the program whose call fails
        self.fault = None
        self.is_over = threading.Event()
        self.happened_in = None  # the phase that was seen when it happened
        self.saw_manifest = False
        self.victim = None

    def run(self):
        try:
            self._run()
        except Exception as fault:  # end() tells it
            self.fault = fault

    def _run(self):
        if self.choice.kind == "runner":
            return  # it has its time from the beginning
        if self.calls:
            self._watch_call()
            return
        phase = self.choice.phase
        while phase and phase not in self.watcher.began:
            if self.is_over.wait(0.002):
                return
        if not self.is_over.wait(self.choice.delay):
            self._act()

    def _watch_call(self):
        while not self.calls.read()[0]:
            if self.is_over.wait(0.002):
                return
        self.happened_in = self.watcher.phase()

    def _act(self):
        kind = self.choice.kind
        if kind in ("shim", "qemu", "frozen", "thawed"):
            find = self.world.shims if kind == "shim" else self.world.machines
            # In the boot there may be none yet.
            found = wait_for(lambda: self.is_over.is_set() or find(), 30)
            if self.is_over.is_set() or not found:
                return
            self.victim = found[0]
        self.saw_manifest = self.watcher.has_manifest()
        where = self.watcher.phase()
        with contextlib.suppress(ProcessLookupError):
            if getattr(self, "_" + kind)():
                self.happened_in = where

    def _cli(self):
        process = self.current()
        if not process or process.poll() is not None:
            return False
        self.victim = process
        process.send_signal(signal.SIGKILL)
        return True

    def _kill(self):
        os.kill(self.victim, signal.SIGKILL)
        return True

    _shim = _qemu = _kill

    def _program(self):
        while not self.is_over.is_set():
            done = self.world.run("kill", "--signal", "KILL", self.watcher.run_id)
            if done.returncode == 0:
                return True
            if b"has no sandbox yet" not in done.stderr and b"there is no run" not in done.stderr:
                return False
            time.sleep(0.01)
        return False

    def _disk(self):
        return self.world.fill()

    def _frozen(self):
        os.kill(self.victim, signal.SIGSTOP)
        return True

    def _thawed(self):
        os.kill(self.victim, signal.SIGSTOP)
        self.is_over.wait(self.choice.pause)
        os.kill(self.victim, signal.SIGCONT)
        return True

    def end(self):
        self.is_over.set()
        self.join(60)
        assert not self.is_alive(), "the injury itself hangs"
        if self.fault:
            raise self.fault
