"""Packages that a fit does not need: their absence is told in one sentence."""

from __future__ import annotations

from importlib import import_module

from odefit.problem.errors import InputError

PURPOSES = {
    "jinja2": "reports",
    "matplotlib": "figures and reports",
    "pandas": "tables as data frames",
}
"""Packages without which everything else works, and what they are for."""


def require(package: str) -> None:
    """Refuse to go on without one of :data:`PURPOSES`.

    Raises
    ------
    InputError
        The package cannot be imported; the message says what for, why, and how to install it.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise InputError(
            f"{PURPOSES[package]} need the package {package}, which cannot be imported ({error}); "
            f"install it with 'pip install {package}'"
        ) from None
