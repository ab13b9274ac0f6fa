# SPDX-License-Identifier: Apache-2.0
"""Repeats a run, injures it at a random moment, and asks afterwards whether all promises held (docs/design/faults.md)."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from newc import in_place_of_runner  # noqa: E402
from injury import HARMLESS, KINDS, PHASES, Calls, Injector, choose, shim_folder
from world import World, chunk_number, pieces_of, wait_for

LINES = 12
EXIT = 7
DATA = bytes(range(256)) * 1200  # comes back with the outputs
JOB = f"""
: > began
i=0
while [ $i -lt {LINES} ]; do
	i=$((i + 1))
	echo "line $i"
	echo "oops $i" >&2
	sleep 0.02
done
mkdir out
cat data.bin > out/copy
echo whole > out/word
exit {EXIT}
"""
STDOUT = "".join(f"line {i}\n" for i in range(1, LINES + 1))
STDERR = "".join(f"oops {i}\n" for i in range(1, LINES + 1))
OUTPUTS = {"out/copy": DATA, "out/word": b"whole\n"}

SANDBOX_FAILED = 125
KILLED = 128 + 9
HANG_S = 280
FROZEN = {"RESOLUTO_LOCAL_BOOT_LIMIT": "10s"}

# Why a run may say that it failed.  None: any reason, as long as there is one, for a call may fail anywhere; but
# nothing that did not happen.
REASONS = {
    "shim": {"shim-killed", "refused"},
    "qemu": {"emulator-killed"},
    "runner": {"guest-panic"},
    "program": set(),
    "disk": {"store-full", "refused", "run", "attach", "collect"},
    "frozen": {"silent", "boot-failed"},
    "thawed": set(),
    "cli": {"caller-died"},
    "call-cli": None,
    "call-shim": None,
}
NEVER = {"shim-killed", "emulator-killed", "emulator-crashed", "guest-panic", "silent", "guest-triple-fault", "protocol",
         "external"}


OUTPUTS_LOST = {"outputs-failed", "bad-output", "store-full"}


class Broken(Exception):
    """A promise that did not hold."""


def expect(condition, words):
    if not condition:
        raise Broken(words)


class Watcher(threading.Thread):
    """A reader of the run's objects: what it has seen was announced, and may not change or go."""

    def __init__(self, world, run_id):
        super().__init__(daemon=True)
        self.world, self.run_id = world, run_id
        self.folder, self.objects = world.folder(run_id), world.objects(run_id)
        self.chunks = {}  # number -> bytes
        self.changed = []
        self.began = {"staging": time.monotonic()}  # phase -> when
        self.ended = None
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.004):
            self.look()

    def look(self):
        if "boot" not in self.began and (self.folder / "state.json").exists():
            self._begin("boot")
        for entry in self._names():
            self._see(entry)

    def _names(self):
        try:
            return sorted(os.listdir(self.objects))
        except OSError:
            return []

    def _begin(self, phase):
        self.began.setdefault(phase, time.monotonic())

    def _see(self, name):
        number = chunk_number(name)
        if name in ("outbox", "result.json"):
            self._begin("collecting")
        if name == "_manifest.json" and not self.ended:
            self.ended = time.monotonic()
        if number is None or number in self.chunks:
            return
        try:
            self.chunks[number] = (self.objects / name).read_bytes()
        except OSError:
            return
        if b'"line 1"' in self.chunks[number]:
            self._begin("program")

    def phase(self):
        return [phase for phase in PHASES if phase in self.began][-1]

    def has_manifest(self):
        return self.ended is not None or (self.objects / "_manifest.json").exists()

    def text(self, stream):
        pieces = sorted(p for chunk in self.chunks.values() for p in pieces_of(chunk))
        return "".join(text for _, of, text in pieces if of == stream)

    def check_objects(self):
        """What lies there now: everything that was seen, unchanged; no number twice or left out."""
        names = self._names()
        numbers = [n for n in map(chunk_number, names) if n is not None]
        expect(numbers == list(range(1, len(numbers) + 1)), f"chunks {numbers}")
        chunks = {n: (self.objects / f"events-{n:06}.jsonl").read_bytes() for n in numbers}
        for number, seen in self.chunks.items():
            expect(number in chunks, f"chunk {number} was there and is not any more")
            expect(chunks[number] == seen, f"chunk {number} is not what it was")
        seqs = [seq for n in numbers for seq, _, _ in pieces_of(chunks[n])]
        expect(seqs == list(range(1, len(seqs) + 1)), f"seq {seqs}")
        if "_manifest.json" in names:
            total = json.loads((self.objects / "_manifest.json").read_bytes())["total_chunks"]
            expect(total == len(numbers), f"a manifest of {total} chunks over {len(numbers)}")
            json.loads((self.objects / "result.json").read_bytes())

    def end(self):
        self.is_over.set()
        self.join()


class Told:
    """What a command said: its program's output apart from its own words."""

    def __init__(self, code, out, err):
        self.code, self.out = code, out.decode(errors="replace")
        lines = err.decode(errors="replace").splitlines(keepends=True)
        self.err = "".join(line for line in lines if line.startswith("oops"))
        self.own = "".join(line for line in lines if not line.startswith("oops"))
        found = re.search(r"^resoluto-sandbox: ([a-z-]+)", self.own, re.M)
        self.reason = found[1] if found else ""

    def __str__(self):
        return f"code {self.code}, {len(self.out)} + {len(self.err)} bytes of output, said {self.own!r}"


class Repeat:
    """One run, its injury and its judgement."""

    def __init__(self, campaign, world, number, choice):
        self.campaign, self.world, self.choice = campaign, world, choice
        self.id = f"faults-{number}"
        self.folder = campaign.top / f"repeat-{number}"  # never on the disk that is filled
        self.folder.mkdir()
        self.target_name = world.disk / f"outputs-{number}"  # for the runs
        self.target = world.seen / self.target_name.name     # the same for us
        self.watcher = Watcher(world, self.id)
        self.injector = None
        self.process = None
        self.calls = {"cli": campaign.calls_of("cli"), "shim": campaign.calls_of("shim")}
        self.env = {**campaign.kernel_env(world, choice), **self._shim_env()}

    def _shim_env(self):
        call = self.choice.call if self.choice.kind == "call-shim" else None
        if not self.campaign.has_fault_points:
            return {}
        return shim_folder(self.campaign.top / "libexec", self.world, self.calls["shim"], call)

    def _command(self, name, words, more=None):
        """To its end, or to ours."""
        paths = [self.folder / f"{name}.out", self.folder / f"{name}.err"]
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            self.process = self.world.start(*words, env={**self.env, **(more or {})}, out=out, err=err)
        try:
            self.process.wait(HANG_S)
        except Exception:
            self.process.kill()
            self.process.wait()
            raise Broken(f"{words[0]} did not end: {paths[1].read_bytes()[-500:]!r}") from None
        told = Told(self.process.returncode, *(path.read_bytes() for path in paths))
        self.process = None
        return told

    def _cli_env(self, name):
        """The command whose call fails."""
        if not self.campaign.has_fault_points:
            return {}
        is_it = self.choice.kind == "call-cli" and name == "run"
        return self.calls["cli"].environment(self.choice.call if is_it else None) if is_it or name == "run" else {}

    def _run_words(self):
        words = ["run", "--id", self.id, "--workspace", self.campaign.workspace, "--output", "out/**"]
        if self.choice.kind == "frozen":
            words += ["--dead-after", "4s"]
        if self.choice.mode == "detached":
            words.append("--detach")
        else:
            words += ["--output-dir", self.target_name]
        if self.choice.mode == "kept":
            words.append("--keep")
        return [*words, "--", "sh", "job.sh"]

    # --- the run ---

    def go(self):
        self.watcher.start()
        calls = self.calls[self.choice.kind.removeprefix("call-")] if self.choice.call else None
        self.injector = Injector(self.world, self.choice, self.watcher, lambda: self.process, calls)
        self.injector.start()
        try:
            if self.choice.mode == "detached":
                self._detached()
            else:
                self._foreground()
            self._left()
        finally:
            self.injector.end()
            self.watcher.end()
            if self.choice.kind == "disk":
                self.world.free()

    def where(self):
        """The phase it happened in; None: the run was over before."""
        if self.choice.call and not self.injector.happened_in:
            # In the last moment.
            return self.watcher.phase() if self.injector.calls.read()[0] else None
        if self.choice.kind == "runner":
            # Packing begins in the guest before anything of it can be seen.
            seen = "collecting" if self.choice.phase == "collecting" else self.watcher.phase()
            return None if self.watcher.has_manifest() else seen
        return self.injector.happened_in

    def _foreground(self):
        told = self._command("run", self._run_words(), self._cli_env("run"))
        was_killed = self._was_killed(told)
        self._settle()
        if not was_killed:
            self._judge(told, "run")
            self._check_told(told)
        self._check_outputs(told.code == EXIT and not told.own)
        if self.watcher.folder.exists():
            self.watcher.check_objects()
        if was_killed:
            self._after_death()
        elif self.choice.mode == "kept":
            self._again(told)

    def _settle(self):
        """After the first command nothing more is done to the run; the watcher looks a last time."""
        if self.choice.mode != "detached":
            self.injector.end()
            self.watcher.look()
            self.watcher.end()
            if self.choice.kind == "disk":
                self.world.free()

    def _was_killed(self, told):
        return self.choice.kind == "cli" and told.code == -9

    def _again(self, told):
        """Kept: another command tells the same, where the first could tell it."""
        if not self._may_break_off(told):
            again = self._command("attach", ["attach", self.id])
            expect((again.code, again.out, again.err) == (told.code, told.out, told.err),
                   f"attach told {again} after {told}")
        if self._listed():
            self._remove()

    def _remove(self):
        gone = self._command("rm", ["rm", self.id])
        expect(gone.code == 0, f"rm: {gone}")

    def _listed(self):
        done = self._command("ps", ["ps", "--json"])
        expect(done.code == 0, f"ps: {done}")
        return next((row for row in json.loads(done.out) if row["id"] == self.id), None)

    def _after_death(self):
        """Its command was killed: the run has ended, or is not there, or goes on by itself where it was let go."""
        row = self._listed()
        if not row:
            return
        if row["state"] != "ended":
            expect(self.choice.mode == "detached" or wait_for(self._has_ended, 20), f"it goes on: {row}")
        told = self._command("attach", ["attach", self.id])
        self._judge(told, "attach")
        self._check_told(told)
        self.watcher.check_objects()
        self._remove()

    def _has_ended(self):
        row = self._listed()
        return not row or row["state"] == "ended"

    def _detached(self):
        launch = self._command("run", self._run_words(), self._cli_env("run"))
        if self._was_killed(launch):
            self.injector.end()
            self._after_death()
            return
        if launch.code != 0:
            self.injector.end()
            self.watcher.end()
            expect(launch.code != EXIT and launch.out == "", f"launch: {launch}")
            self._judge(launch, "run")
            if self.choice.kind == "disk":
                self.world.free()
            return
        expect(launch.out == self.id + "\n", f"launch: {launch}")
        told = self._read("attach", ["attach", self.id])
        collected = self._read("collect", ["collect", self.id, "--workspace", self.target_name])
        self.injector.end()
        self.watcher.look()
        self.watcher.end()
        self._judge(told, "attach")
        self._check_told(told)
        self.watcher.check_objects()
        if self.choice.kind == "disk":
            self.world.free()
        else:
            expect(collected.code == 0 or told.code != EXIT or told.own, f"collect: {collected}")
        # Outputs that were packed before the machine died are whole, and can be fetched.
        expect(collected.code == 0 or (collected.code == SANDBOX_FAILED and collected.reason), f"collect: {collected}")
        self._check_outputs(collected.code == 0 and self.choice.kind != "program")
        waited = self._command("wait", ["wait", self.id])
        expect(waited.code == told.code, f"wait: {waited} after {told}")
        self._remove()

    def _read(self, name, words):
        """A reader that is killed harms nobody: the next one tells everything."""
        told = self._command(name, words)
        return self._command(name, words) if self._was_killed(told) else told

    # --- the judgement ---

    def _may_break_off(self, told):
        """A command that met the fault itself may stop reading where it was."""
        return told.code == SANDBOX_FAILED and self.choice.kind in ("call-cli", "disk")

    def _judge(self, told, command):
        kind = self.choice.kind
        if told.code == EXIT:
            expect(told.out == STDOUT and told.err == STDERR, f"a success without all of its output: {told}")
            # The program's code, and that its outputs were lost.
            may_lose = self.choice.call or kind == "disk"
            expect(told.own == "" or (may_lose and told.reason in OUTPUTS_LOST), f"{told}")
            return
        if kind == "program" and told.code == KILLED:
            return
        expect(told.code == SANDBOX_FAILED, f"{told}")
        expect(told.reason, f"a failure without a reason: {told}")
        expect(kind not in ("thawed",), f"only a pause: {told}")
        expect(not (self.choice.call or "").endswith(HARMLESS), f"no failure at all: {told}")
        reasons = REASONS[kind]
        expect(told.reason not in NEVER if reasons is None else told.reason in reasons, f"a wrong reason: {told}")
        if kind in ("shim", "qemu", "runner", "frozen"):
            expect(not self.injector.saw_manifest, f"the verdict was there before: {told}")

    def _check_told(self, told):
        """Nothing that was announced is missing, nothing is told that never was."""
        for got, all_of_it, stream in ((told.out, STDOUT, "stdout"), (told.err, STDERR, "stderr")):
            expect(all_of_it.startswith(got), f"{stream} is not what the program wrote: {got[-200:]!r}")
            if not self._may_break_off(told):
                expect(len(got) >= len(self.watcher.text(stream)),
                       f"{stream}: {len(got)} bytes told, {len(self.watcher.text(stream))} announced")

    def _check_outputs(self, all_of_them):
        found = {str(p.relative_to(self.target)): p.read_bytes() for p in self.target.rglob("*") if p.is_file()}
        if all_of_them:
            expect(found == OUTPUTS, f"outputs {sorted(found)}")
        for name, content in found.items():
            expect(name in OUTPUTS, f"a strange output {name}")
            # A program that was killed may have got no further.
            whole = OUTPUTS[name] == content or (self.choice.kind == "program" and OUTPUTS[name].startswith(content))
            expect(whole, f"output {name} holds {len(content)} of {len(OUTPUTS[name])} bytes")

    def _left(self):
        self.injector.end()
        left = self.world.leftovers()
        expect(not left, f"left: {left}")
        self.campaign.next_run(self.world)


class Campaign:
    """Repeats, and the table of what held."""

    def __init__(self, build, env, kinds=None, seed=None, say=print):
        self.build, self.say = pathlib.Path(build), say
        self.seed = seed if seed is not None else int.from_bytes(os.urandom(4), "big")
        self.kinds = list(kinds or KINDS)
        self.worlds = {False: World(build, env)}
        self.top = self.worlds[False].top
        self.has_fault_points = not self._is_sanitized()
        if not self.has_fault_points:
            # A sanitizer has to be the first library of a program, and there is no static runner with one.
            self.kinds = [kind for kind in self.kinds if not kind.startswith("call-") and kind != "runner"]
        self.workspace = self.top / "work"
        self.workspace.mkdir()
        (self.workspace / "job.sh").write_text(JOB)
        (self.workspace / "data.bin").write_bytes(DATA)
        (self.workspace / "more.bin").write_bytes(bytes(1 << 20))
        self.table = collections.Counter()
        self.broken = []
        self.lengths, self.counts = {}, {}
        try:
            self._learn()
        except BaseException:
            self.close()
            raise

    def _is_sanitized(self):
        return b"__asan_init" in (self.build / "src/shim/resoluto-shim").read_bytes()

    def calls_of(self, which):
        program = {"cli": "resoluto-sandbox", "shim": "resoluto-shim"}[which]
        return Calls(self.top / f"counts-{which}", self.build / "tests/faults/libfault_points.so", program)

    def world(self, kind):
        is_small = kind == "disk"
        if is_small not in self.worlds:
            self.worlds[True] = World(self.build, self.worlds[False].env, small_disk=True)
            self.worlds[False].stays.add(self.worlds[True].holder.pid)
        return self.worlds[is_small]

    def kernel_env(self, world, choice):
        if choice.kind == "frozen":
            return FROZEN
        if choice.kind != "runner":
            return {}
        # A guest's own clock tells nothing about a phase on a busy machine: what the program has made does.
        when = {"boot": "", "program": " /workspace/began", "collecting": " /workspace/out/word"}
        die_after = f"{int(1000 * choice.delay) + 1}{when[choice.phase]}"
        return {"RESOLUTO_LOCAL_INITRD": str(self._mortal_initrd(die_after))}

    def _mortal_initrd(self, die_after):
        """The runner that dies so many milliseconds after its start, or after something is there, over the real one."""
        env_file = pathlib.Path(self.worlds[False].env["RESOLUTO_LOCAL_ENV"]).read_text()
        initrd = re.search(r"^RESOLUTO_LOCAL_INITRD=(.*)$", env_file, re.M)[1]
        path = self.top / "mortal.img"
        path.unlink(missing_ok=True)
        runner = (self.build / "tests/faults/mortal_runner").read_bytes()
        path.write_bytes(pathlib.Path(initrd).read_bytes() +
                         in_place_of_runner(runner, **{"die-after": die_after.encode()}))
        path.chmod(0o644)
        return path

    def _unharmed(self, mode):
        """A run without any injury, and its seconds."""
        choice = choose(0, 0, {}, {}, ["cli"])._replace(mode=mode, phase="never")
        repeat = Repeat(self, self.worlds[False], f"none-{mode}", choice)
        start = time.monotonic()
        repeat.go()
        return repeat, time.monotonic() - start

    def _learn(self):
        """How long a run's phases are and how often it calls what."""
        # What is kept can be seen afterwards, however late the watcher comes; calls are most where all is removed.
        kept, seconds = self._unharmed("kept")
        expect(self._measure(kept.watcher), f"phases {sorted(kept.watcher.began)}")
        removed, _ = self._unharmed("foreground")
        self.counts = {which: removed.calls[which].read()[1] for which in removed.calls}
        self.say(f"a run of {seconds:.2f} s: " +
                 ", ".join(f"{phase} {length:.3f}" for phase, length in self.lengths.items()))

    def _measure(self, watcher):
        """The lengths of the phases of a run that came to its end: how busy the machine is now."""
        began, ended = watcher.began, watcher.ended
        if set(began) != set(PHASES) or not ended:
            return False
        marks = [began[phase] for phase in PHASES] + [ended]
        self.lengths = {phase: max(0.02, marks[i + 1] - marks[i]) for i, phase in enumerate(PHASES)}
        return True

    def next_run(self, world):
        """The next run works, and takes what files were left with it."""
        done = world.run("run", "--", "/bin/sh", "-c", "echo next")
        expect((done.returncode, done.stdout, done.stderr) == (0, b"next\n", b""), f"the next run: {done}")
        expect(world.files() == [], f"left: {world.files()}")

    def repeat(self, number):
        choice = choose(self.seed, number, self.lengths, self.counts, self.kinds)
        world = self.world(choice.kind)
        repeat = Repeat(self, world, number, choice)
        start = time.monotonic()
        try:
            repeat.go()
            held = "held"
        except Exception as fault:  # a Broken promise, or the harness itself
            held = "BROKEN"
            words = str(fault) if isinstance(fault, Broken) else f"{type(fault).__name__}: {fault}"
            self.broken.append(f"--seed {self.seed} --only {number}: {choice}: {words}")
            self._keep_evidence(repeat)
            self._clear(world)
        where = repeat.where() or "not hit"
        if where == "not hit":
            self._measure(repeat.watcher)
        self.table[choice.kind, where, held] += 1
        self.say(f"{number:4} {held} {choice.kind} {choice.mode} {choice.phase}+{choice.delay:.3f} {choice.call or ''}"
                 f" -> {where} ({time.monotonic() - start:.1f} s)" + (f"\n     {words}" if held != "held" else ""))
        for folder in (repeat.folder, repeat.target):
            shutil.rmtree(folder, ignore_errors=True)
        return held == "held"

    def _keep_evidence(self, repeat):
        kept = pathlib.Path(os.environ.get("FAULTS_EVIDENCE") or "/nowhere")
        if not kept.is_dir():
            return
        target = kept / repeat.id
        shutil.rmtree(target, ignore_errors=True)
        with contextlib.suppress(shutil.Error, OSError):
            shutil.copytree(repeat.folder, target / "said")
        with contextlib.suppress(shutil.Error, OSError):
            shutil.copytree(repeat.watcher.folder, target / "run", ignore=shutil.ignore_patterns("door"))

    def _clear(self, world):
        """What a broken repeat left must not break the next."""
        for name in sorted({path.split("/")[2] for path in world.files()}):
            with contextlib.suppress(Exception):
                world.run("rm", "--force", name)

    def report(self, out=None):
        """Kinds x times."""
        columns = [*PHASES, "not hit"]
        out = out or sys.stdout
        print(f"{'':10}" + "".join(f"{c:>12}" for c in columns) + f"{'held':>10}", file=out)
        for kind in self.kinds:
            row = {c: sum(self.table[kind, c, h] for h in ("held", "BROKEN")) for c in columns}
            bad = sum(self.table[kind, c, "BROKEN"] for c in columns)
            print(f"{kind:10}" + "".join(f"{row[c]:>12}" for c in columns) +
                  f"{sum(row.values()) - bad:>6}/{sum(row.values())}", file=out)
        for words in self.broken:
            print("broken: " + words, file=out)

    def close(self):
        for world in self.worlds.values():
            world.close()
