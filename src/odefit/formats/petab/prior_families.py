"""Priors of PEtab as format 1 writes them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from odefit.common.errors import one_of, shown
from odefit.formats.petab.tables import Row, as_list, as_number
from odefit.problem.inputs.issues import Issues
from odefit.problem.priors import FAMILIES

VERSION_2_NAMES = {**{name: name for name in FAMILIES}, "chisquare": "chi-square"}
VERSION_1_NAMES = {
    "uniform": ("uniform", False),
    "normal": ("normal", False),
    "laplace": ("laplace", False),
    "logNormal": ("log-normal", False),
    "logLaplace": ("log-laplace", False),
    "parameterScaleUniform": ("uniform", True),
    "parameterScaleNormal": ("normal", True),
    "parameterScaleLaplace": ("laplace", True),
}
"""What version 1 calls them, and whether they are meant on the scale of the parameter."""


def prior_of_version_1(row: Row, scale: str, issues: Issues) -> dict[str, Any] | None:
    """Return the prior of the objective, or None; scales are ``"lin"``, ``"log"``, ``"log10"``."""
    kind = _kind(row, "objectivePriorType", "objectivePriorParameters", VERSION_1_NAMES, issues)
    if kind is None:
        return None
    family, on_scale = VERSION_1_NAMES[kind]
    if family == "uniform" and not row.get("objectivePriorParameters"):
        return None  # uniform between the bounds, which says nothing
    prior = _prior(family, "objectivePriorParameters", row, issues)
    if prior is not None and on_scale and scale != "lin":
        prior["on"] = scale
    return prior


def prior_of_version_2(row: Row, issues: Issues) -> dict[str, Any] | None:
    """Return the prior; None if there is none. The arguments are those for version 1."""
    kind = _kind(row, "priorDistribution", "priorParameters", VERSION_2_NAMES, issues)
    if kind is None:
        return None
    return _prior(VERSION_2_NAMES[kind], "priorParameters", row, issues)


def _kind(
    row: Row, column: str, parameters: str, known: Collection[str], issues: Issues
) -> str | None:
    """Return what a row calls its family; None if there is none, or an unknown one."""
    kind = row.get(column)
    if kind in known:
        return kind
    if kind:
        issues.error(row.place, f"{column}: unknown {shown(kind)}{one_of(kind, known)}")
    elif row.get(parameters):
        issues.error(row.place, f"{parameters} without {column}")
    return None


def _prior(family: str, column: str, row: Row, issues: Issues) -> dict[str, Any] | None:
    text = row.get(column)
    names = FAMILIES[family]
    numbers = [as_number(part) for part in as_list(text)]
    if len(numbers) != len(names) or any(n is None or math.isinf(n) for n in numbers):
        issues.error(
            row.place,
            f"{column}: expected {' and '.join(names)} of the {family} distribution, separated by "
            f"a semicolon, got {shown(text)}",
        )
        return None
    return {"distribution": family, **dict(zip(names, numbers, strict=True))}
