"""Linear ODEs by powers of maps: against the exponential with 40 digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, affine_maps
from odefit.enclosure.affine_maps import LinearODE, _common_step, _eigenvectors
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.system import System
from tests.enclosure.containment import at, directions, vectors

Rates = Callable[[Array], tuple[list[list[float]], list[float]]]


def exchange() -> tuple[Problem, Array, Rates]:
    """Fast for the times between measurements, whose ratios are no small numbers."""
    times = np.array([0.0, 0.1, 0.3, 1.7, 1000.3])
    problem = Problem(
        Model(ode={"a": "-k*a + m*b - e*a", "b": "k*a - m*b", "out": "e*a"}),
        {"t": times, "a": np.ones(5), "b": np.zeros(5), "out": np.ones(5)},
        {"k": {}, "m": {}, "e": {}},
        {"a": 1.0, "b": 0.5, "out": 0.0},
    )

    def rates(p: Array) -> tuple[list[list[float]], list[float]]:
        k, m, e = p.tolist()
        return [[-k - e, m, 0], [k, -m, 0], [e, 0, 0]], [0, 0, 0]

    return problem, np.array([30.0, 17.0, 0.01]), rates


def swing() -> tuple[Problem, Array, Rates]:
    """Complex eigenvalues, and a constant force."""
    times = np.array([0.0, 1.0, 7.0, 40.0])
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x - c*v + g"}),
        {"t": times, "x": np.ones(4), "v": np.zeros(4)},
        {"k": {}, "c": {}, "g": {}},
        {"x": 1.0, "v": 0.0},
    )

    def rates(p: Array) -> tuple[list[list[float]], list[float]]:
        k, c, g = p.tolist()
        return [[0, 1], [-k, -c]], [0, g]

    return problem, np.array([2.0, 0.05, 0.5]), rates


def exact(problem: Problem, rates: Rates, point: Array) -> Array:
    """Residuals, series by series."""
    matrix, constant = rates(point)
    n = len(constant)
    condition = problem.conditions[0]
    start = [condition.initial[s] for s in problem.model.states]
    with mp.workdps(40):
        whole = mp.matrix(n + 1, n + 1)
        for i in range(n):
            for j in range(n):
                whole[i, j] = mp.mpf(matrix[i][j])
            whole[i, n] = mp.mpf(constant[i])
        begin = mp.matrix([mp.mpf(float(str(x))) for x in start] + [1])
        rows = [mp.expm(whole * mp.mpf(float(t)), method="taylor") * begin for t in condition.times]
    found = []
    for i, name in enumerate(problem.model.states):
        series = condition.series[name]
        found += [
            float(rows[r][i]) - v for r, v in zip(series.rows, series.values.tolist(), strict=True)
        ]
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("build", [exchange, swing])
def test_solutions_lie_in_the_enclosures(
    monkeypatch: pytest.MonkeyPatch,
    build: Callable[[], tuple[Problem, Array, Rates]],
    degree: int,
) -> None:
    monkeypatch.setattr(affine_maps, "STIFF_RATE", 0.0)
    problem, vector, rates = build()
    enclosure = Enclosure(problem, degree)
    radii = np.array([0.0, 1e-4, 1e-2, 0.2])
    lower = vector - radii[:, None] * vector
    upper = vector + radii[:, None] * vector
    found = enclosure(lower, upper)
    assert np.isfinite(found.remainder[:, :2]).all()
    assert found.remainder[:, 0].max() < 1e-7
    for b in range(len(radii)):
        d = directions(len(vector), 3, b)
        inside = at(enclosure.monomials, d) @ found.c[:, :, b].T
        for point, polynomial in zip(vectors(lower[b], upper[b], d), inside, strict=True):
            true = exact(problem, rates, point)
            assert (np.abs(true - polynomial) <= found.remainder[:, b] + 1e-13).all(), (b, point)


@pytest.mark.slow
def test_the_affine_map_encloses_stiff_rates_that_short_steps_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rates up to one, twenty hours apart: no number of short steps gets there."""
    problem = library.load("alpha-pinene")
    lower = np.array([[5e-5, 2e-5, 0.5, 0.7, 0.9], [5e-5, 2e-5, 2e-5, 2e-4, 4e-5]])
    upper = lower * 1.05
    enclosure = Enclosure(problem)
    fast = enclosure(lower, upper)
    monkeypatch.setattr(affine_maps, "STIFF_RATE", np.inf)
    steps = enclosure(lower, upper)
    assert np.isfinite(fast.remainder).all()
    assert 10 * fast.remainder[:, 0].sum() < steps.remainder[:, 0].sum()
    assert (fast.remainder[:, 1] <= 1.5 * steps.remainder[:, 1]).all()
    apart = np.abs(fast.c[:, 0, 1] - steps.c[:, 0, 1])
    assert (apart <= fast.remainder[:, 1] + steps.remainder[:, 1]).all()


def test_events_of_every_kind_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that jump, and constants that are switched, restart."""
    times = np.array([0.0, 2.0, 3.0, 30.0])
    problem = Problem(
        Model(ode={"a": "-k*a*on", "b": "k*a*on - m*b"}, constants={"on": 1.0}),
        parameters={"k": {}, "m": {}},
        initial={"a": 2.0, "b": 0.0},
        experiments=[
            Experiment(
                "run",
                {"t": times, "a": np.ones(4), "b": np.ones(4)},
                events=[Event((1.2, 2.0), {"a": "a + k"}), Event((3.0,), {"on": "3.0"})],
            )
        ],
    )
    lower, upper = np.array([[3.9, 0.5]]), np.array([[4.1, 0.52]])
    enclosure = Enclosure(problem)
    by_steps = enclosure(lower, upper)
    monkeypatch.setattr(affine_maps, "STIFF_RATE", 0.0)
    found = enclosure(lower, upper)
    assert found.remainder.max() < 1e-3
    apart = np.abs(found.c[:, 0] - by_steps.c[:, 0])
    assert (apart <= found.remainder + by_steps.remainder).all()


@pytest.mark.slow
def test_one_box_does_not_depend_on_the_others() -> None:
    """But for the length of the steps, which the fastest box decides."""
    problem, vector, _ = exchange()
    lower = np.array([vector, 0.1 * vector, vector]) * 0.99
    upper = np.array([vector, 0.1 * vector, vector]) * 1.01
    upper[2, 0] = np.inf
    together, alone = Enclosure(problem)(lower, upper), Enclosure(problem)(lower[:1], upper[:1])
    np.testing.assert_array_equal(together.c[:, :, 0], alone.c[:, :, 0])
    assert np.isinf(together.remainder[:, 2]).any()
    assert np.isfinite(together.remainder[:, :2]).all()


def test_nonlinear_or_time_dependent_equations_have_no_affine_map() -> None:
    for ode, states in (({"x": "-k*x^2"}, 1), ({"x": "-k*x*t"}, 1), ({"x": "k*t"}, 1)):
        problem = Problem(Model(ode=ode), {"t": [1.0], "x": [1.0]}, {"k": {}}, {"x": 1.0}, t0=1.0)
        system = System(problem, problem.conditions[0])
        monomials = Monomials.of(states, 1)
        found = LinearODE.of(system, system.modes[0], monomials, [Fraction(1)])
        assert found is None


def test_a_common_step_divides_all_steps() -> None:
    assert _common_step([Fraction(1230), Fraction(1830), Fraction(3600)]) == 30
    odd = [Fraction(0.1), Fraction(0.3) - Fraction(0.1)]
    assert _common_step(odd) == min(odd)


def test_bases_are_eigenvectors_or_the_identity() -> None:
    """Also where there are no good eigenvectors."""
    rng = np.random.default_rng(5)
    matrices = rng.normal(size=(40, 3, 3))
    matrices[0] = [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    matrices[1] = np.nan
    found = _eigenvectors(matrices)
    assert (found[:2] == np.eye(3)).all()
    for matrix, basis in zip(matrices[2:], found[2:], strict=True):
        inner = np.linalg.solve(basis, matrix @ basis)
        values = np.linalg.eigvals(matrix)
        # Real eigenvalues stand on the diagonal, alone.
        for value in values[np.imag(values) == 0].real:
            k = int(np.argmin(np.abs(np.diag(inner) - value)))
            others = np.delete(inner[:, k], k)
            assert np.abs(others).max() < 1e-8 * np.linalg.cond(basis)
