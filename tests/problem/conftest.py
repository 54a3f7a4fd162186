"""Problem files in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odefit.problem import InputError, load
from tests.problem.texts import DECAY


class Folder:
    """A folder with a problem file and its data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("data.csv", "t,x\n0,1\n1,0.5\n")
        self.write("problem.toml", DECAY)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file; its path."""
        data = content.encode() if isinstance(content, str) else content
        (self.path / name).write_bytes(data)
        return self.path / name

    def errors(self, problem: str = DECAY, data: str | bytes | None = None) -> tuple[str, ...]:
        """What is wrong with `problem`, without the name of its file; () if nothing is."""
        path = self.write("problem.toml", problem)
        if data is not None:
            self.write("data.csv", data)
        messages: tuple[str, ...] = ()
        try:
            load(path)
        except InputError as error:
            messages = error.messages
        assert all(m.startswith(f"{path}: ") for m in messages), messages
        return tuple(m.removeprefix(f"{path}: ") for m in messages)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def errors(folder: Folder) -> Callable[..., tuple[str, ...]]:
    return folder.errors
