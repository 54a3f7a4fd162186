"""The choice of an engine as a value, and the packages that engines need."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from odefit.common.errors import InputError
from odefit.simulation.engines.step_limits import DEAR_TAYLOR


@dataclass(frozen=True)
class EngineChoice:
    """What integrations so far have shown of the stiffness of a problem.

    Every integration takes a choice and returns one. A search that hands the choice of one
    evaluation to the next tries first what served last; a search that does not, pays for the
    comparison of both engines at each evaluation, and gets the same values.
    """

    stiff: bool = False  # Whether the implicit engine has needed less work than the Taylor method
    # Steps that the Taylor method gets for a segment before the implicit engine is asked; None for
    # as many as are as much work as a usual integration by the implicit engine.
    taylor_steps: int | None = None
    # Number of integrations by the implicit engine since the Taylor method was last tried; it
    # begins below zero where the next trial is put off.
    since: int = 0
    # Number of the last integrations that took the Taylor method long, while the problem is not
    # known to be stiff.
    dear: int = field(default=0, repr=False)


UNDECIDED = EngineChoice()
"""The choice of an engine before anything has been integrated."""


def after_taylor(choice: EngineChoice, cheap: bool) -> EngineChoice:
    """Return the choice after an integration by the Taylor method, which was cheap or was not."""
    if cheap:
        return replace(choice, dear=0) if choice.dear else choice
    if choice.dear + 1 < DEAR_TAYLOR:
        return replace(choice, dear=choice.dear + 1)
    return EngineChoice(stiff=True)


@cache
def import_problem(package: str) -> str:
    """Return why the package of an engine cannot be imported; an empty text if it can be."""
    try:
        import_module(package)
    except ImportError as error:
        _failed.add(package)
        return str(error)
    return ""


_failed: set[str] = set()
"""Packages whose import has failed in this process."""


def is_missing(package: str) -> bool:
    """Return whether a package cannot be imported, as far as is known without trying.

    A package that is installed counts as missing once its import has failed. To try takes more than
    a tenth of a second for numba, which fits in which nothing stiff has come up do not need.
    """
    if package in _failed:
        return True
    return sys.modules.get(package) is None and find_spec(package) is None


def missing_package(package: str) -> str:
    """Return in one sentence that a package is missing, why, and how to install it."""
    if package == "heyoka" and sys.platform != "linux":
        return (
            "the package heyoka cannot be imported; pip has it for Linux alone, conda for other "
            "systems: 'conda install -c conda-forge heyoka.py' in an environment of conda"
        )
    return (
        f"the package {package} cannot be imported ({import_problem(package)}); install it with "
        f"'pip install {package}', on a version of Python that it is published for"
    )


def missing_engines(explicit: bool, stiff: bool) -> tuple[str, ...]:
    """Return sentences about engines that would serve and whose packages are missing.

    `explicit`, `stiff`: whether the Taylor method and odefit's implicit engine could integrate the
    equations.
    """
    found = []
    if explicit and import_problem("heyoka"):
        found.append(
            "An implicit engine has integrated in place of heyoka's Taylor method, which is "
            f"many times faster on most problems: {missing_package('heyoka')}"
        )
    if stiff and is_missing("numba"):
        found.append(
            "CasADi's CVODES integrates stiff equations in place of odefit's own engine, "
            f"which is many times faster: {missing_package('numba')}"
        )
    return tuple(found)


def require_engine(package: str, consequence: str) -> None:
    """Refuse to go on if the package of an engine cannot be imported."""
    if import_problem(package):
        raise InputError(f"{consequence}: {missing_package(package)}")
