"""The boxes that are left, on disk: a search that was killed goes on where it was."""

from __future__ import annotations

import json
import time
from pathlib import Path

from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.checkpoint import check_header, header
from odefit.problem.errors import InputError

OFTEN = 10.0
"""Seconds between two savings, at least."""

SHARE = 20.0
"""The same, over the seconds that the last one took."""


class SavedTree:
    """A file with the boxes of one search.

    Parameters
    ----------
    path
        Of the file.
    identity
        :func:`~odefit.methods.checkpoint.fingerprint` of the work.

    Raises
    ------
    ForeignCheckpointError
        The file belongs to other work.
    InputError
        It is no checkpoint, or its directory does not exist.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity
        self._next = time.monotonic() + OFTEN
        self._lines: list[str] = []
        if path.exists():
            try:
                self._lines = path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{path}: cannot be read as a checkpoint: {error}") from error
            if self._lines:
                check_header(path, self._lines[0], identity)
        elif not path.parent.is_dir():
            raise InputError(f"{path}: the directory {path.parent} does not exist; make it first")

    def resume(self, tree: Tree) -> bool:
        """Whether `tree` goes on from the file."""
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
        """If it is time to, or `now`."""
        began = time.monotonic()
        if not now and began < self._next:
            return
        text = f"{header(self._identity)}\n{json.dumps(tree.state())}\n"
        # A file that is half written when the process is killed must not replace a whole one.
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self._path)
        ended = time.monotonic()
        self._next = ended + max(OFTEN, SHARE * (ended - began))
