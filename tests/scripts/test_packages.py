# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/packages.sh as an ordinary user on a terminal, where sudo asks for a password."""
import os
import pty
import select

import pytest

from conftest import ROOT

QUESTION = b"[sudo] password: "
WIPE = b"\r\x1b[K"

# It asks on the terminal as sudo does, whatever standard input and output are.
SUDO = """#!/bin/bash
echo "$*" >>{folder}/asked
ask() {{
	printf '[sudo] password: ' >/dev/tty
	read -r word </dev/tty
	[ "$word" = secret ] || {{ echo "sudo: no password" >&2; exit 1; }}
}}
case "$1" in
-v) ask; {remember}; exit 0 ;;
-n) shift; [ -e {folder}/ticket ] || {{ echo "sudo: a password is required" >&2; exit 1; }} ;;
*) [ -e {folder}/ticket ] || ask ;;
esac
AS_ROOT=1 exec "$@"
"""

PROGRAMS = {
    "id": '[ -n "$AS_ROOT" ] && echo 0 || echo 1000',
    "dpkg-query": "exit 1",
    "apt-cache": "exit 100",
    "apt-get": 'echo "${AS_ROOT:-nobody}: $*" >>{folder}/apt; case "$*" in *update) sleep 1.5 ;; esac',
    "tee": "cat >/dev/null",  # nothing is held on this machine
    "chmod": ":",
}

SCRIPT = """set -euo pipefail
. {root}/scripts/lib/say.sh
. {root}/scripts/lib/packages.sh
STEP_LOG={folder}/log
{call}
echo all is done
"""


class Terminal:
    def __init__(self, folder, call, remember):
        programs = folder / "bin"
        programs.mkdir()
        texts = {name: f"#!/bin/sh\n{text}\n" for name, text in PROGRAMS.items()}
        texts = {name: text.replace("{folder}", str(folder)) for name, text in texts.items()}
        texts["sudo"] = SUDO.format(folder=folder, remember=f"touch {folder}/ticket" if remember else ":")
        for name, text in texts.items():
            (programs / name).write_text(text)
            os.chmod(programs / name, 0o755)
        script = SCRIPT.format(root=ROOT, folder=folder, call=call)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
            os.execvp("bash", ["bash", "-c", script, "script"])

    def read(self, seconds):
        """What comes next; nothing at the end, or if nothing comes."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self.fd, 4096)
        except OSError:
            return b""

    def talk(self, word):
        """Answers each question with the word; returns all that was shown, and what came between questions and answers."""
        shown = between = b""
        while True:
            piece = self.read(60)
            shown += piece
            if not piece:
                break
            if shown.endswith(QUESTION):
                disturbed = self.read(1.2)  # the moving line moves twice a second
                shown, between = shown + disturbed, between + disturbed
                os.write(self.fd, word + b"\n")
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return shown, between


@pytest.mark.parametrize("call, label", [("ensure_packages a-package", b"installing 1 packages"),
                                         ("ensure_index a-package", b"package index")])
@pytest.mark.parametrize("remembers", [True, False])
def test_the_password_is_asked_for_where_it_can_be_seen(tmp_path, call, label, remembers):
    terminal = Terminal(tmp_path, call, remembers)
    shown, between = terminal.talk(b"secret")
    assert terminal.code == 0 and b"all is done" in shown, shown
    assert between == b"", "nothing is drawn over a question"
    assert shown.count(QUESTION) == (1 if remembers else 2)
    assert shown.index(QUESTION) < shown.index(label)
    assert (WIPE in shown) == remembers, "the line moves where no question can come"
    assert all(line.startswith("1: ") for line in (tmp_path / "apt").read_text().splitlines())
    asked = [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == ["-n", "-v", "-n"] + (["-n"] if remembers else [asked[-1]]), "one process of root's for all of it"


def test_a_password_that_is_wrong_ends_it_before_the_step(tmp_path):
    terminal = Terminal(tmp_path, "ensure_packages a-package", True)
    shown, _ = terminal.talk(b"wrong")
    assert terminal.code == 1 and b"packages are installed by root: sudo refused" in shown, shown
    assert b"installing" not in shown and not (tmp_path / "apt").exists()


def test_an_index_that_cannot_be_renewed_is_no_end(tmp_path):
    terminal = Terminal(tmp_path, "ensure_index a-package", True)
    shown, _ = terminal.talk(b"wrong")
    assert terminal.code == 0 and b"the package index, which does not know a-package, could not be renewed" in shown, shown
