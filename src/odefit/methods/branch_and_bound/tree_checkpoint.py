"""The open nodes of a tree on disk: a search that was killed continues where it was."""

from __future__ import annotations

import json
import time
from pathlib import Path

from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.checkpoint import check_header, header, read_text
from odefit.problem.errors import InputError

SAVE_INTERVAL = 10.0
"""Least number of seconds between two savings."""

SAVE_RATIO = 20.0
"""Least ratio of the time between two savings to the time that the last one took."""


class TreeCheckpoint:
    """A file with the open nodes of one search.

    Parameters
    ----------
    path
        Path of the file.
    identity
        :func:`~odefit.methods.checkpoint.fingerprint` of the search.

    Raises
    ------
    ForeignCheckpointError
        The file belongs to another search.
    InputError
        The file is no checkpoint, or its directory does not exist.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity
        self._next = time.monotonic() + SAVE_INTERVAL
        self._lines = read_text(path).splitlines()
        if self._lines:
            check_header(path, self._lines[0], identity)

    def resume(self, tree: Tree) -> bool:
        """Let `tree` continue from the file; return False if the file has no tree yet."""
        if len(self._lines) < 2:
            return False
        try:
            tree.resume(json.loads(self._lines[1]))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InputError(
                f"{self._path}: is damaged ({error}); remove it to begin anew"
            ) from error
        return True

    def save(self, tree: Tree, now: bool = False) -> None:
        """Save the open nodes of `tree` if the last saving is long ago, or if `now` is true."""
        began = time.monotonic()
        if not now and began < self._next:
            return
        text = f"{header(self._identity)}\n{json.dumps(tree.state())}\n"
        # A file that is half written when the process is killed must not replace a whole one.
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self._path)
        ended = time.monotonic()
        self._next = ended + max(SAVE_INTERVAL, SAVE_RATIO * (ended - began))
