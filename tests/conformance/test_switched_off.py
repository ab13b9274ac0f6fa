# SPDX-License-Identifier: Apache-2.0
"""What is off in a sandbox, and the exact message a program gets: the table of docs/guest-kernel.md, row by row."""
import json
import pathlib
import re

import pytest

from inside import guest, prepared  # noqa: F401 (fixtures)

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/guest-kernel.md"
HEADING = "## What a program is told"


def rows():
    """[what, who, command, message of the built kernel, message of the distribution's]; backticks taken off."""
    text = DOCUMENT.read_text().split(HEADING + "\n")[1].split("\n## ")[0]
    table = [[cell.strip().strip("`").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
             for line in text.splitlines() if re.match(r"\| [^|-]", line)]
    return table[1:]


def message(guest, row):
    """Exit code and words of the row's command; all commands run in one sandbox."""
    lines, result = guest.lines("messages.py", json.dumps([row[1:3] for row in rows()]))
    found = [line[2:] for line in lines if line[:2] == row[1:3]]
    assert found, f"no report; the run: {result['reason']} {result['exit_code']} {result['stderr'][-2000:]}"
    return found[0]


def test_the_table_is_there():
    assert len(rows()) > 30
    assert all(len(row) == 5 for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_a_program_gets(guest, row):
    _, _, command, built, distro = row
    expected = built if guest.is_built or distro == "the same" else distro
    code, text = message(guest, row)
    if expected == "works":
        assert code == 0, text
    else:
        assert expected in text
        assert code != 0, f"{command} said so and ended well"
