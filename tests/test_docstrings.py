"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import odefit


def with_examples() -> list[str]:
    """Modules in whose text an example begins; looking for it imports none of them."""
    names = ["odefit", *(info.name for info in pkgutil.walk_packages(odefit.__path__, "odefit."))]
    root = Path(odefit.__file__).parents[1]
    found = []
    for name in names:
        place = root.joinpath(*name.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        examples = re.findall(r"^ *>>> (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if not all("+SKIP" in example for example in examples):
            found.append(name)
    return found


@pytest.mark.parametrize("name", with_examples())
def test_examples_show_what_happens(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert outcome.failed == 0
    assert outcome.attempted > 0


def test_more_than_twenty_docstrings_have_examples() -> None:
    assert len(with_examples()) > 20
