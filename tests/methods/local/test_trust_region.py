"""The bounded trust-region iteration, on problems whose answers are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from odefit.methods.local import trust_region
from odefit.methods.local.quadratic_models import GaussNewtonModel, Region
from odefit.methods.local.stopping import Minimum, Tolerances
from odefit.methods.local.trust_region import SecondOrderPart, minimise, promised_decrease

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    cost: float
    residuals: Array
    jacobian: Array


def squares(residuals: Callable[[Array], Array]) -> Callable[[Array], Point]:
    """Half the sum of squares, with the Jacobian by complex steps."""

    def evaluate(x: Array) -> Point:
        r = np.asarray(residuals(x), dtype=float)
        steps = x[:, None] + 1e-40j * np.eye(len(x))
        columns = [np.imag(residuals(steps[:, k])) / 1e-40 for k in range(len(x))]
        return Point(0.5 * float(r @ r), r, np.column_stack(columns))

    return evaluate


def run(
    residuals: Callable[[Array], Array],
    start: list[float],
    lower: list[float] | None = None,
    upper: list[float] | None = None,
    evaluations: int = 300,
    floor: float = 0.0,
    patience: int = 60,
) -> Minimum:
    n = len(start)
    return minimise(
        squares(residuals),
        np.array(start, dtype=float),
        np.array(lower if lower is not None else [-math.inf] * n, dtype=float),
        np.array(upper if upper is not None else [math.inf] * n, dtype=float),
        Tolerances(evaluations=evaluations, floor=floor, patience=patience),
    )


def cost(found: Minimum) -> float:
    assert found.evaluation is not None
    return found.evaluation.cost


class Classic(NamedTuple):
    """A problem of More, Garbow and Hillstrom (1981): residuals, start, sum of squares."""

    residuals: Callable[[Array], Array]
    start: list[float]
    minimum: float


def rosenbrock(x: Array) -> Array:
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def powell_badly_scaled(x: Array) -> Array:
    return np.array([1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])


def brown_badly_scaled(x: Array) -> Array:
    return np.array([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


def beale(x: Array) -> Array:
    return np.array([y - x[0] * (1 - x[1] ** i) for i, y in enumerate((1.5, 2.25, 2.625), 1)])


def jennrich_sampson(x: Array) -> Array:
    i = np.arange(1, 11)
    return np.asarray(2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1])))


def bard(x: Array) -> Array:
    y = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.1, 4.39]
    u = np.arange(1, 16)
    v = 16 - u
    return np.asarray(np.array(y) - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2])))


def box(x: Array) -> Array:
    t = 0.1 * np.arange(1, 11)
    last = x[2] * (np.exp(-t) - np.exp(-10 * t))
    return np.asarray(np.exp(-t * x[0]) - np.exp(-t * x[1]) - last)


def powell_singular(x: Array) -> Array:
    return np.array(
        [
            x[0] + 10 * x[1],
            math.sqrt(5) * (x[2] - x[3]),
            (x[1] - 2 * x[2]) ** 2,
            math.sqrt(10) * (x[0] - x[3]) ** 2,
        ]
    )


def wood(x: Array) -> Array:
    return np.array(
        [
            10 * (x[1] - x[0] ** 2),
            1 - x[0],
            math.sqrt(90) * (x[3] - x[2] ** 2),
            1 - x[2],
            math.sqrt(10) * (x[1] + x[3] - 2),
            (x[1] - x[3]) / math.sqrt(10),
        ]
    )


def kowalik_osborne(x: Array) -> Array:
    y = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
    u = np.array([4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])
    return np.asarray(np.array(y) - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3]))


def brown_dennis(x: Array) -> Array:
    t = np.arange(1, 21) / 5
    first, second = x[0] + t * x[1] - np.exp(t), x[2] + x[3] * np.sin(t) - np.cos(t)
    return np.asarray(first**2 + second**2)


def meyer(x: Array) -> Array:
    y = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744]
    y += [8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]
    t = 45 + 5 * np.arange(1, 17)
    return np.asarray(x[0] * np.exp(x[1] / (t + x[2])) - np.array(y))


CLASSICS = {
    "Rosenbrock": Classic(rosenbrock, [-1.2, 1.0], 0.0),
    "Powell, badly scaled": Classic(powell_badly_scaled, [0.0, 1.0], 0.0),
    "Brown, badly scaled": Classic(brown_badly_scaled, [1.0, 1.0], 0.0),
    "Beale": Classic(beale, [1.0, 1.0], 0.0),
    "Jennrich and Sampson": Classic(jennrich_sampson, [0.3, 0.4], 124.36218),
    "Bard": Classic(bard, [1.0, 1.0, 1.0], 8.2148773e-3),
    "Box": Classic(box, [0.0, 10.0, 20.0], 0.0),
    "Powell, singular": Classic(powell_singular, [3.0, -1.0, 0.0, 1.0], 0.0),
    "Wood": Classic(wood, [-3.0, -1.0, -3.0, -1.0], 0.0),
    "Kowalik and Osborne": Classic(kowalik_osborne, [0.25, 0.39, 0.415, 0.39], 3.0750561e-4),
    "Meyer": Classic(meyer, [0.02, 4000.0, 250.0], 87.9458),
    # Residuals stay large: the Gauss-Newton model leaves out a curvature that dominates.
    "Brown and Dennis": Classic(brown_dennis, [25.0, 5.0, -5.0, -1.0], 85822.202),
}


@pytest.mark.parametrize("name", CLASSICS)
def test_classic_polynomial_systems_are_solved(name: str) -> None:
    problem = CLASSICS[name]
    found = run(problem.residuals, problem.start, evaluations=3000, floor=1e-28, patience=3000)
    assert found.converged, found.message
    assert 2 * cost(found) == pytest.approx(problem.minimum, rel=2e-5, abs=1e-14)


def test_large_residuals_do_not_delay_the_end() -> None:
    """Brown and Dennis: with Gauss-Newton steps alone it stops beside it after 241 evaluations."""
    found = run(brown_dennis, [25.0, 5.0, -5.0, -1.0], evaluations=1000)
    assert found.converged, found.message
    assert found.evaluations < 60
    assert 2 * cost(found) == pytest.approx(85822.2016, rel=1e-8)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ([-2.0, -2.0], [0.5, 2.0], [0.5, 0.25]),
        ([1.5, -2.0], [3.0, 2.0], [1.5, 2.0]),
        # The better of two minima is at x0 = +1.22; the start leads to the other one.
        ([-2.0, 1.5], [2.0, 3.0], [-1.2210262, 1.5]),
        ([-2.0, -2.0], [2.0, -0.5], None),
        ([1.0, 1.0], [1.0, 2.0], [1.0, 1.0]),
    ],
)
def test_bounds_that_are_active_are_kept(
    lower: list[float], upper: list[float], expected: list[float] | None
) -> None:
    start = np.clip([-1.2, 1.0], lower, upper)
    found = run(rosenbrock, start.tolist(), lower, upper)
    assert found.converged
    assert (found.vector >= lower).all()
    assert (found.vector <= upper).all()
    if lower[0] < upper[0]:
        reference = least_squares(rosenbrock, start, bounds=(lower, upper), xtol=1e-14)
        assert cost(found) <= reference.cost * (1 + 1e-6)
    if expected is not None:
        assert found.vector == pytest.approx(expected, rel=1e-4)


def test_a_start_outside_the_bounds_is_moved_inside() -> None:
    found = run(rosenbrock, [50.0, -50.0], [0.0, 0.0], [2.0, 2.0])
    assert found.vector == pytest.approx([1.0, 1.0], rel=1e-6)


def test_an_unknown_between_equal_bounds_stays() -> None:
    found = run(rosenbrock, [0.3, 0.0], [0.3, -9.0], [0.3, 9.0])
    assert found.converged
    assert found.vector == pytest.approx([0.3, 0.09], rel=1e-8)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5))
def test_a_linear_problem_within_bounds_ends_where_scipy_ends(seed: int, n: int) -> None:
    from scipy.optimize import lsq_linear

    random = np.random.default_rng(seed)
    a, b = random.normal(size=(n + 3, n)), random.normal(size=n + 3)
    lower = np.where(random.random(n) < 0.3, -np.inf, random.normal(size=n) - 0.5)
    width = np.where(random.random(n) < 0.3, np.inf, random.exponential(size=n))
    upper = np.where(np.isfinite(lower), np.maximum(lower, -9) + width, random.normal(size=n) + 1)
    start = random.normal(size=n)
    found = minimise(squares(lambda x: a @ x - b), start, lower, upper, Tolerances())
    expected = lsq_linear(a, b, (lower, upper), tol=1e-14)
    assert found.converged
    assert cost(found) == pytest.approx(float(expected.cost), rel=1e-8, abs=1e-12)
    assert found.vector == pytest.approx(expected.x, abs=1e-4)
    assert ((lower <= found.vector) & (found.vector <= upper)).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31))
def test_an_exponential_fit_within_bounds_is_no_worse_than_scipys(seed: int) -> None:
    random = np.random.default_rng(seed)
    t = np.linspace(0, 3, 12)
    true = random.uniform(0.2, 2.0, 3)
    data = true[0] * np.exp(-true[1] * t) + 0.2 * true[2] + 0.05 * random.normal(size=12)
    lower, upper = np.array([0.0, 0.0, -0.1]), random.uniform(0.5, 3.0, 3)

    def residuals(x: Array) -> Array:
        return np.asarray(x[0] * np.exp(-x[1] * t) + x[2] - data)

    start = lower + random.random(3) * (upper - lower)
    patient = Tolerances(evaluations=1000, patience=1000)
    found = minimise(squares(residuals), start, lower, upper, patient)
    reference = least_squares(
        residuals, start, bounds=(lower, upper), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    assert found.converged
    assert cost(found) <= reference.cost * (1 + 1e-6) + 1e-12
    assert ((lower <= found.vector) & (found.vector <= upper)).all()


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e7])
def test_the_units_of_the_unknowns_do_not_matter(unit: float) -> None:
    plain = run(rosenbrock, [-1.2, 1.0])
    scaled = run(lambda x: rosenbrock(np.array([x[0] / unit, x[1]])), [-1.2 * unit, 1.0])
    assert scaled.vector[0] / unit == pytest.approx(plain.vector[0], rel=1e-8)
    assert abs(scaled.evaluations - plain.evaluations) <= 2


def test_searches_avoid_regions_that_cannot_be_evaluated() -> None:
    """log(x) is the model, and the first step would go far into the negative."""
    calls: list[bool] = []

    def evaluate(x: Array) -> Point | None:
        calls.append(bool(x[0] > 0))
        if x[0] <= 0:
            return None
        return Point(
            0.5 * (math.log(x[0])) ** 2, np.array([math.log(x[0])]), np.array([[1 / x[0]]])
        )

    found = minimise(
        evaluate, np.array([30.0]), np.array([-math.inf]), np.array([math.inf]), Tolerances()
    )
    assert not all(calls)
    assert found.converged
    assert found.vector == pytest.approx([1.0], rel=1e-6)


def test_no_large_factorisation_begins_after_the_search_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factorised: list[tuple[int, ...]] = []

    class Watched(GaussNewtonModel):
        def __init__(self, residuals: Array, jacobian: Array, region: Region) -> None:
            factorised.append(jacobian.shape)
            super().__init__(residuals, jacobian, region)

    monkeypatch.setattr(trust_region, "GaussNewtonModel", Watched)
    problem = squares(lambda x: np.array([x[0] - 3.0, x[1] + 1.0]))
    ends = np.full(2, -math.inf), np.full(2, math.inf)
    small = minimise(problem, np.zeros(2), *ends, Tolerances(), lambda: True)
    assert factorised == [(2, 2)]
    monkeypatch.setattr(trust_region, "MAX_LATE_WORK", 7.0)
    large = minimise(problem, np.zeros(2), *ends, Tolerances(), lambda: True)
    assert factorised == [(2, 2)]
    for found in (small, large):
        assert found.message == "the search was stopped"
        assert cost(found) == pytest.approx(5.0)


@pytest.mark.parametrize("slope", [1e200, math.nan])
def test_no_step_exists_if_squares_of_derivatives_overflow(slope: float) -> None:
    """Sensitivities may grow so large although the cost is small."""

    def evaluate(x: Array) -> Point:
        if x[0] <= 0:
            return Point(0.0, np.zeros(2), np.full((2, 2), slope))
        r = np.array([math.log(x[0]), x[1] - 1.0])
        return Point(0.5 * float(r @ r), r, np.diag([1 / x[0], 1.0]))

    bounds = np.full(2, math.inf)
    found = minimise(evaluate, np.array([30.0, 3.0]), -bounds, bounds, Tolerances())
    assert found.converged
    assert found.vector == pytest.approx([1.0, 1.0], rel=1e-6)
    lost = minimise(evaluate, np.array([-1.0, 3.0]), -bounds, bounds, Tolerances())
    assert lost.evaluation is None


def test_a_search_may_end_at_a_border_of_failures() -> None:
    """The minimum would be at 0, but nothing below 1 can be evaluated."""

    def evaluate(x: Array) -> Point | None:
        return Point(0.5 * x[0] ** 2, x.copy(), np.eye(1)) if x[0] >= 1.0 else None

    found = minimise(
        evaluate, np.array([5.0]), np.array([-9.0]), np.array([9.0]), Tolerances(evaluations=500)
    )
    assert found.vector == pytest.approx([1.0], rel=1e-6)


def test_a_start_that_cannot_be_evaluated_is_reported_as_such() -> None:
    found = minimise(
        lambda x: None, np.array([1.0]), np.array([0.0]), np.array([2.0]), Tolerances()
    )
    assert found.evaluation is None
    assert not found.converged
    assert found.message == "the start could not be evaluated"
    assert found.evaluations == 1


def test_zero_residuals_end_it_at_once() -> None:
    found = run(lambda x: np.array([x[0] - 1.0, 2 * (x[0] - 1.0)]), [1.0])
    assert found.converged
    assert found.evaluations == 1


def test_directions_without_curvature_do_no_harm() -> None:
    """Only x0 + x1 matters, and x2 not at all."""
    found = run(lambda x: np.array([x[0] + x[1] - 3.0, x[0] + x[1] - 1.0 + 0 * x[2]]), [5.0, 0, 7])
    assert found.converged
    assert found.vector[0] + found.vector[1] == pytest.approx(2.0)
    assert found.vector[2] == 7.0


def test_a_step_exists_with_more_unknowns_than_residuals() -> None:
    found = run(lambda x: np.array([x[0] * x[1] - 6.0]), [1.0, 1.0, 1.0])
    assert found.vector[0] * found.vector[1] == pytest.approx(6.0, rel=1e-6)


def test_a_residual_that_does_not_depend_on_anything_is_a_minimum() -> None:
    found = run(lambda x: np.array([2.0 + 0 * x[0]]), [1.0])
    assert found.converged
    assert found.vector.tolist() == [1.0]


def test_the_trust_region_search_can_be_stopped_from_outside() -> None:
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count > 5

    found = minimise(
        squares(rosenbrock),
        np.array([-1.2, 1.0]),
        np.full(2, -math.inf),
        np.full(2, math.inf),
        Tolerances(),
        stop,
    )
    assert not found.converged
    assert found.message == "the search was stopped"
    assert cost(found) < 0.5 * 24.2  # that of the start


@pytest.mark.parametrize("most", [1, 2, 7, 20, 40])
def test_evaluations_are_limited(most: int) -> None:
    calls = 0
    inner = squares(meyer)

    def evaluate(x: Array) -> Point:
        nonlocal calls
        calls += 1
        return inner(x)

    found = minimise(
        evaluate,
        np.array([0.02, 4000.0, 250.0]),
        np.full(3, -math.inf),
        np.full(3, math.inf),
        Tolerances(evaluations=most),
    )
    assert not found.converged
    assert found.evaluations == calls
    assert calls <= most + 1  # a curved step takes two at once
    assert f"stopped after {calls} evaluations" == found.message


def test_the_cost_never_rises() -> None:
    seen: list[float] = []
    inner = squares(kowalik_osborne)
    best = math.inf
    for most in range(1, 25):
        found = minimise(
            inner,
            np.array([0.25, 0.39, 0.415, 0.39]),
            np.full(4, -math.inf),
            np.full(4, math.inf),
            Tolerances(evaluations=most),
        )
        seen.append(cost(found))
        assert cost(found) <= best
        best = cost(found)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4))
def test_the_promised_decrease_is_that_of_the_bounded_quadratic(seed: int, n: int) -> None:
    """No more than without bounds, never negative, and exact where no bound is in the way."""
    random = np.random.default_rng(seed)
    j, r, x = random.normal(size=(n + 2, n)), random.normal(size=n + 2), random.normal(size=n)
    free = promised_decrease(r, j, x, np.full(n, -np.inf), np.full(n, np.inf))
    step = np.linalg.lstsq(j, -r, rcond=None)[0]
    assert free == pytest.approx(0.5 * (r @ r - (r + j @ step) @ (r + j @ step)))
    bounded = promised_decrease(r, j, x, x - random.random(n), x + random.random(n))
    assert -1e-12 <= bounded <= free + 1e-12
    assert promised_decrease(r, j, x, x, x) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("seed", range(40))
def test_the_step_within_bounds_is_that_of_bounded_least_squares(seed: int) -> None:
    """Against the active set method of SciPy, from points at bounds too."""
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    jacobian = rng.normal(size=(n + int(rng.integers(0, 6)), n)) * 10.0 ** rng.uniform(-2, 2, n)
    residuals = rng.normal(size=len(jacobian))
    lower = -rng.uniform(0, 1, n) * (rng.random(n) < 0.7)
    lower[rng.random(n) < 0.2] = -np.inf
    upper = rng.uniform(0.1, 1, n)
    promised = promised_decrease(residuals, jacobian, np.zeros(n), lower, upper)
    best = lsq_linear(jacobian, -residuals, (lower, upper), method="bvls", tol=1e-14)
    assert promised == pytest.approx(0.5 * residuals @ residuals - best.cost, rel=1e-8, abs=1e-10)


def test_errors_of_the_integration_do_not_end_the_iteration_early() -> None:
    """A curve through noisy data, whose computed values have errors of 1e-8 like an engine's.

    The cost cannot tell the last steps; what is promised at their ends can.
    """
    times = np.linspace(0.0, 3.0, 400)
    random = np.random.default_rng(1)
    data = 2.0 * np.exp(-0.7 * times) + 1e-4 * random.normal(size=400)

    def evaluate(x: Array) -> Point:
        decay = np.exp(-x[1] * times)
        jacobian = np.column_stack([decay, -x[0] * times * decay])
        errors = 1e-8 * np.sin(1e12 * x[0] * (1 + times) + 1e12 * x[1])
        r = x[0] * decay + errors - data
        return Point(0.5 * float(r @ r), r, jacobian)

    free = np.full(2, math.inf)
    for seed in range(8):
        start = np.array([1.0, 1.0]) + 0.2 * np.random.default_rng(seed).normal(size=2)
        found = minimise(evaluate, start, -free, free, Tolerances(evaluations=300))
        at = found.evaluation
        assert at is not None
        promised = promised_decrease(at.residuals, at.jacobian, found.vector, -free, free)
        # In standard errors, which 398 degrees of freedom leave.
        assert math.sqrt(2 * promised / (2 * at.cost / 398)) < 1e-3


@dataclass(frozen=True)
class Curve:
    """A cost of a curve a exp(-k t), with residuals in some unit."""

    residuals: Array
    jacobian: Array

    @property
    def cost(self) -> float:
        return 0.5 * float(self.residuals @ self.residuals)


def curve_search(unit: float, start: float) -> Minimum:
    """Search with a in a unit, k in 1 over it, and residuals in another."""
    times = np.linspace(0.0, 3.0, 9)
    data = 2.0 * np.exp(-0.7 * times) + 0.1 * np.cos(5 * times)
    units = np.array([unit, 1 / unit])

    def evaluate(x: Array) -> Curve:
        a, k = x / units
        curve = np.exp(-k * times)
        jacobian = np.column_stack([curve, -a * times * curve]) / units
        return Curve(unit * (a * curve - data), unit * jacobian)

    free = np.full(2, np.inf)
    return minimise(evaluate, start * units, -free, free, Tolerances(), sizes=1e-6 * units)


@pytest.mark.parametrize("unit", [2.0**-50, 2.0**43])
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_the_path_of_the_search_does_not_depend_on_units(unit: float, start: float) -> None:
    plain, found = curve_search(1.0, start), curve_search(unit, start)
    assert found.converged
    assert found.vector / [unit, 1 / unit] == pytest.approx(plain.vector, rel=1e-6)
    assert found.vector / [unit, 1 / unit] == pytest.approx([2.0, 0.7], rel=0.1)
    assert found.evaluations == plain.evaluations


@pytest.mark.parametrize(("promised", "ends"), [(math.inf, True), (1e-3, False)])
def test_slow_searches_end_only_if_their_model_promises_little(promised: float, ends: bool) -> None:
    tolerances = Tolerances(patience=3, least=1e-9, stall=5.0, promised=promised)
    start, wide = np.array([-1.2, 1.0]), np.full(2, math.inf)
    found = minimise(squares(rosenbrock), start, -wide, wide, tolerances)
    assert ("hardly" in found.message) == ends
    assert found.converged != ends


def test_the_second_order_part_of_a_search_shortens_the_next_one_nearby() -> None:
    def counted(shift: float, second: SecondOrderPart | None) -> int:
        def residuals(x: Array) -> Array:
            first, other = x
            parts = [first - shift, other, 3 + first * other + first**2, 2 + other**2]
            return np.array(parts)

        free, tolerances = np.full(2, math.inf), Tolerances(cost=1e-10)
        start = np.array([0.3, 0.3])
        found = minimise(squares(residuals), start, -free, free, tolerances, second=second)
        assert found.converged
        return found.evaluations

    second = SecondOrderPart(2)
    counted(0.5, second)
    assert counted(0.6, second) <= 0.6 * counted(0.6, None)
