"""What a method says of its discretisation and its bounds, as parts of the assessment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context

import numpy as np

from odefit.assessment.parts import AGREES, Bounds, Discretisation
from odefit.methods.estimate import Certificate, Discretised
from odefit.problem.arrays import Array

MOST_NAMES = 8
"""So many bounds a sentence may hold before it says "and n more"."""


def assess_bounds(certificate: Certificate | None) -> Bounds | None:
    """The bounds, with what they do and do not say."""
    if certificate is None:
        return None
    c = certificate
    said = (
        f"No values within {_within(c)} have an objective below {rounded_down(c.lower)} in "
        f"{_where(c.scope)}; {_found(c.upper)} was found there"
    )
    if c.closed and c.upper - c.lower <= c.negligible:
        said += f", as good as equal (they differ by {c.upper - c.lower:.2g})"
    elif 0 < c.upper < math.inf:
        said += f" (gap {(c.upper - c.lower) / c.upper:.2%})"
    exact = "with all rounding outwards" if c.rigorous else "as exact as its tolerances"
    said += f". The bound was computed by {c.solver}, {exact}"
    said += ", and does not speak of continuous time." if "discretised" in c.scope else "."
    said += f" {c.remark}" if c.remark else ""
    return Bounds(c.lower, c.upper, c.scope, said, c.closed, c.history)


def _found(upper: float) -> str:
    return f"{upper:.6g}" if math.isfinite(upper) else "nothing"


def _within(c: Certificate) -> str:
    """The box; bounds that are not the problem's own are told."""
    if not c.assumed:
        return "the bounds of the unknowns"
    told = [f"{k} from {a:.6g} to {b:.6g}" for k, (a, b) in list(c.assumed.items())[:MOST_NAMES]]
    if len(c.assumed) > MOST_NAMES:
        told.append(f"and {len(c.assumed) - MOST_NAMES} more")
    return f"the bounds of the unknowns, these as given to the method ({', '.join(told)}),"


def _where(scope: str) -> str:
    return f"the problem as {scope}" if "discretised" in scope else f"the problem in {scope}"


def assess_discretisation(
    found: Discretised | None, keys: Sequence[str], vector: Array
) -> Discretisation | None:
    """How far mesh and truth are apart.

    Parameters
    ----------
    keys, vector
        The unknowns and the final answer, shape (n,).
    """
    if found is None:
        return None
    d = found
    own = np.array(d.vector)
    scale = np.maximum(np.abs(vector), np.abs(own))
    moved = np.abs(vector - own) / np.where(scale > 0, scale, 1.0)
    worst = int(np.argmax(moved))
    shift = float(moved[worst])
    where = f"{d.scheme}, {d.steps} steps"
    if math.isinf(d.error):
        said = (
            f"The discretised answer ({where}) cannot be integrated: the mesh is too coarse, or "
            "the solution grows without bound."
        )
    else:
        said = (
            f"The discretised trajectories ({where}) differ from the integrated ones by "
            f"{d.error:.2g} of the largest value at the measurements; the discretised answer "
            f"differs from the final one by {shift:.2g} at most, relative ({keys[worst]})."
        )
        if d.error > AGREES:
            said += " That mesh is too coarse to be believed on its own."
    return Discretisation(d.scheme, d.steps, d.objective, d.true_objective, d.error, shift, said)


def rounded_down(bound: float) -> str:
    """Six digits that claim no more than the bound itself."""
    context = Context(prec=6, rounding=ROUND_FLOOR)
    return f"{float(context.create_decimal(repr(bound))):.6g}"
