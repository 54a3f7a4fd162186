"""Priors of PEtab as format 1 writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from odefit.formats.petab.tables import Row, as_list, as_number
from odefit.problem.errors import one_of, shown
from odefit.problem.issues import Issues

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "normal": ("mean", "sd"),
    "laplace": ("location", "scale"),
    "log-normal": ("mean", "sd"),
    "log-laplace": ("location", "scale"),
    "uniform": ("lower", "upper"),
    "log-uniform": ("lower", "upper"),
    "cauchy": ("location", "scale"),
    "chi-square": ("degrees",),
    "exponential": ("scale",),
    "gamma": ("shape", "scale"),
    "rayleigh": ("scale",),
}
"""The parameters of each family, in the order in which PEtab lists them."""

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


def prior_of_version_1(
    row: Row, scale: str, bounds: tuple[float, float], issues: Issues
) -> dict[str, Any] | None:
    """Return the prior of the objective; None if there is none.

    Parameters
    ----------
    row
        The row of the parameter table.
    scale
        The scale of the parameter: ``"lin"``, ``"log"`` or ``"log10"``.
    bounds
        Its bounds, on which a uniform prior on the scale of the parameter lies if it says nothing
        else.
    issues
        The list to which mistakes are added.
    """
    kind = row.get("objectivePriorType")
    if not kind:
        if row.get("objectivePriorParameters"):
            issues.error(row.place, "objectivePriorParameters without objectivePriorType")
        return None
    if kind not in VERSION_1_NAMES:
        issues.error(
            row.place,
            f"objectivePriorType: unknown {shown(kind)}{one_of(kind, VERSION_1_NAMES)}",
        )
        return None
    family, on_scale = VERSION_1_NAMES[kind]
    text = row.get("objectivePriorParameters")
    if not text and family == "uniform":
        return None  # uniform between the bounds, which says nothing
    prior = _prior(family, text, "objectivePriorParameters", row, issues)
    if prior is not None and on_scale and scale != "lin":
        prior["on"] = scale
    return prior


def prior_of_version_2(row: Row, issues: Issues) -> dict[str, Any] | None:
    """Return the prior; None if there is none. The arguments are those for version 1."""
    kind = row.get("priorDistribution")
    if not kind:
        if row.get("priorParameters"):
            issues.error(row.place, "priorParameters without priorDistribution")
        return None
    if kind not in VERSION_2_NAMES:
        issues.error(
            row.place, f"priorDistribution: unknown {shown(kind)}{one_of(kind, VERSION_2_NAMES)}"
        )
        return None
    family = VERSION_2_NAMES[kind]
    return _prior(family, row.get("priorParameters"), "priorParameters", row, issues)


def _prior(family: str, text: str, column: str, row: Row, issues: Issues) -> dict[str, Any] | None:
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
