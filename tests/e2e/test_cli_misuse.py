# SPDX-License-Identifier: Apache-2.0
"""The command line where no sandbox is needed: misuse, help, man page, completions, doctor.  Exact exit codes, and
the words by which a person finds out what to do."""
import hashlib
import json
import os
import pathlib
import re
import stat
import subprocess

import pytest

from conftest import build_dir


class Cli:
    """The program with a configuration that names no kernel: nothing can boot by mistake."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.program = str(build_dir() / "src/cli/resoluto-sandbox")
        config = self.home / "local.env"
        config.write_text("")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8",
                    "RESOLUTO_LOCAL_ENV": str(config), "RESOLUTO_STATE_DIR": str(self.home / "state"),
                    "RESOLUTO_CACHE_DIR": str(self.home / "cache"),
                    "RESOLUTO_LIBEXEC_DIR": str(build_dir() / "src/shim")}

    def __call__(self, *arguments, env=None, input=b"", **options):
        return subprocess.run([self.program, *arguments], env={**self.env, **(env or {})}, input=input,
                              capture_output=True, timeout=60, **options)


@pytest.fixture
def cli(tmp_path):
    return Cli(tmp_path)


def check(done, code, *words):
    err = done.stderr.decode(errors="replace")
    assert done.returncode == code, err
    assert done.stdout == b""
    assert err.startswith("resoluto-sandbox: ")
    for word in words:
        assert word in err
    assert "\x1b" not in err, "no colours, no terminal controls"


MISUSES = [
    ([], "no command"),
    (["rnu"], "did you mean run?"),
    (["run"], "no program", "usage: resoluto-sandbox run [OPTION]... -- PROGRAM [ARGUMENT]..."),
    (["run", "--"], "no program"),
    (["run", "--", ""], "the name of the program is empty"),
    (["run", "echo", "hi"], "stray word 'echo'", "put -- before the program"),
    (["run", "stray", "--", "true"], "stray word 'stray' before --", "usage:"),
    (["run", "-t", "--", "sh"], "no terminal inside a sandbox", "-i"),
    (["run", "-it", "--", "sh"], "no terminal inside a sandbox"),
    (["run", "--tty", "--", "sh"], "unknown option --tty"),
    (["run", "--memroy", "1Gi", "--", "true"], "did you mean --memory?"),
    (["run", "--memory", "--", "true"], "--memory needs a value"),
    (["run", "--memory", "much", "--", "true"], "--memory", "'much'", "4Gi"),
    (["run", "--memory", "0", "--", "true"], "--memory", "0"),
    (["run", "--cpus", "-1", "--", "true"], "--cpus", "'-1'"),
    (["run", "--deadline", "soon", "--", "true"], "--deadline", "'soon'", "90s"),
    (["run", "--max-output", "all", "--", "true"], "--max-output", "'all'"),
    (["run", "--json=yes", "--", "true"], "--json takes no value"),
    (["run", "--pull", "often", "--", "true"], "--pull", "missing, always, never"),
    (["run", "--backend", "k8s", "--", "true"], "--backend k8s", "not yet in this version", "Kubernetes"),
    (["run", "--runtime", "kata", "--", "true"], "--runtime kata", "not yet in this version", "Kata"),
    (["run", "--flavor", "dind", "--", "true"], "--flavor dind", "not yet in this version"),
    (["run", "--output", "x", "--", "true"], "--output x", "--output-dir", "--workspace"),
    (["run", "--output-dir", "/tmp", "--", "true"], "--output-dir without --output"),
    (["run", "--path", "x", "--", "true"], "--workspace"),
    (["run", "-i", "--stdin", "/etc/hostname", "--", "cat"], "one standard input"),
    (["run", "--setup", "[1]", "--", "true"], "--setup", "JSON array of strings"),
    (["run", "--env", "NOT_SET_HERE", "--", "true"], "NOT_SET_HERE", "there is no such variable"),
    (["run", "--env", "=x", "--", "true"], "KEY=VALUE"),
    (["run", "--env", "RESOLUTO_RUN_ID=x", "--", "true"], "RESOLUTO_RUN_ID", "cannot be given"),
    (["run", "--label", "nothing", "--", "true"], "label", "KEY=VALUE"),
    (["run", "--id", "Not An Id", "--", "true"], "id", "'Not An Id'"),
    (["run", "--id", "../../etc", "--", "true"], "id", "'../../etc'"),
    (["run", "--id", "a" * 41, "--", "true"], "id", "1 to 40"),
    (["run", "--user", "root", "--", "true"], "user", "root"),
    (["run", "--user", "0:0", "--", "true"], "user", "root"),
    (["run", "--workdir", "relative", "--", "true"], "workdir", "absolute"),
    (["run", "--workdir", "/../x", "--", "true"], "workdir"),
    (["run", "--workspace", "/no/such/folder", "--", "true"], "/no/such/folder", "No such file or directory"),
    (["run", "--workspace", "/etc/hostname", "--", "true"], "/etc/hostname", "Not a directory"),
    (["run", "--workspace", "/etc", "--path", "../root", "--", "true"], "path", "'../root'"),
    (["run", "--workspace", "/etc", "--path", "a/../b/", "--", "true"], "path", "'a/../b'", "without '..'"),
    (["run", "--workspace", "/etc", "--protect", "/etc/", "--", "true"], "protect", "'/etc'", "relative to the workspace"),
    (["run", "--workspace", "/etc", "--exclude", "./ssl", "--", "true"], "exclude", "'./ssl'", "not a single name"),
    (["run", "--workspace", "/etc", "--output", "/abs", "--output-dir", "/tmp", "--", "true"], "/abs"),
    (["run", "--workspace", "/etc", "--path", "no/such", "--", "true"], "path", "no 'no/such'", "/etc"),
    (["run", "--image", "UPPER", "--", "true"], "'UPPER' is no image reference"),
    (["run", "--image", "name@sha256:zz", "--", "true"], "'name@sha256:zz' is no image reference"),
    (["run", "--platform", "win", "--", "true"], "platform 'win'", "linux/ARCH"),
    (["run", "--memory", "16Mi", "--", "true"], "memory of 16.0 MiB", "128Mi or more"),
    (["run", "--memory", "1Pi", "--", "true"], "memory of", "more than this host has"),
    (["run", "--cpus", "65", "--", "true"], "65 CPUs", "ask for 64 or less"),
    (["run", "--disk", "1Ki", "--", "true"], "scratch disk has at least"),
    (["image", "pull", "UPPER"], "'UPPER' is no image reference"),
    (["run", "--drain-timeout", "2d", "--", "true"], "drain_timeout: 172800000 ms is more than 86400000 ms (24h)"),
    (["run", "--env-file", "/no/such.env", "--", "true"], "/no/such.env", "No such file or directory"),
    (["run", "--stdin", "/no/such/file", "--", "cat"], "/no/such/file", "No such file or directory"),
    (["image"], "no command", "usage: resoluto-sandbox image"),
    (["image", "list"], "unknown command 'list'"),
    (["image", "rm"], "missing"),
    (["image", "pull"], "missing", "REF"),
    (["image", "import", "tar:/x"], "missing", "REF NAME"),
    (["image", "build"], "not yet in this version", "Kata and image builds"),
    (["image", "push"], "not yet in this version"),
    (["doctor", "everything"], "stray word 'everything'"),
    (["doctor", "--fxi"], "--fix"),
    (["version", "--jsno"], "did you mean --json?"),
    (["help", "me"], "unknown command 'me'"),
]


@pytest.mark.parametrize("arguments, words", [(row[0], row[1:]) for row in MISUSES],
                         ids=[" ".join(row[0])[:50] or "nothing" for row in MISUSES])
def test_misuse(cli, arguments, words):
    check(cli(*arguments), 2, *words)
    assert not (cli.home / "state/runs").exists() or not any((cli.home / "state/runs").iterdir())


RESERVED_OPTIONS = ["--secret=A=b", "--secret-file=f", "--store=s3://b", "--warm", "--graph-size=1Gi",
                    "--graph-backend=tmpfs", "--runner-in-image", "--namespace=n", "--context=c",
                    "--runtime-class=kata"]


@pytest.mark.parametrize("option", RESERVED_OPTIONS)
def test_reserved_options_are_refused_never_ignored(cli, option):
    check(cli("run", option, "--", "true"), 2, option.split("=")[0], "not yet in this version (0.1.0)", "it comes with")


@pytest.mark.parametrize("command", ["store", "pool"])
def test_reserved_commands_are_refused(cli, command):
    check(cli(command, "run-1"), 2, command, "not yet in this version (0.1.0)", "it comes with")


@pytest.mark.parametrize("text, line, words", [
    (b"A=1\nnot a variable\n", 2, ""),
    (b"A=1\n\n# fine\nB='open\n", 4, ""),
    (b"A=1\nRESOLUTO_RUN_ID=x\n", 2, "RESOLUTO_RUN_ID"),
    (b"A=1\n\nB=\xff\n", 3, "not UTF-8"),
    (b"my.var=1\nA B=1\n", 2, "no name of a variable"),
])
def test_an_env_file_that_is_wrong_is_told_by_its_line(cli, tmp_path, text, line, words):
    path = tmp_path / "wrong.env"
    path.write_bytes(text)
    done = cli("run", "--env-file", str(path), "--", "true")
    check(done, 2, str(path), words)
    assert re.search(rf"\bline {line}\b", done.stderr.decode())
    assert b"open" not in done.stderr, "values are never repeated"


def test_an_unreadable_workspace_is_refused(cli, tmp_path):
    """As root everything can be read, so an ordinary user asks."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    (tmp_path / "state").mkdir(mode=0o700)
    os.chmod(tmp_path, 0o755)
    switch = {}
    if os.geteuid() == 0:
        os.chown(tmp_path / "state", 65534, 65534)
        switch = {"user": 65534, "group": 65534, "extra_groups": []}
    program = pathlib.Path(cli.program)
    if os.geteuid() == 0:  # the build folder may be closed to others
        copy = tmp_path / program.name
        copy.write_bytes(program.read_bytes())
        copy.chmod(0o755)
        for parent in tmp_path.parents:
            if parent.stat().st_mode & stat.S_IXOTH == 0:
                parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
        cli.program = str(copy)
    check(cli("run", "--workspace", str(closed), "--", "true", **switch), 2, str(closed), "Permission denied")


def test_control_characters_of_arguments_do_not_reach_the_terminal(cli):
    check(cli("run", "--bad\x1b[2J\nname", "--", "true"), 2, "unknown option")
    check(cli("run", "\x1b[2J", "--", "true"), 2, "stray word")


def test_not_provisioned_is_the_sandboxs_fault_and_says_what_to_do(cli, tmp_path):
    image = tmp_path / "root"
    image.mkdir()
    done = cli("run", "--image", f"rootfs:{image}", "--", "true")
    check(done, 125, "RESOLUTO_LOCAL_")
    assert not any((cli.home / "state/runs").iterdir()) if (cli.home / "state/runs").exists() else True


def test_another_runtime_than_the_configured_one_is_never_taken_silently(cli):
    env = {"RESOLUTO_LOCAL_RUNTIME": "kata"}
    check(cli("run", "--", "true", env=env), 125, "RESOLUTO_LOCAL_RUNTIME is 'kata' (environment)", "microvm")
    _, checks = checks_of(cli("doctor", "--json", env=env))
    assert checks["runtime"]["status"] == "missing" and "microvm" in checks["runtime"]["remedy"]
    _, checks = checks_of(cli("doctor", "--json"))
    assert (checks["runtime"]["status"], checks["runtime"]["note"]) == ("ok", "microvm")


def test_a_configuration_that_is_named_but_not_there(cli):
    done = cli("run", "--", "true", env={"RESOLUTO_LOCAL_ENV": "/no/such/local.env"})
    check(done, 125, "/no/such/local.env", "No such file or directory")


def test_help_and_version_go_to_standard_output(cli):
    for arguments in (["--help"], ["run", "--help"], ["help", "image", "rm"], ["image", "-h"], ["doctor", "-h"]):
        done = cli(*arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(b"usage: resoluto-sandbox")
    for arguments in (["version"], ["--version"]):
        done = cli(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"resoluto-sandbox 0.1.0\n", b"")


def test_a_reader_that_goes_away_is_no_error_message(cli):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([cli.program, "run", "--help"], env=cli.env, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([cli.program, "version"], env=cli.env, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 125
    assert b"No space left on device" in done.stderr


def test_version_tells_what_it_would_run_with(cli):
    done = cli("version", "--json", env={"RESOLUTO_LOCAL_ACCEL": "tcg", "RESOLUTO_LOCAL_KERNEL": "/no/kernel"})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == 1 and told["version"] == "0.1.0" and told["accel"] == "tcg"
    assert told["kernel"] == {"path": "/no/kernel", "version": None, "name": None}
    assert re.match(r"\d+\.\d+", told["qemu"]["version"])


# doctor

def checks_of(done):
    told = json.loads(done.stdout)
    return told, {check["id"]: check for check in told["checks"]}


def test_doctor_says_what_is_missing_and_what_to_do(cli):
    done = cli("doctor")
    assert done.returncode == 1, done.stdout
    lines = done.stdout.decode().splitlines()
    assert all(re.match(r"\[(OK|MISSING|absent)\] .+ \(.+\)$|    -> .+", line) for line in lines), lines
    assert "[MISSING] kernel of the sandboxes (not configured)" in lines
    for number, line in enumerate(lines):
        if line.startswith(("[MISSING]", "[absent]")):
            assert lines[number + 1].startswith("    -> "), line


def test_doctor_for_programs(cli):
    done = cli("doctor", "--json")
    assert done.returncode == 1
    told, checks = checks_of(done)
    assert told["schema"] == 1 and told["ok"] is False
    assert checks["kernel"]["status"] == "missing" and checks["kernel"]["remedy"]
    assert checks["state"]["status"] == "absent"
    assert checks["k8s"]["status"] == "absent"
    for check in checks.values():
        assert check["status"] in ("ok", "missing", "absent")
        assert bool(check["remedy"]) == (check["status"] != "ok"), check


def test_doctor_looks_into_files(cli, tmp_path):
    kernel, initrd = tmp_path / "vmlinux", tmp_path / "initrd.img"
    env = {"RESOLUTO_LOCAL_KERNEL": str(kernel), "RESOLUTO_LOCAL_INITRD": str(initrd), "RESOLUTO_LOCAL_ACCEL": "fast"}
    kernel.write_bytes(b"\x7fELF" + bytes(100))
    initrd.write_bytes(b"not an archive at all" + bytes(1 << 20))
    _, checks = checks_of(cli("doctor", "--json", env=env))
    assert checks["kernel"]["status"] == "missing" and "too small" in checks["kernel"]["note"]
    assert checks["initrd"]["status"] == "missing" and "known format" in checks["initrd"]["note"]
    assert checks["accel"]["status"] == "missing" and "neither kvm nor tcg" in checks["accel"]["note"]
    with open(kernel, "wb") as file:
        file.write(b"\x7fELF" + bytes(4 << 20) + b"Linux version 6.1.0-7 (gcc)" + bytes(1 << 20))
    initrd.write_bytes(b"\x1f\x8b\x08" + bytes(1 << 20))
    env["RESOLUTO_LOCAL_ACCEL"] = "tcg"
    _, checks = checks_of(cli("doctor", "--json", env=env))
    assert checks["kernel"]["status"] == "ok" and "Linux 6.1.0-7" in checks["kernel"]["note"]
    assert checks["initrd"]["status"] == "ok"
    assert checks["accel"]["status"] == "ok" and "not a hardened boundary" in checks["accel"]["note"]


def test_doctor_checks_which_kernel_it_is(cli, tmp_path):
    kernel = tmp_path / "vmlinux"
    kernel.write_bytes(b"\x7fELF" + bytes(4 << 20))
    (tmp_path / "VERSION").write_text("6.1.9-guest 0123456789abcdef\n")
    (tmp_path / "MACHINE").write_text("x86_64-built\n")
    env = {"RESOLUTO_LOCAL_KERNEL": str(kernel)}
    name = "6.1.9-guest 0123456789abcdef (built)"

    def told():
        return checks_of(cli("doctor", "--json", env=env))[1]["kernel"]

    assert told()["status"] == "ok" and name in told()["note"]
    assert json.loads(cli("version", "--json", env=env).stdout)["kernel"]["name"] == name
    sums = hashlib.sha256(kernel.read_bytes()).hexdigest() + "  vmlinux\n" + "0" * 64 + "  VERSION\n"
    (tmp_path / "SHA256SUMS").write_text(sums)
    assert told()["status"] == "ok", told()
    kernel.write_bytes(b"\x7fELF" + bytes(4 << 20) + b"!")
    assert told()["status"] == "missing" and "not what was put there" in told()["note"] and told()["remedy"]
    (tmp_path / "SHA256SUMS").unlink()
    env["RESOLUTO_LOCAL_MACHINE"] = "x86_64-debian"
    assert told()["status"] == "missing" and "for the machine x86_64-built" in told()["note"]
    assert "RESOLUTO_LOCAL_MACHINE=x86_64-built" in told()["remedy"]
    env["RESOLUTO_LOCAL_MACHINE"] = "pdp11"
    assert told()["status"] == "missing" and "pdp11" in told()["note"]


def test_doctor_notices_misspelt_keys_and_bad_values(cli, tmp_path):
    misspelt = "RESOLUTO" + "_LOCAL_KERNAL"
    (tmp_path / "local.env").write_text(f"{misspelt}=/x\nRESOLUTO_LOCAL_MAX_RUNS=many\nOTHER=1\n")
    _, checks = checks_of(cli("doctor", "--json"))
    assert checks["configuration"]["note"] == str(tmp_path / "local.env")
    assert checks["keys"]["note"] == f"unknown: {misspelt}"
    assert checks["memory"]["status"] == "missing" and "many" in checks["memory"]["remedy"]
    (tmp_path / "local.env").write_text(f"# x\n{misspelt}=/x\n\nRESOLUTO_LOCAL_ACCEL tcg\n"
                                      "RESOLUTO_SANDBOX_IMAGE=no-such-image:1\n")
    _, checks = checks_of(cli("doctor", "--json"))
    assert checks["keys"]["note"] == f"unknown: {misspelt}; no KEY=VALUE: line 4"
    assert checks["image"]["note"].endswith(" is not in the cache"), "nobody asked a registry"


def test_doctor_tells_a_configuration_that_is_not_there(cli):
    env = {"RESOLUTO_LOCAL_ENV": "/no/such/local.env"}
    done = cli("doctor", env=env)
    assert done.returncode == 1 and b"[MISSING] configuration (load configuration: open /no/such/local.env: No such" in done.stdout
    told, checks = checks_of(cli("doctor", "--json", env=env))
    assert told["ok"] is False and list(checks) == ["configuration"] and checks["configuration"]["remedy"]


def test_doctor_fixes_what_is_safe(cli, tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    os.chmod(state, 0o755)
    dead = state / "runs/run-dead"
    dead.mkdir(parents=True)
    (dead / "lock").touch(mode=0o600)
    _, checks = checks_of(cli("doctor", "--json"))
    assert checks["state"]["status"] == "missing" and "0755" in checks["state"]["note"]
    assert checks["leftovers"]["note"].startswith("0 running, 0 kept, 1 dead; ")
    _, checks = checks_of(cli("doctor", "--json", "--fix"))
    assert checks["state"]["fixed"] and checks["state"]["status"] == "ok"
    assert checks["cache"]["fixed"] and checks["cache"]["status"] == "ok"
    assert checks["leftovers"]["fixed"] and checks["leftovers"]["note"].startswith("0 running, 0 kept, 0 dead; ")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert not dead.exists()
    assert (tmp_path / "cache").is_dir()
    _, checks = checks_of(cli("doctor", "--json", "--fix"))
    assert not any(check["fixed"] for check in checks.values()), "there is nothing left to fix"


# man page and completions, as the build makes them

def made(name):
    return build_dir() / "src/cli" / name


def options_of(cli, *command):
    text = cli(*command, "--help").stdout.decode().split("\nNot yet")[0]
    return set(re.findall(r"^ {2}(?:-\w, | {4})(--[a-z-]+)", text, re.M))


def test_the_man_page_is_whole(cli):
    rendered = subprocess.run(["man", "--warnings", "-l", str(made("resoluto-sandbox.1"))], capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}, timeout=60)
    assert rendered.returncode == 0 and rendered.stderr == ""
    text = re.sub(".\b", "", rendered.stdout)
    for section in ("SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"):
        assert re.search(f"^{section}$", text, re.M)
    for option in options_of(cli, "run"):
        assert re.search(rf"^\s+(-\w, )?{option}\b", text, re.M), option


BASH = r'''
source "$1"; shift
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_resoluto_sandbox
printf '%s\n' "${COMPREPLY[@]}"
'''


def completions(*words):
    done = subprocess.run(["bash", "-c", BASH, "bash", str(made("resoluto-sandbox.bash")), "resoluto-sandbox", *words],
                          capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes(cli):
    assert {"run", "doctor", "image", "version", "help"} <= completions("")
    assert "attach" in completions("") and "store" not in completions("")
    assert completions("run", "--") >= options_of(cli, "run")
    assert "--detach" in completions("run", "--") and "--warm" not in completions("run", "--")
    assert completions("run", "--pull", "") == {"missing", "always", "never"}
    assert completions("run", "--json", "--pull", "=", "al") == {"always"}
    assert completions("run", "--backend", "") == {"local"}
    assert completions("image", "p") == {"prune", "pull"}
    assert completions("image", "pull", "--a") == {"--authfile"}
    assert completions("run", "--authfile", "/etc/hostn") == {"/etc/hostname"}
    assert completions("run", "--", "--p") == set()


def test_the_other_completions_were_made():
    assert made("_resoluto-sandbox").read_text().startswith("#compdef resoluto-sandbox\n")
    assert "complete -c resoluto-sandbox" in made("resoluto-sandbox.fish").read_text()
