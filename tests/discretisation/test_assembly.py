"""The constraints written out one by one, against the discretisation and its formulation."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import SoftCons
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Trapezoid
from odefit.expressions.algebras import NUMPY
from tests.simulation.zoo import ZOO

PENALTY = 3.0


def soft() -> tuple[Assembly, Array, Array]:
    """A discretisation, and values at its points that are on no trajectory."""
    problem, vector = ZOO["fixed values"]()
    d = Discretisation(problem, Trapezoid(), UniformMesh(6))
    values = np.random.default_rng(0).uniform(0.5, 1.5, (d.points, len(d.variables)))
    return assemble(d, SoftCons(PENALTY)), values, vector


def worst_violation(assembly: Assembly, w: Array) -> float:
    """How far the constraint that is violated most is from its bounds."""
    outputs = [
        np.ravel(assembly.evaluated(b, w.tolist(), NUMPY)) for b in assembly.discretisation.blocks
    ]
    worst = -np.inf
    for lower, upper, terms in assembly.rows():
        body = sum(float(x[i] @ c) for x, (i, c) in zip([w, *outputs], terms, strict=True))
        worst = max(worst, lower - body, body - upper)
    return worst


def test_packed_slack_variables_are_the_least_that_hold_the_constraints() -> None:
    assembly, values, vector = soft()
    w = assembly.pack(values, vector)
    slacks = slice(assembly.size - assembly.constraints.slacks, None)
    assert (w[slacks] > 1e-3).all()
    assert worst_violation(assembly, w) < 1e-12
    for k in range(assembly.size)[slacks]:
        less = w.copy()
        less[k] -= 1e-3
        assert worst_violation(assembly, less) == pytest.approx(1e-3)


def test_the_terms_of_the_objective_are_that_of_the_discretisation_and_the_penalties() -> None:
    assembly, values, vector = soft()
    d = assembly.discretisation
    defects = d.defects(values, vector)[d.rows.dynamic]
    expected = d.objective(values, vector) + PENALTY * np.abs(defects).sum()
    terms = assembly.objective_terms(assembly.pack(values, vector).tolist(), NUMPY)
    assert sum(terms) == pytest.approx(expected)
