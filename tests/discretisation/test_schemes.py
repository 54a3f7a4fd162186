"""Orders of convergence, published coefficients, and the polynomials between mesh points."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy.sparse import csc_array, diags_array, vstack
from scipy.sparse.linalg import spsolve

from odefit import InputError
from odefit.common.arrays import Array
from odefit.discretisation.schemes import (
    SCHEMES,
    AdamsMoulton,
    Collocation,
    Euler,
    RungeKutta,
    Scheme,
    Simpson,
    StartUp,
    Trapezoid,
)

Slope = Callable[[Array, Array], Array]
Mesher = Callable[[int], Array]

COLLOCATION = [Collocation(k, kind) for kind in ("radau", "legendre") for k in (1, 2, 3, 4)]
ALL: list[Scheme] = [
    Euler(),
    Trapezoid(),
    AdamsMoulton(),
    AdamsMoulton("block"),
    Simpson(),
    Simpson("block"),
    RungeKutta(),
    *COLLOCATION,
]
END = 5.0


def named(scheme: Scheme) -> str:
    start = getattr(scheme, "start", "")
    return f"{scheme.name} {start}".strip()


def uniform(steps: int) -> Array:
    return np.linspace(0.0, END, steps + 1)


def smooth(steps: int) -> Array:
    """Steps that change gradually, 1 : 5 between the smallest and the largest."""
    s = np.linspace(0.0, 1.0, steps + 1)
    return np.asarray(END * (s + np.sin(2 * np.pi * s) / 9))


def rough(steps: int) -> Array:
    """Steps that change abruptly all the time."""
    steps_of = np.resize([1.0, 2.0, 1.5, 0.7], steps)
    return np.append(0.0, END * np.cumsum(steps_of) / steps_of.sum())


def solved(
    scheme: Scheme, mesh: Array, f: Slope, df: Slope, first: Array, guess: Callable[[Array], Array]
) -> Array:
    """The scheme's values at all its points, by Newton's method; `first` are known ones."""
    relations = scheme.relations(mesh)
    t, k = relations.times, len(first)
    A, B = relations.states[k - 1 :], relations.rhs[k - 1 :]
    fixed = diags_array(np.ones(k), shape=(k, len(t)))
    x = guess(t)
    for _ in range(20):
        residual = np.concatenate([x[:k] - first, A @ x - B @ f(t, x)])
        jacobian = vstack([fixed, A - B @ diags_array(df(t, x))])
        step = spsolve(csc_array(jacobian), residual)
        x = x - step
        if np.abs(step).max() < 1e-14 * np.abs(x).max():
            break
    return np.asarray(x)


def curve(t: Array) -> Array:
    """Gompertz's curve, a solution of x' = -x log(x)."""
    return np.asarray(np.exp(-4 * np.exp(-t)))


def gompertz(_: Array, x: Array) -> Array:
    return np.asarray(-x * np.log(x))


def gompertz_slope(_: Array, x: Array) -> Array:
    return np.asarray(-1 - np.log(x))


def error(scheme: Scheme, mesh: Array, known: int = 1) -> float:
    """Largest error at mesh points, of x' = -x log(x); the first `known` values are exact."""
    x = solved(
        scheme,
        mesh,
        gompertz,
        gompertz_slope,
        curve(scheme.relations(mesh).times[:known]),
        curve,
    )
    return float(np.abs(x[scheme.relations(mesh).boundary] - curve(mesh)).max())


def measured(scheme: Scheme, mesher: Mesher, known: int = 1) -> float:
    """Order of convergence, from steps so many that the error is neither large nor rounding."""
    steps = np.array([320, 640, 1280] if scheme.order <= 4 else [24, 32, 40])
    errors = np.array([error(scheme, mesher(n), known) for n in steps])
    assert errors.min() > 1e-12
    return -float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize("mesher", [uniform, smooth, rough])
@pytest.mark.parametrize("scheme", [s for s in ALL if s.name != "Simpson"], ids=named)
def test_a_scheme_converges_at_its_order(scheme: Scheme, mesher: Mesher) -> None:
    margin = 0.25 if scheme.order <= 4 else 1.0
    assert measured(scheme, mesher) == pytest.approx(scheme.order, abs=margin)


ORDERS: dict[tuple[str, Mesher], tuple[int, int]] = {
    # start-up and mesh: Adams-Moulton, Simpson
    ("trapezoid", uniform): (3, 3),
    ("trapezoid", smooth): (3, 3),
    ("trapezoid", rough): (3, 3),
    ("block", uniform): (4, 4),
    ("block", smooth): (4, 4),
    ("block", rough): (4, 3),
    ("exact", uniform): (4, 4),
    ("exact", smooth): (4, 4),
    ("exact", rough): (4, 3),
}


@pytest.mark.parametrize(("start", "mesher"), ORDERS)
def test_a_multistep_method_is_of_fourth_order_unless_the_trapezoid_starts_it(
    start: str, mesher: Mesher
) -> None:
    """The start-up's errors of third order stay; Simpson's fourth order needs even steps too."""
    block: StartUp = "block" if start == "block" else "trapezoid"
    adams, simpson = ORDERS[start, mesher]
    three, two = (3, 2) if start == "exact" else (1, 1)
    assert measured(AdamsMoulton(block), mesher, three) == pytest.approx(adams, abs=0.25)
    assert measured(Simpson(block), mesher, two) == pytest.approx(simpson, abs=0.25)


# Coefficients -----------------------------------------------------------------------------------


def rows(scheme: Scheme, steps: int) -> tuple[Array, Array]:
    """A and B with unit steps."""
    relations = scheme.relations(np.arange(steps + 1.0))
    return relations.states.toarray(), relations.rhs.toarray()


def test_one_step_methods_have_the_published_coefficients() -> None:
    for scheme, weights in ((Euler(), [1, 0]), (Trapezoid(), [0.5, 0.5])):
        A, B = rows(scheme, 3)
        for k in range(3):
            assert A[k, k : k + 2].tolist() == [-1, 1]
            assert B[k, k : k + 2] == pytest.approx(weights)
        assert np.count_nonzero(A) == 6


def test_adams_moulton_has_the_published_coefficients() -> None:
    A, B = rows(AdamsMoulton(), 6)
    for k in range(2, 6):
        assert np.flatnonzero(A[k]).tolist() == [k, k + 1]
        expected = np.zeros(7)
        expected[k - 2 : k + 2] = np.array([1, -5, 19, 9]) / 24
        assert B[k] == pytest.approx(expected)
    assert B[:2, :3] == pytest.approx(np.array([[0.5, 0.5, 0], [0, 0.5, 0.5]]))


def test_the_block_start_of_adams_moulton_has_the_published_coefficients() -> None:
    _, B = rows(AdamsMoulton("block"), 6)
    expected = np.array([[9, 19, -5, 1], [-1, 13, 13, -1], [1, -5, 19, 9]]) / 24
    assert B[:3, :4] == pytest.approx(expected)


def test_simpson_has_the_published_coefficients() -> None:
    A, B = rows(Simpson(), 5)
    for k in range(1, 5):
        assert A[k, [k - 1, k + 1]].tolist() == [-1, 1]
        expected = np.zeros(6)
        expected[k - 1 : k + 2] = np.array([1, 4, 1]) / 3
        assert B[k] == pytest.approx(expected)
    assert B[0, :3] == pytest.approx([0.5, 0.5, 0])
    _, B = rows(Simpson("block"), 5)
    assert B[0, :3] == pytest.approx(np.array([5, 8, -1]) / 12)


def butcher(scheme: Scheme) -> Array:
    """Weights of the right-hand sides at all points of a unit step in the values there."""
    A, B = rows(scheme, 1)
    inverse = np.linalg.inv(A[:, 1:])
    assert inverse @ A[:, 0] == pytest.approx(-np.ones(len(A)))
    return np.asarray(inverse @ B)


def test_runge_kutta_has_the_classical_table() -> None:
    expected = [[1 / 2, 0, 0, 0, 0], [0, 1 / 2, 0, 0, 0], [0, 0, 1, 0, 0]]
    expected.append([1 / 6, 1 / 3, 1 / 3, 1 / 6, 0])
    assert butcher(RungeKutta()) == pytest.approx(np.array(expected))
    times = RungeKutta().relations(np.array([1.0, 3.0])).times
    assert times.tolist() == [1, 2, 2, 3, 3]


R6, R3, R15 = sqrt(6), sqrt(3), sqrt(15)

RADAU: dict[int, tuple[list[float], list[list[float]]]] = {
    1: ([1], [[1]]),
    2: ([1 / 3, 1], [[5 / 12, -1 / 12], [3 / 4, 1 / 4]]),
    3: (
        [(4 - R6) / 10, (4 + R6) / 10, 1],
        [
            [(88 - 7 * R6) / 360, (296 - 169 * R6) / 1800, (-2 + 3 * R6) / 225],
            [(296 + 169 * R6) / 1800, (88 + 7 * R6) / 360, (-2 - 3 * R6) / 225],
            [(16 - R6) / 36, (16 + R6) / 36, 1 / 9],
        ],
    ),
}
"""Radau IIA, table 5.6 of Hairer and Wanner, Solving Ordinary Differential Equations II."""

GAUSS: dict[int, tuple[list[float], list[list[float]], list[float]]] = {
    1: ([1 / 2], [[1 / 2]], [1]),
    2: (
        [1 / 2 - R3 / 6, 1 / 2 + R3 / 6],
        [[1 / 4, 1 / 4 - R3 / 6], [1 / 4 + R3 / 6, 1 / 4]],
        [1 / 2, 1 / 2],
    ),
    3: (
        [1 / 2 - R15 / 10, 1 / 2, 1 / 2 + R15 / 10],
        [
            [5 / 36, 2 / 9 - R15 / 15, 5 / 36 - R15 / 30],
            [5 / 36 + R15 / 24, 2 / 9, 5 / 36 - R15 / 24],
            [5 / 36 + R15 / 30, 2 / 9 + R15 / 15, 5 / 36],
        ],
        [5 / 18, 4 / 9, 5 / 18],
    ),
}
"""Tables 5.1 and 5.2 there."""


@pytest.mark.parametrize("points", RADAU)
def test_radau_collocation_is_radau_iia(points: int) -> None:
    scheme, (c, table) = Collocation(points), RADAU[points]
    assert scheme.nodes == pytest.approx(c, rel=1e-14)
    assert butcher(scheme)[:, 1:] == pytest.approx(np.array(table), rel=1e-13)
    assert not butcher(scheme)[:, 0].any()


@pytest.mark.parametrize("points", GAUSS)
def test_legendre_collocation_is_gauss(points: int) -> None:
    scheme, (c, table, b) = Collocation(points, "legendre"), GAUSS[points]
    assert scheme.nodes == pytest.approx(c, rel=1e-14)
    found = butcher(scheme)
    assert found[:-1, 1:-1] == pytest.approx(np.array(table), rel=1e-12)
    assert found[-1, 1:-1] == pytest.approx(b, rel=1e-12)
    assert found[:, [0, -1]] == pytest.approx(np.zeros((points + 1, 2)), abs=1e-14)


# Polynomials ------------------------------------------------------------------------------------


def degree(scheme: Scheme) -> int:
    """Of the polynomials between mesh points."""
    if isinstance(scheme, Collocation):
        return scheme.points
    if isinstance(scheme, RungeKutta | Simpson):
        return 3
    if isinstance(scheme, AdamsMoulton):
        return 4 if scheme.start == "block" else 2  # of all windows
    return scheme.order


SIZES = st.floats(0.1, 3.0)
MESHES = st.lists(SIZES, min_size=4, max_size=9).map(lambda h: np.cumsum([-1.0, *h]))
COEFFICIENTS = st.lists(st.floats(-2, 2), min_size=5, max_size=5)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ALL, ids=named)
@settings(deadline=None, max_examples=25)
@given(mesh=MESHES, coefficients=COEFFICIENTS, places=st.lists(st.floats(0, 1), min_size=1))
def test_polynomials_of_the_schemes_degree_are_reproduced_with_their_derivatives(
    scheme: Scheme, mesh: Array, coefficients: list[float], places: list[float]
) -> None:
    p = Polynomial(coefficients[: degree(scheme) + 1])
    relations = scheme.relations(mesh)
    x, f = p(relations.times), p.deriv()(relations.times)
    at = np.sort(mesh[0] + np.array(places) * (mesh[-1] - mesh[0]))
    size = 1 + np.abs(coefficients).sum() * max(1.0, np.abs(mesh).max()) ** degree(scheme)
    for derivative, q in ((False, p), (True, p.deriv())):
        states, rhs = scheme.interpolation(mesh, relations, at, derivative)
        assert states.shape == rhs.shape == (len(at), len(relations.times))
        assert states @ x + rhs @ f == pytest.approx(q(at), abs=1e-11 * size)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [s for s in ALL if s.name != "Runge-Kutta"], ids=named)
@settings(deadline=None, max_examples=25)
@given(mesh=MESHES, coefficients=COEFFICIENTS)
def test_polynomials_of_the_schemes_degree_satisfy_its_equations(
    scheme: Scheme, mesh: Array, coefficients: list[float]
) -> None:
    simple = isinstance(scheme, Simpson) and scheme.start == "trapezoid"
    p = Polynomial(coefficients[: (2 if simple else degree(scheme)) + 1])
    relations = scheme.relations(mesh)
    x, f = p(relations.times), p.deriv()(relations.times)
    size = 1 + np.abs(coefficients).sum() * max(1.0, np.abs(mesh).max()) ** degree(scheme)
    defects = relations.states @ x - relations.rhs @ f
    assert defects == pytest.approx(np.zeros(len(defects)), abs=1e-11 * size)
    assert len(defects) == len(relations.times) - 1


@pytest.mark.parametrize("mesher", [uniform, rough])
@pytest.mark.parametrize("scheme", ALL, ids=named)
def test_the_polynomials_of_a_solution_meet_at_mesh_points(scheme: Scheme, mesher: Mesher) -> None:
    mesh = mesher(12)
    relations = scheme.relations(mesh)
    t, first = relations.times, curve(relations.times[:1])
    x = solved(scheme, mesh, gompertz, gompertz_slope, first, curve)
    f = gompertz(t, x)
    for at in (mesh, np.nextafter(mesh[1:], -np.inf)):
        states, rhs = scheme.interpolation(mesh, relations, at)
        expected = x[relations.boundary][-len(at) :]
        assert states @ x + rhs @ f == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scheme", ALL, ids=named)
def test_values_between_mesh_points_converge(scheme: Scheme) -> None:
    """At the order of the scheme, or of its polynomial if that is lower."""
    errors = []
    for steps in (24, 48) if scheme.order > 4 else (160, 320):
        mesh = uniform(steps)
        relations = scheme.relations(mesh)
        x = solved(scheme, mesh, gompertz, gompertz_slope, curve(relations.times[:1]), curve)
        at = mesh[:-1] + 0.37 * np.diff(mesh)
        states, rhs = scheme.interpolation(mesh, relations, at)
        found = states @ x + rhs @ gompertz(relations.times, x)
        errors.append(np.abs(found - curve(at)).max())
    least = min(scheme.order, degree(scheme) + 1)
    assert np.log2(errors[0] / errors[1]) > least - 0.25


# Stiffness --------------------------------------------------------------------------------------


def decay(scheme: Scheme, rate: float, steps: int = 10) -> Array:
    """x' = -rate x from 1, at mesh points a tenth apart."""
    mesh = np.linspace(0.0, steps / 10, steps + 1)
    relations = scheme.relations(mesh)
    A = (relations.states + rate * relations.rhs).toarray()
    x = np.linalg.solve(A[:, 1:], -A[:, 0])
    return np.append(1.0, x)[relations.boundary]


@pytest.mark.parametrize("points", [1, 2, 3, 4])
def test_radau_collocation_damps_what_is_infinitely_fast(points: int) -> None:
    x = np.abs(decay(Collocation(points), 1e6))
    assert x[1] < 1e-4
    assert x[2] < 1e-8


@pytest.mark.parametrize(
    "scheme", [Trapezoid(), *(Collocation(k, "legendre") for k in (1, 2, 3, 4))], ids=named
)
def test_the_trapezoid_and_legendre_collocation_stay_bounded_without_damping(
    scheme: Scheme,
) -> None:
    x = np.abs(decay(scheme, 1e6))
    assert (x <= 1 + 1e-9).all()
    assert x[-1] > 0.98


def test_the_trapezoid_changes_sign_at_every_step_where_it_is_too_long() -> None:
    x = decay(Trapezoid(), 1e6)
    assert (x[1:] * x[:-1] < 0).all()


@pytest.mark.parametrize("scheme", [Euler(), RungeKutta(), AdamsMoulton(), Simpson()], ids=named)
def test_explicit_schemes_explode_if_steps_are_too_long(scheme: Scheme) -> None:
    assert abs(decay(scheme, 1e6)[-1]) > 10


# Use --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "kind", "message"),
    [
        (0, "radau", "whole number of at least 1"),
        (2.5, "radau", "whole number"),
        (True, "legendre", "whole number"),
        (3, "lobatto", '"radau" or "legendre"'),
    ],
)
def test_collocation_that_does_not_exist_is_refused(points: int, kind: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Collocation(points, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("scheme", [AdamsMoulton, Simpson])
def test_a_start_that_does_not_exist_is_refused(scheme: type[AdamsMoulton | Simpson]) -> None:
    with pytest.raises(InputError, match='start is "trapezoid" or "block", got \'euler\''):
        scheme("euler")  # type: ignore[arg-type]


def test_every_scheme_has_a_unique_name() -> None:
    assert len({s.name for s in SCHEMES.values()}) == len(SCHEMES) == 7
