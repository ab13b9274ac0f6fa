# SPDX-License-Identifier: Apache-2.0
"""Images of OCI and Docker in a microVM: a program sees what their configuration says, unless options say otherwise."""
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.append(str(ROOT / "tests/services"))
from oci_images import Layout, folder, layer, member  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv, char **env)
{
	char dir[4096];

	printf("cwd=%s\nids=%d:%d\n", getcwd(dir, sizeof(dir)), getuid(), getgid());
	while (*env)
		puts(*env++);
	return 0;
}
"""

CONFIG = {"Env": ["PATH=/opt/bin", "BOTH=image", "KEPT=a b=c"], "WorkingDir": "/srv", "User": "app", "Cmd": ["no-such-program"]}


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """An image of two layers; there is nothing in it but the program, and the user in a file that the second replaces."""
    work = tmp_path_factory.mktemp("oci")
    (work / "show.c").write_text(PROGRAM)
    subprocess.run(["cc", "-static", "-O2", "-o", work / "show", work / "show.c"], check=True)
    users = "root:x:0:0::/root:/bin/sh\napp:x:{}:78::/home/app:/bin/sh\n"
    below = layer(folder("opt"), folder("opt/bin"), member("opt/bin/show", data=(work / "show").read_bytes(), mode=0o755),
                  folder("srv"), folder("etc"), member("etc/passwd", data=users.format(11).encode()))
    above = layer(member("etc/passwd", data=users.format(77).encode()), folder("other"), folder("home"),
                  folder("home/app"))
    Layout(work / "layout").image([below, above], tag="1", config=CONFIG)
    return work / "layout"


@pytest.fixture
def seen(sandbox, tmp_path):
    """Returns seen(arguments of run...): what the program saw, by name."""
    def run(*arguments):
        done = sandbox.run("run", *arguments, "--", "show", env={"RESOLUTO_CACHE_DIR": str(tmp_path / "cache")})
        assert (done.returncode, done.stderr) == (0, b"")
        return dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    return run


AS_CONFIGURED = {"cwd": "/srv", "ids": "77:78", "PATH": "/opt/bin", "BOTH": "image", "KEPT": "a b=c", "HOME": "/home/app",
                 "USER": "app", "LOGNAME": "app"}


def test_a_layout_is_run_as_its_configuration_says(seen, layout):
    assert seen("--image", f"oci:{layout}:1") == AS_CONFIGURED


def test_options_win_over_the_configuration(seen, layout):
    told = seen("--image", f"oci:{layout}:1", "--env", "BOTH=option", "--env", "NEW=x", "--workdir", "/other", "--user",
                "1234:2345")
    assert (told["cwd"], told["ids"]) == ("/other", "1234:2345")
    assert (told["BOTH"], told["NEW"], told["KEPT"], told["PATH"]) == ("option", "x", "a b=c", "/opt/bin")


@pytest.mark.parametrize("workdir", ["/not/in/any/layer", "/root"])
def test_a_working_directory_that_no_layer_has_or_that_the_user_may_not_enter(seen, layout, tmp_path, workdir):
    """As container runtimes have it: the first is made, and the second is entered before the rights go."""
    program = (layout.parent / "show").read_bytes()
    below = layer(folder("opt"), folder("opt/bin"), member("opt/bin/show", data=program, mode=0o755),
                  folder("root", mode=0o700))
    Layout(tmp_path / "layout").image([below], tag="1", config={"Env": ["PATH=/opt/bin"], "WorkingDir": workdir})
    told = seen("--image", f"oci:{tmp_path}/layout:1")
    assert (told["cwd"], told["ids"]) == (workdir, "1000:1000")


def test_an_archive_of_docker_is_run_as_its_configuration_says(seen, layout, tmp_path):
    archive = f"docker-archive:{tmp_path}/docker.tar"
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{layout}:1", f"{archive}:show:1"], check=True)
    assert seen("--image", archive) == AS_CONFIGURED
