"""Many equal steps at once: what they lead to is inside, and as tight as step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.discretisation.mesh import GivenMesh, Mesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.enclosure.discretised import segment_enclosure
from odefit.enclosure.discretised.residuals import DiscretisedEnclosure
from tests.enclosure.containment import at, directions, vectors

ONE_STEP = ["euler", "trapezoid", "runge-kutta", "radau", "legendre"]

Rates = Callable[[Array], tuple[Array, Array]]
"""Matrix and constant part, from the unknowns."""


def pinene() -> tuple[Problem, Array, Rates]:
    problem = library.load("alpha-pinene")

    def rates(p: Array) -> tuple[Array, Array]:
        a, b, c, d, e = p
        return np.array(
            [
                [-a - b, 0, 0, 0, 0],
                [a, 0, 0, 0, 0],
                [b, 0, -c - d, 0, e],
                [0, 0, c, 0, 0],
                [0, 0, d, 0, -e],
            ]
        ), np.zeros(5)

    return problem, np.array([5.9e-5, 2.9e-5, 2e-5, 2.7e-4, 4e-5]), rates


def swing() -> tuple[Problem, Array, Rates]:
    """Damped, with a constant force: a pair of complex eigenvalues, and a fixed point."""
    times = np.array([0.0, 1.0, 2.5, 4.0, 7.0, 10.0])
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x - c*v + g", "far": "x - far"}, observables={"y": "far"}),
        {"t": times, "y": np.cos(times)},
        {"k": {}, "c": {}, "g": {}},
        {"x": 1.0, "v": 0.0, "far": 0.5},
    )

    def rates(p: Array) -> tuple[Array, Array]:
        k, c, g = p
        return np.array([[0, 1, 0], [-k, -c, 0], [1, 0, -1.0]]), np.array([0, g, 0])

    return problem, np.array([2.0, 0.1, 0.5]), rates


def stiff() -> tuple[Problem, Array, Rates]:
    """Return a model with an exchange that is fast for the step."""
    times = np.array([0.0, 10.0, 20.0, 50.0])
    problem = Problem(
        Model(ode={"a": "-k*a + m*b - e*a", "b": "k*a - m*b"}),
        {"t": times, "a": np.exp(-times / 30), "b": np.exp(-times / 30)},
        {"k": {}, "m": {}, "e": {}},
        {"a": 1.0, "b": 0.0},
    )

    def rates(p: Array) -> tuple[Array, Array]:
        k, m, e = p
        return np.array([[-k - e, m], [k, -m]]), np.zeros(2)

    return problem, np.array([9.0, 7.0, 0.05]), rates


def residuals(problem: Problem, scheme: str, mesh: Array, rates: Rates, point: Array) -> Array:
    """At one point, from powers of the scheme's own step."""
    relations = SCHEMES[scheme].relations(mesh[:2])
    a, b = relations.states.toarray(), relations.rhs.toarray()
    matrix, constant = rates(point)
    n, q = len(constant), len(a)
    left = np.kron(a, np.eye(n)) - np.kron(b, matrix)
    known = np.kron(b.sum(axis=1), constant)
    inverse = np.linalg.inv(left[:, n:])
    step = (-inverse @ left[:, :n])[-n:]
    shift = (inverse @ known)[-n:]
    assert relations.boundary[-1] == q
    start = problem.conditions[0].initial
    x = np.array([start[s] for s in problem.model.states]).astype(float)
    path = [x]
    for _ in range(len(mesh) - 1):
        x = step @ x + shift
        path.append(x)
    condition, names = problem.conditions[0], list(problem.model.states)
    found = []
    for observable, expression in problem.model.observables.items():
        series = condition.series[observable]
        for row, value in zip(series.rows, series.values, strict=True):
            x = path[int(np.argmin(np.abs(mesh - condition.times[row])))]
            found.append(x[names.index(str(expression))] - value)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "scheme", "steps"),
    [(pinene, "trapezoid", 1230)]
    + [(swing, scheme, 100) for scheme in ONE_STEP]
    + [(stiff, scheme, 1000) for scheme in ("euler", "legendre")],
)
def test_solutions_lie_in_the_enclosures(
    build: Callable[[], tuple[Problem, Array, Rates]], scheme: str, steps: int
) -> None:
    problem, vector, rates = build()
    final = 36900.0 if build is pinene else float(problem.conditions[0].times[-1])
    mesh = UniformMesh(steps, final)
    enclosure = DiscretisedEnclosure(problem, SCHEMES[scheme], mesh)
    radii = np.array([0.0, 1e-4, 1e-2, 0.1, 0.5])
    lower = vector - radii[:, None] * vector
    upper = vector + radii[:, None] * vector
    found = enclosure(lower, upper)
    assert np.isfinite(found.remainder[:, :3]).all()
    assert found.remainder[:, 0].max() < 1e-6
    grid = np.linspace(0.0, final, steps + 1)
    for b in range(len(radii)):
        d = directions(len(vector), 6, b)
        inside = at(enclosure.monomials, d) @ found.c[:, :, b].T
        for point, polynomial in zip(vectors(lower[b], upper[b], d), inside, strict=True):
            true = residuals(problem, scheme, grid, rates, point)
            apart = np.abs(true - polynomial)
            assert (apart <= found.remainder[:, b] + 1e-8 * (1 + np.abs(true))).all(), (b, point)


def by_steps(
    monkeypatch: pytest.MonkeyPatch, problem: Problem, scheme: str, mesh: Mesh
) -> DiscretisedEnclosure:
    """Return an enclosure that takes no equal steps together."""
    with monkeypatch.context() as patch:
        patch.setattr(segment_enclosure, "MIN_REPEATS", 10**9)
        return DiscretisedEnclosure(problem, SCHEMES[scheme], mesh)


@pytest.mark.slow
@pytest.mark.parametrize("build", [pinene, swing, stiff])
def test_powers_of_the_map_are_as_tight_as_step_by_step(
    monkeypatch: pytest.MonkeyPatch, build: Callable[[], tuple[Problem, Array, Rates]]
) -> None:
    problem, vector, _ = build()
    mesh = UniformMesh(120)
    steps = by_steps(monkeypatch, problem, "trapezoid", mesh)
    fast = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], mesh)
    lower, upper = vector[None] * 0.98, vector[None] * 1.02
    one, other = steps(lower, upper), fast(lower, upper)
    np.testing.assert_allclose(one.c, other.c, atol=1e-9)
    assert other.remainder.sum() <= 1.5 * one.remainder.sum()


@pytest.mark.slow
def test_events_switch_the_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment has its own steps; what is read off between mesh points is solved for."""
    times = [0.0, 1.0, 1.503, 2.0, 4.0]
    problem = Problem(
        Model(ode={"a": "-k*a*on", "b": "k*a*on - m*b"}, constants={"on": 1.0}),
        parameters={"k": {}, "m": {}},
        initial={"a": 2.0, "b": 0.0},
        experiments=[
            Experiment(
                "run",
                {"t": times, "a": np.ones(5), "b": np.ones(5)},
                events=[Event((1.2,), {"a": "a + k"}), Event((2.0,), {"on": "3.0"})],
            )
        ],
    )
    vector = np.array([0.8, 0.5])
    mesh = UniformMesh(120)
    fast = DiscretisedEnclosure(problem, SCHEMES["legendre"], mesh)
    lower, upper = vector[None] * 0.99, vector[None] * 1.01
    one = by_steps(monkeypatch, problem, "legendre", mesh)(lower, upper)
    other = fast(lower, upper)
    np.testing.assert_allclose(one.c, other.c, atol=1e-9)
    assert other.remainder.max() < 1e-3


def test_steps_of_one_length_are_one_kind() -> None:
    """So all of them are taken together, the first as well."""
    problem, _, _ = stiff()
    name = problem.conditions[0].name
    fine, coarse = np.linspace(0.0, 20.0, 81), np.linspace(20.0, 50.0, 61)
    for grid, kinds in ((np.linspace(0.0, 50.0, 101), 1), (np.append(fine, coarse[1:]), 2)):
        mesh = GivenMesh({name: grid})
        enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], mesh)
        (segment,) = enclosure._conditions[0]._segments
        assert segment.repeated_steps is not None
        assert len(segment.repeated_steps.different) == kinds
        assert min(segment.repeated_steps.sequences) == 0


@pytest.mark.slow
def test_unequal_steps_are_not_taken_together() -> None:
    problem, vector, _ = stiff()
    grid = np.linspace(0.0, 50.0, 101)
    grid[1:-1] += 1e-6 * np.sin(np.arange(99))
    name = problem.conditions[0].name
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], GivenMesh({name: grid}))
    (segment,) = enclosure._conditions[0]._segments
    assert segment.repeated_steps is not None
    assert not segment.repeated_steps.sequences
    assert np.isfinite(enclosure(vector[None], vector[None]).remainder).all()


@pytest.mark.slow
def test_the_difference_of_almost_equal_steps_is_accounted_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps that differ by 1e-4, taken as equal: the true solution has to stay inside."""
    problem, vector, rates = stiff()
    monkeypatch.setattr(segment_enclosure, "EQUALITY_TOLERANCE", 1e-3)
    grid = np.linspace(0.0, 50.0, 301)
    grid[1:-1] += 1e-5 * np.sin(np.arange(299))
    grid[[60, 120]] = [10.0, 20.0]
    name = problem.conditions[0].name
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], GivenMesh({name: grid}))
    assert enclosure._conditions[0]._segments[0].repeated_steps.sequences  # type: ignore[union-attr]
    found = enclosure(vector[None], vector[None])
    x, matrix = np.array([1.0, 0.0]), rates(vector)[0]
    path = [x]
    for h in np.diff(grid):
        x = np.linalg.solve(np.eye(2) - h / 2 * matrix, (np.eye(2) + h / 2 * matrix) @ x)
        path.append(x)
    series = problem.conditions[0].series
    at_data = np.array(path)[[0, 60, 120, 300]]
    true = np.concatenate([at_data[:, i] - series[s].values for i, s in enumerate("ab")])
    assert (np.abs(true - found.c[:, 0, 0]) <= found.remainder[:, 0]).all()
    assert found.remainder.max() > 1e-6  # not for nothing


@pytest.mark.slow
def test_lost_boxes_do_not_affect_the_others() -> None:
    problem, vector, _ = pinene()
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], UniformMesh(1230))
    lower = np.vstack([vector * 0.99, np.zeros(5)])
    upper = np.vstack([vector * 1.01, np.ones(5)])
    together, alone = enclosure(lower, upper), enclosure(lower[:1], upper[:1])
    np.testing.assert_array_equal(together.c[:, :, 0], alone.c[:, :, 0])
    np.testing.assert_allclose(together.remainder[:, 0], alone.remainder[:, 0], rtol=1e-12)
    assert not np.isfinite(together.remainder[:, 1]).all()
