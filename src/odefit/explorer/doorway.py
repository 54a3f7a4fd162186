"""The file that leads a browser to the page, in a temporary folder that is removed with it.

All users of the machine could read an address in the command line of a browser, so the browser gets
a file that only its user can read. The file is removed as soon as the page is open.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odefit.common.temporary_folders import temporary_folder

PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>odefit explore</title>
<meta http-equiv="refresh" content="0;url={url}">
<p><a href="{url}">odefit explore</a></p></html>
"""


@contextmanager
def doorway(url: str) -> Iterator[Doorway]:
    """Make a file that leads to an address; it is removed after the block, or by a signal."""
    with temporary_folder("explore") as folder:
        yield Doorway(folder, url)


class Doorway:
    """A file that leads to an address, in a folder that only this user can read."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.file = folder / "explore.html"
        self.file.write_text(PAGE.format(url=url), encoding="utf-8")

    def remove(self) -> None:
        """Remove file and folder, if they are still there."""
        shutil.rmtree(self.folder, ignore_errors=True)
