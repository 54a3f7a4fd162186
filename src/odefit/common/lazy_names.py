"""Names of a package whose modules are imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a package with names from its modules.

    `modules` maps each module, without the package, to its names, separated by spaces. So the
    command line can tell its options without all that a fit needs.

    Examples
    --------
    >>> lazy_names("odefit", {"common.errors": "InputError listed"})("InputError").__name__
    'InputError'
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return attribute
