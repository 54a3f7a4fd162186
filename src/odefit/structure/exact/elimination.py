"""Elimination of variables that an equation gives as an affine form of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odefit.structure.exact.polynomials import (
    Polynomial,
    add,
    degree,
    scale,
    substitute,
    variable,
    variables,
)
from odefit.structure.series.deadline import PER_TERM, Deadline
from odefit.structure.series.number_fields import PRIME


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Equations in fewer variables, with the same solutions; `forms` are those of the others."""

    equations: list[Polynomial]
    forms: dict[int, Polynomial]


def without_linear(
    equations: Sequence[Polynomial], depth: Sequence[int], deadline: Deadline | None = None
) -> Eliminated:
    """Eliminate a variable by each equation of degree 1, until there is no such equation.

    Short equations come first, since they lengthen the others least. Each eliminates its variable
    of the greatest depth, so that the unknowns, whose depth is 0, are left if possible.
    """
    left = [f for f in equations if f]
    forms: dict[int, Polynomial] = {}
    while True:
        if deadline is not None:
            deadline.check()
        linear = [(len(f), i) for i, f in enumerate(left) if degree(f) == 1]
        if not linear:
            return Eliminated(left, forms)
        _, i = min(linear)
        f = left.pop(i)
        v = max(variables(f), key=lambda v: (depth[v], v))
        inverse = pow(f[((v, 1),)], -1, PRIME)
        form = add(variable(v), scale(f, inverse), -1)
        if deadline is not None:
            deadline.spend(PER_TERM / 2 * sum(map(len, [*left, *forms.values()])))
        left = [g for g in (substitute(g, v, form) for g in left) if g]
        forms = {w: substitute(g, v, form) for w, g in forms.items()}
        forms[v] = form
