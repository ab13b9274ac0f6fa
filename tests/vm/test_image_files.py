# SPDX-License-Identifier: Apache-2.0
"""What a program changes of its image's files stays changed, whatever the layer above them lies on: memory or a scratch disk.

Our kernel does not try out what a tmpfs can do for an overlay (guest-kernel/patches), so it has to be right about it."""
import io
import tarfile

import pytest

from conftest import build_dir

USER = 1000
FILES = {"d/a": b"a", "d/b": b"b", "d/c": b"c", "d/sub/x": b"x"}
LEFT = b"""a is ENOENT
sub is ENOTEMPTY
/d/sub:
/d: a c link other/
/d/other: y
/d/a: new
/d/c: b and more
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    path = tmp_path_factory.mktemp("image") / "image.tar"
    members = {"program": (build_dir() / "tests/vm/image_probe").read_bytes(), "d": None, "d/sub": None, **FILES}
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.uid = member.gid = USER
            member.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            member.mode, member.size = (0o644 if name in FILES else 0o755), len(data or b"")
            archive.addfile(member, io.BytesIO(data or b""))
    return f"tar:{path}"


@pytest.mark.parametrize("layer", [[], ["--disk=64Mi"]], ids=["memory", "disk"])
def test_what_was_changed_stays_changed(sandbox, kernel, image, layer):
    done = sandbox.run("run", "--memory=256Mi", *layer, "--image", image, "--", "/program", env=kernel)
    assert (done.returncode, done.stdout) == (0, LEFT), (done.stdout, done.stderr)
