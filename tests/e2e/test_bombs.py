# SPDX-License-Identifier: Apache-2.0
"""Programs that take all the memory or all the processes there are end as what they are, and take nobody along."""
import json
import pathlib
import subprocess

import pytest

from conftest import kernel_environment


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bomb")
    source = pathlib.Path(__file__).with_name("bomb.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-static", "-O2", "-Wall", "-Werror", "-o", folder / "bomb", source], check=True)
    return folder


# Of 128 MiB 840 processes, as many as the kernel lets be, nearly reach memory.max: now and then it ends them first.
ROOM_FOR_ALL = ("--memory", "192Mi")


def explode(sandbox, bomb, words, *options, env):
    done = sandbox.run("run", "--json", "--workspace", bomb, *options, "--", *words, env=env)
    result = json.loads(done.stdout)
    assert result["exit_code"] == done.returncode, done.stderr
    assert sandbox.runs() == []
    return result


def test_a_memory_bomb(sandbox, bomb, kernel):
    """Its parent outlives it: the program's own code, and beside it what happened."""
    result = explode(sandbox, bomb, ["./bomb", "memory"], "--memory", "192Mi", env=kernel)
    assert (result["output"], result["exit_code"]) == ("2 killed\n", 7)
    assert (result["reason"], result["disposition"]) == ("out-of-memory", "completed")


def test_a_fork_bomb(sandbox, bomb):
    """Where there are no more processes, there is still room for what watches over it."""
    result = explode(sandbox, bomb, ["./bomb", "forks"], *ROOM_FOR_ALL, env=kernel_environment("built"))
    count, why = result["output"].removesuffix("\n").split(" more, then ")
    assert int(count) > 200 and why in ("EAGAIN", "ENOMEM")
    assert (result["exit_code"], result["disposition"]) == (9, "completed")


def test_a_fork_bomb_that_never_ends_is_ended_by_its_deadline(sandbox, bomb):
    result = explode(sandbox, bomb, ["./bomb", "leaves"], *ROOM_FOR_ALL, "--deadline", "5s",
                     env=kernel_environment("built"))
    assert (result["exit_code"], result["reason"], result["disposition"]) == (124, "deadline", "stopped")
