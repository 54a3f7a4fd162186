"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import odefit

MODULES = sorted(
    ["odefit", *(info.name for info in pkgutil.walk_packages(odefit.__path__, "odefit."))]
)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_show_what_happens(name: str) -> None:
    outcome = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert not outcome.failed, f"{outcome.failed} of {outcome.attempted} examples of {name} fail"
