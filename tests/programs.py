# SPDX-License-Identifier: Apache-2.0
"""Another PATH for a program under test: with stand-ins in front, or with some programs missing."""
import os


def program(folder, name, text):
    """A PATH with this program in front of the others."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def programs_without(folder, *names):
    """A PATH with everything that is in PATH but these."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for found in os.scandir(place) if os.path.isdir(place) else []:
            link = folder / found.name
            if found.name not in names:
                link.unlink(missing_ok=True)
                link.symlink_to(found.path)
    return str(folder)
