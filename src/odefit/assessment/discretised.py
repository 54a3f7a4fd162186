"""What a method says of its discretisation and its bounds, as parts of the assessment."""

from __future__ import annotations

import math

from odefit.assessment.parts import AGREES, Bounds, Discretisation
from odefit.methods.estimate import Certificate, Discretised


def assess_bounds(certificate: Certificate | None) -> Bounds | None:
    """The bounds, with what they do and do not say."""
    if certificate is None:
        return None
    c = certificate
    said = (
        f"No values within the bounds of the unknowns have an objective below {c.lower:.6g} in "
        f"the problem as {c.scope}; {c.upper:.6g} was found there"
    )
    if c.closed and c.upper - c.lower <= c.negligible:
        said += f", as good as equal (they differ by {c.upper - c.lower:.2g})"
    elif c.upper > 0:
        said += f" (gap {(c.upper - c.lower) / c.upper:.2%})"
    said += f". The bound is {c.solver}'s, as exact as its tolerances"
    said += ", and does not speak of continuous time." if "discretised" in c.scope else "."
    return Bounds(c.lower, c.upper, c.scope, said, c.closed)


def assess_discretisation(found: Discretised | None) -> Discretisation | None:
    """How far mesh and truth are apart."""
    if found is None:
        return None
    d = found
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
            f"differs from the final one by {d.shift:.2g} at most, relative ({d.shifted})."
        )
        if d.error > AGREES:
            said += " That mesh is too coarse to be believed on its own."
    return Discretisation(d.scheme, d.steps, d.objective, d.true_objective, d.error, d.shift, said)
