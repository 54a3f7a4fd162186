"""The bounds proved by a method, and the agreement of its discretisation, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Context

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Agreement, Certificate
from odefit.methods.fit_measure import OBJECTIVE

MAX_NAMES = 8
"""Largest number of bounds that a sentence lists before "and n more"."""


def assess_certificate(c: Certificate | None) -> Certificate | None:
    """Return the bounds with a sentence on what they imply and what they do not."""
    if c is None:
        return None
    sentence = (
        f"No values within {within(c.assumed)} have {_measured(c)} below {rounded_down(c.lower)} "
        f"in the problem {'as' if c.discretised else 'in'} {c.scope}; "
        f"{_best_found(c.upper)} was found there"
    )
    if c.closed and c.upper - c.lower <= c.negligible:
        sentence += f", equal for practical purposes (they differ by {c.upper - c.lower:.2g})"
    elif c.unit or 0 < c.upper < math.inf:
        sentence += f" (gap {c.gap:.2%})"
    exact = "with all rounding outwards" if c.rigorous else "as exact as its tolerances"
    sentence += f". The bound was computed by {c.solver}, {exact}"
    sentence += ", and does not hold for continuous time." if c.discretised else "."
    sentence += f" {c.remark}" if c.remark else ""
    return replace(c, sentence=sentence)


def _measured(c: Certificate) -> str:
    """Return what is bounded, with an article if it has one."""
    return f"an {c.measure}" if c.measure == OBJECTIVE else c.measure


def _best_found(upper: float) -> str:
    return f"{upper:.6g}" if math.isfinite(upper) else "nothing"


def within(assumed: Mapping[str, tuple[float, float]]) -> str:
    """Return the name of the box, with bounds that differ from the problem's."""
    if not assumed:
        return "the bounds of the unknowns"
    ranges = [f"{k} from {a:.6g} to {b:.6g}" for k, (a, b) in list(assumed.items())[:MAX_NAMES]]
    if len(assumed) > MAX_NAMES:
        ranges.append(f"and {len(assumed) - MAX_NAMES} more")
    return f"the bounds of the unknowns, these as given to the method ({', '.join(ranges)}),"


def assess_agreement(d: Agreement | None, keys: Sequence[str], vector: Array) -> Agreement | None:
    """Return the distance between the discretised and the final answer, with a sentence."""
    if d is None:
        return None
    answer = np.array(d.vector)
    scale = np.maximum(np.abs(vector), np.abs(answer))
    moved = np.abs(vector - answer) / np.where(scale > 0, scale, 1.0)
    worst = int(np.argmax(moved))
    shift = float(moved[worst])
    where = f"{d.scheme}, {d.steps} steps"
    if math.isinf(d.error):
        sentence = (
            f"The discretised answer ({where}) cannot be integrated: the mesh is too coarse, or "
            "the solution grows without bound."
        )
    else:
        sentence = (
            f"The discretised trajectories ({where}) differ from the integrated ones by "
            f"{d.error:.2g} of the largest value at the measurements; the discretised answer "
            f"differs from the final one by {shift:.2g} at most, relative ({keys[worst]})."
        )
        if not d.fine:
            sentence += " This mesh is too coarse to be trusted on its own."
    return replace(d, shift=shift, sentence=sentence)


def rounded_down(bound: float) -> str:
    """Return a lower bound rounded down to six digits."""
    context = Context(prec=6, rounding=ROUND_FLOOR)
    return f"{float(context.create_decimal(repr(bound))):.6g}"
