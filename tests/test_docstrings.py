"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import odefit


def test_examples_show_what_happens() -> None:
    names = ["odefit", *(info.name for info in pkgutil.walk_packages(odefit.__path__, "odefit."))]
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    outcomes = {m.__name__: doctest.testmod(m, optionflags=flags) for m in modules}
    failed = {name: f"{o.failed} of {o.attempted}" for name, o in outcomes.items() if o.failed}
    assert not failed, f"examples that are not true: {failed}"
    assert sum(o.attempted for o in outcomes.values()) > 50
