"""Finite bounds of the unknowns, without which there is no proof: given, never made up unasked."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from odefit.methods.domains import Domains
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError, one_of
from odefit.problem.option_checks import number
from odefit.problem.problem import Problem
from odefit.problem.start_ranges import ranges

Given = Mapping[str, tuple[float, float]] | Literal["propose"] | None

WIDER = 10.0
"""Proposed bounds are so much wider than where starts are looked for."""

TINY = 1e-3
"""Of the size, the least of what is positive, where nothing else is known of it."""


def finite_bounds(problem: Problem, given: Given) -> Array:
    """Finite bounds of every unknown, shape (n, 2).

    Proposals that are accepted also take the place of a lower bound of zero, or below, where
    zero is no possible value.

    Raises
    ------
    InputError
        One has none; the message proposes some.
    """
    found = np.column_stack([problem.lower, problem.upper])
    proposed = _proposals(problem)
    missing = []
    for k, key in enumerate(problem.keys):
        own = given.get(key) if isinstance(given, Mapping) else None
        if own is not None:
            found[k] = max(found[k, 0], own[0]), min(found[k, 1], own[1])
            if found[k, 0] > found[k, 1]:
                raise InputError(
                    f"bounds, {key!r}: {tuple(own)} has nothing in common with the problem's own "
                    f"bounds, {problem.lower[k]:g} to {problem.upper[k]:g}"
                )
        at_zero = given == "propose" and found[k, 0] <= 0.0 < proposed[k][0]
        if np.isfinite(found[k]).all() and not at_zero:
            continue
        if given == "propose":
            free = ~np.isfinite(found[k]) | np.array([at_zero, False])
            found[k] = np.where(free, proposed[k], found[k])
        else:
            missing.append(f'"{key}": ({proposed[k][0]:.3g}, {proposed[k][1]:.3g})')
    if missing:
        raise InputError(
            "global optimisation: unknowns without finite bounds. From the data, these would do: "
            f"bounds={{{', '.join(missing)}}}; give better ones in the problem or by this option, "
            'or accept them with bounds="propose" (on the command line, --bounds propose)'
        )
    return found


def _proposals(problem: Problem) -> list[tuple[float, float]]:
    """Bounds that are generous beside where starts are looked for.

    The lower one is positive where zero is no possible value: of standard deviations, where the
    equations divide by the unknown or have its logarithm, and on a logarithmic scale.
    """
    found = []
    domains = Domains.of(problem)
    for unknown, r in zip(problem.unknowns, ranges(problem), strict=True):
        p = unknown.parameter
        width = WIDER * max(abs(r.low), abs(r.high))
        low = 0.0 if r.low >= 0 else -width
        positive = p.scale == "log10" or unknown.name in domains.positive
        positive = positive or (unknown.name in domains.nonzero and r.low >= 0)
        if positive:
            low = (r.low if r.low > 0 else TINY * r.high) / WIDER
        if p.upper <= low:
            low = p.upper / WIDER if positive and p.upper > 0 else p.upper - width
        own = p.lower if math.isfinite(p.lower) and not (positive and p.lower <= 0) else low
        low = own if own == p.lower else float(f"{own:.2g}")
        high = p.upper if math.isfinite(p.upper) else float(f"{max(width, low + width):.2g}")
        if p.guess is not None:
            low, high = min(low, p.guess), max(high, p.guess)
        found.append((low, high))
    return found


def within(problem: Problem, bounds: Array) -> Problem:
    """`problem` with these bounds of its unknowns, shape (n, 2)."""
    if (problem.lower == bounds[:, 0]).all() and (problem.upper == bounds[:, 1]).all():
        return problem
    found = copy.copy(problem)
    found.unknowns = tuple(
        replace(u, parameter=replace(u.parameter, lower=float(a), upper=float(b)))
        for u, (a, b) in zip(problem.unknowns, bounds, strict=True)
    )
    for name in ("lower", "upper"):  # computed from the unknowns, and kept
        vars(found).pop(name, None)
    return found


def assumed(problem: Problem, bounds: Array) -> dict[str, tuple[float, float]]:
    """Those of `bounds`, shape (n, 2), that are not the problem's own, by key."""
    own = np.column_stack([problem.lower, problem.upper])
    return {
        key: (float(a), float(b))
        for key, (a, b), same in zip(problem.keys, bounds, (own == bounds).all(axis=1), strict=True)
        if not same
    }


def check_given(owner: str, given: Any) -> None:
    """Refuse what are no bounds.

    Raises
    ------
    InputError
        Naming `owner`, the method whose option it is.
    """
    if given is None or given == "propose":
        return
    if not isinstance(given, Mapping):
        raise InputError(
            f'{owner}, bounds: expected {{"name": (lower, upper)}} or "propose", got {given!r}'
        )
    for name, pair in given.items():
        place = f"{owner}, bounds, {name!r}"
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"{place}: expected (lower, upper), got {pair!r}")
        for end in pair:
            number(end, place)
        if pair[0] > pair[1]:
            raise InputError(f"{place}: the lower one is above the upper one, got {pair!r}")


def check_names(problem: Problem, given: Given, others: tuple[str, ...] = ()) -> None:
    """Refuse bounds of what there is not.

    Parameters
    ----------
    others
        Names that may have bounds beside the unknowns.

    Raises
    ------
    InputError
        Naming all of them.
    """
    if not isinstance(given, Mapping):
        return
    known = [*problem.keys, *others]
    wrong = [
        f"bounds: there is no {name!r}{one_of(name, known)}" for name in given if name not in known
    ]
    if wrong:
        raise InputError(wrong)
