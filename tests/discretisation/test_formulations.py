"""Strict, relaxed and penalised equations: constraints, and what their optima have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from odefit import ForwardMap, InputError, Model, Problem
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Trapezoid
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Outcome
from tests.methods.transcription.exact import exact_values

DYNAMIC = np.array([False, True, True, False, True])


def noisy() -> Problem:
    """x' = -k x^2 with errors that no k explains."""
    times = np.linspace(0.0, 3.0, 7)
    errors = 0.1 * np.array([1, -1, 2, -1, 0, 1, -2])
    return Problem(
        Model(ode={"x": "-k*x^2"}),
        {"t": times, "x": 2 / (1 + 2 * 0.6 * times) + errors},
        {"k": {"lower": 0.01, "upper": 5.0}},
        {"x": 2.0},
    )


def optimum(formulation: Formulation) -> tuple[Discretisation, Answer]:
    problem = noisy()
    d = Discretisation(problem, Trapezoid(), UniformMesh(12))
    start = np.array([1.0])
    values = exact_values(d, ForwardMap(problem), start)
    found = Ipopt(1e-10).solve(Instance(d, formulation, values, start), Limits(20.0))
    assert found.outcome is Outcome.SOLVED, found.message
    assert found.success
    return d, found


def violation(d: Discretisation, found: Answer) -> float:
    """Sum of the absolute defects of the dynamics."""
    assert found.values is not None
    assert found.unknowns is not None
    return float(np.abs(d.defects(found.values, found.unknowns)[d.rows.dynamic]).sum())


# Constraints ------------------------------------------------------------------------------------


def test_the_baseline_has_equalities() -> None:
    c = Baseline().constraints(DYNAMIC)
    assert c.rows.tolist() == [0, 1, 2, 3, 4]
    assert not c.lower.any()
    assert not c.upper.any()
    assert c.slacks == 0


def test_a_tolerance_widens_the_dynamics_only() -> None:
    c = ExtraTol(0.5).constraints(DYNAMIC)
    assert c.upper.tolist() == [0, 0.5, 0.5, 0, 0.5]
    assert c.lower.tolist() == [0, -0.5, -0.5, 0, -0.5]


def test_soft_constraints_hold_for_a_row_where_the_slack_is_at_least_its_size() -> None:
    c = SoftCons(3.0).constraints(DYNAMIC)
    assert (c.slacks, c.penalty) == (3, 3.0)
    rows = np.array([0.0, 0.2, -0.3, 0.0, 0.0])

    def feasible(slacks: list[float]) -> bool:
        own = np.append(np.array(slacks), 0.0)[c.slack]
        body = rows[c.rows] + c.sign * own
        return bool(((c.lower <= body) & (body <= c.upper)).all())

    assert feasible([0.2, 0.3, 0.0])
    assert feasible([1.0, 1.0, 1.0])
    assert not feasible([0.19, 0.3, 0.0])
    assert not feasible([0.2, 0.29, 0.0])
    rows[0] = 1e-3  # not dynamic: no slack helps
    assert not feasible([1.0, 1.0, 1.0])


# Optima -----------------------------------------------------------------------------------------


def test_the_optimum_with_a_tolerance_rises_to_the_baseline_s_as_it_vanishes() -> None:
    d, strict = optimum(Baseline())
    assert strict.objective > 0.05
    assert violation(d, strict) < 1e-8
    tolerances = [1e-1, 1e-2, 1e-3, 1e-4, 1e-6]
    objectives = [optimum(ExtraTol(eps))[1].objective for eps in tolerances]
    assert (np.diff([*objectives, strict.objective]) > -1e-9).all()
    gaps = strict.objective - np.array(objectives)
    # The multipliers times the tolerance: the gap is linear in it.
    assert gaps[2] / gaps[3] == pytest.approx(10, rel=0.05)
    assert gaps[4] < 1e-4 * strict.objective


def test_a_tolerance_of_zero_is_the_baseline() -> None:
    _, strict = optimum(Baseline())
    _, found = optimum(ExtraTol(0.0))
    assert found.unknowns == pytest.approx(strict.unknowns, rel=1e-7)


def test_a_wide_tolerance_is_used_to_its_limit_and_never_beyond() -> None:
    d, found = optimum(ExtraTol(1e-2))
    assert found.values is not None
    assert found.unknowns is not None
    defects = d.defects(found.values, found.unknowns)
    assert np.abs(defects[d.rows.dynamic]).max() == pytest.approx(1e-2, rel=1e-5)
    assert np.abs(defects[np.logical_not(d.rows.dynamic)]).max(initial=0.0) < 1e-9


def test_the_penalty_is_exact_above_a_threshold() -> None:
    """Above the largest multiplier, the optimum is the baseline's and all slacks are zero."""
    _, strict = optimum(Baseline())
    for penalty in (1e2, 1e4):
        d, found = optimum(SoftCons(penalty))
        assert violation(d, found) < 1e-6
        assert found.unknowns == pytest.approx(strict.unknowns, rel=1e-6)
        assert found.objective == pytest.approx(strict.objective, rel=1e-6)


def test_below_the_threshold_the_penalised_objective_rises_with_the_penalty() -> None:
    _, strict = optimum(Baseline())
    totals, violations = [], []
    for penalty in (1e-3, 1e-2, 1e-1, 1.0):
        d, found = optimum(SoftCons(penalty))
        violations.append(violation(d, found))
        totals.append(found.objective + penalty * violations[-1])
    assert violations[0] > 1e-2
    assert (np.diff([*totals, strict.objective]) > -1e-7).all()
    assert (np.diff(violations) < 1e-7).all()


# Use --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExtraTol(-1e-9), "ExtraTol, eps: expected a number of at least 0, got -1e-09"),
        (lambda: ExtraTol(float("inf")), "ExtraTol, eps: expected a number of at least 0, got inf"),
        (lambda: ExtraTol(float("nan")), "of at least 0, got nan"),
        (lambda: SoftCons(0.0), "SoftCons, penalty: expected a number above 0, got 0.0"),
        (lambda: SoftCons(-1.0), "above 0, got -1.0"),
        (lambda: SoftCons(float("inf")), "above 0, got inf"),
    ],
)
def test_an_invalid_tolerance_or_penalty_is_refused(
    make: Callable[[], Formulation], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_formulation_is_named_with_its_number() -> None:
    names = [f.name for f in (Baseline(), ExtraTol(1e-4), SoftCons(1e5))]
    assert names == ["Baseline", "ExtraTol(0.0001)", "SoftCons(100000)"]
