"""The stiff engine against exact solutions, CVODES and published values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from odefit import Event, Experiment, Model, Problem, library
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation import ForwardMap
from odefit.simulation.engines.bdf.engine import BdfEngine
from odefit.simulation.engines.bdf.kernel_engine import PartToSolve, SolvedPart
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.segments import Segment
from tests.simulation.numerics import differences, integrated

Array = npt.NDArray[np.float64]


def solution(found: SegmentSolution | EngineFailure) -> SegmentSolution:
    assert isinstance(found, SegmentSolution), found
    return found


def failure(found: SegmentSolution | EngineFailure) -> EngineFailure:
    assert isinstance(found, EngineFailure)
    return found


def segment(*times: float) -> Segment:
    return Segment(0.0, np.array(times), np.zeros(0), np.zeros((1, 0, 5)))


def chain(n: int) -> Problem:
    """A chain of n first-order reactions with rates from 1 to 1e4."""
    unknowns: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(n)}
    ode = {f"x{i}": f"{f'k{i - 1}*x{i - 1}' if i else '1'} - k{i}*x{i}" for i in range(n)}
    initial = {f"x{i}": float(i == 0) for i in range(n)}
    data = {"t": [0.1, 1.0, 30.0], "x0": [1.0, 1.0, 1.0]}
    return Problem(Model(ode=ode), data, unknowns, initial, t0=0.0)


def rates(n: int) -> Array:
    return np.asarray(np.logspace(0, 4, n)[np.random.default_rng(0).permutation(n)])


@pytest.mark.parametrize("n", [1, 3, 12, 45])
def test_states_of_a_stiff_linear_chain_are_exact(n: int) -> None:
    """Sensitivities fill one tile, or several, to the last place and not."""
    k = rates(n)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = np.diag(-k) + np.diag(k[:-1], -1)
    matrix[0, n] = 1.0
    start = np.zeros(n + 1)
    start[0] = start[n] = 1.0
    found = integrated(ForwardMap(chain(n), "bdf"), k)
    for t, row in zip(found.times, found.states, strict=True):
        assert np.allclose(row, (expm(matrix * t) @ start)[:n], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 12, 45, 100])
def test_sensitivities_of_a_stiff_linear_chain_are_exact(n: int) -> None:
    k = rates(n)
    found = integrated(ForwardMap(chain(n), "bdf"), k)
    generator = np.zeros((2 * n + 1, 2 * n + 1))
    generator[:n, :n] = generator[n : 2 * n, n : 2 * n] = np.diag(-k) + np.diag(k[:-1], -1)
    generator[0, 2 * n] = 1.0
    start = np.zeros(2 * n + 1)
    start[0] = start[2 * n] = 1.0
    for j in (0, n // 2, n - 1):
        with_rate = generator.copy()
        with_rate[n + j, j] = -1.0
        if j < n - 1:
            with_rate[n + j + 1, j] = 1.0
        for t, row in zip(found.times, found.sensitivities, strict=True):
            exact = (expm(with_rate * t) @ start)[n : 2 * n]
            assert np.allclose(row[:, j], exact, rtol=2e-6, atol=1e-9 / k[j])


def test_without_error_control_of_their_own_sensitivities_follow_the_steps_of_the_states() -> None:
    n, tolerance = 12, 1e-6
    problem, k = chain(n), rates(n)
    controlled = ForwardMap(problem, "bdf", tolerance)
    alone = ForwardMap(problem, "bdf", tolerance, controlled=False)
    exact, found = integrated(ForwardMap(problem, "bdf", 1e-11), k), integrated(alone, k)
    assert np.allclose(found.states, exact.states, rtol=1e-4, atol=1e-9)
    scale = np.abs(exact.sensitivities).max(axis=(0, 1))
    error = np.abs(found.sensitivities - exact.sensitivities).max(axis=(0, 1)) / scale
    assert 0.0 < error.max() < 1e-3
    engines = [
        BdfEngine(f.field, SensitivityPattern(n, frozenset((i, i) for i in range(n))), tolerance, c)
        for f, c in ((controlled, True), (alone, False))
    ]
    states = np.eye(n)[0]
    start = Values(states, k, np.zeros((n, n)), np.diag(k), np.zeros(0))
    steps, fewer = (solution(e.integrate(segment(1e3), start, 10_000)).steps for e in engines)
    assert fewer < 0.8 * steps


def robertson() -> Problem:
    ode = {
        "a": "-k1*a + k3*b*c",
        "b": "k1*a - k3*b*c - k2*b^2",
        "c": "k2*b^2",
    }
    data = {"t": [0.4, 40.0, 4e5], "a": [1.0, 0.7, 0.005]}
    unknowns: dict[str, dict[str, float]] = {"k1": {}, "k2": {}, "k3": {}}
    return Problem(Model(ode=ode), data, unknowns, {"a": 1.0, "b": 0.0, "c": 0.0}, t0=0.0)


@pytest.mark.slow
def test_robertsons_problem_is_solved_as_by_an_implicit_runge_kutta_method() -> None:
    def rhs(_: float, x: Array) -> list[float]:
        fast, middle, slow = 3e7 * x[1] ** 2, 1e4 * x[1] * x[2], 0.04 * x[0]
        return [middle - slow, slow - middle - fast, fast]

    times = [0.4, 40.0, 4e5]
    expected = solve_ivp(
        rhs, (0.0, 4e5), [1.0, 0.0, 0.0], "Radau", times, rtol=1e-9, atol=1e-14
    ).y.T
    found = integrated(ForwardMap(robertson(), "bdf"), np.array([0.04, 3e7, 1e4]))
    assert np.allclose(found.states, expected, rtol=1e-6)


def test_sensitivities_are_derivatives_of_the_states() -> None:
    forward = ForwardMap(robertson(), "bdf", 1e-11)
    at = np.array([0.04, 3e7, 1e4])
    found = integrated(forward, at)
    by_difference = differences(lambda v: integrated(forward, v).states, at, 1e-3)
    scale = np.abs(by_difference * at).max(axis=(0, 2), keepdims=True)
    assert np.abs((found.sensitivities - by_difference) * at / scale).max() < 1e-6


@pytest.mark.parametrize("name", ["hiv-proteinase", "alpha-pinene", "gma", "fitzhugh-nagumo-v"])
def test_another_implementation_agrees(name: str) -> None:
    problem, reference = library.load(name), library.reference(name)
    vector = problem.vector({**reference.parameters, **reference.initial})
    ours = integrated(ForwardMap(problem, "bdf", 1e-9), vector)
    theirs = integrated(ForwardMap(problem, "casadi", 1e-10), vector)
    for found, expected in (
        (ours.states, theirs.states),
        (ours.sensitivities, theirs.sensitivities),
    ):
        scale = np.abs(expected).max(axis=0)
        scale = np.maximum(scale, 1e-6 * scale.max())
        assert (np.abs(found - expected) / np.where(scale > 0, scale, 1.0)).max() < 2e-6


@pytest.mark.parametrize("tolerance", [1e-5, 1e-7, 1e-9, 1e-11])
def test_errors_follow_the_tolerance(tolerance: float) -> None:
    k = rates(6)
    exact = integrated(ForwardMap(chain(6), "bdf", 1e-13), k)
    found = integrated(ForwardMap(chain(6), "bdf", tolerance), k)
    assert np.allclose(found.states, exact.states, rtol=100 * tolerance, atol=tolerance)
    error = (found.sensitivities - exact.sensitivities) * k
    assert np.abs(error).max() < 200 * tolerance


def test_sensitivities_are_controlled_where_the_states_stand_still() -> None:
    """At a steady state, x = 1, the sensitivity is (1 - exp(-1000 t)) / k."""
    model = Model(ode={"x": "1000*(k - x)"})
    times = [1e-4, 1e-3, 1e-2, 1.0]
    problem = Problem(model, {"t": times, "x": [1.0] * 4}, {"k": {}}, {"x": 1.0}, t0=0.0)
    found = integrated(ForwardMap(problem, "bdf"), np.array([1.0]))
    exact = -np.expm1(-1000 * np.array(times))
    assert np.allclose(found.sensitivities[:, 0, 0], exact, rtol=1e-7)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-9])
def test_sensitivities_that_are_rounding_errors_of_others_do_not_hold_up_the_steps(
    tolerance: float,
) -> None:
    """Binding at equilibrium is the same a thousand times slower; there, little is rounded."""
    ode = {
        "e": "turn*(68190 - e) - k1*e*a + k2*c + 0.003*c",
        "c": "k1*e*a - k2*c - 0.003*c",
        "a": "-k1*e*a + k2*c + back*p",
        "p": "0.003*c - back*p",
    }
    times = [60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0]
    data = {"t": times, "e": [1.0] * 6}
    initial = {"e": 1.0, "c": 0.0, "a": 1.8e6, "p": 0.0}
    fast = {"turn": 0.1, "k1": 45.0, "k2": 4e7, "back": 100.0}
    slow = fast | {"k1": 45e-3, "k2": 4e4}
    problem = Problem(Model(ode=ode), data, {k: {} for k in fast}, initial, t0=0.0)

    def effects(values: dict[str, float], accuracy: float) -> Array:
        vector = problem.vector(values)
        return integrated(ForwardMap(problem, "bdf", accuracy), vector).sensitivities * vector

    found, expected = effects(fast, tolerance), effects(slow, 1e-9)
    assert (np.abs(found - expected) < 1e-4 * np.abs(expected).max(axis=(0, 1))).all()


def field_and_start(problem: Problem, vector: Array) -> tuple[VectorField, Values]:
    field = VectorField.of(problem.model, problem.conditions)
    states = np.array([1.0, 0.0, 0.0])
    n, p = len(states), len(field.scalars)
    return field, Values(states, vector, np.zeros((n, 0)), np.zeros((p, 0)), np.zeros(0))


def test_too_many_steps_are_a_failure_with_what_is_left() -> None:
    field, start = field_and_start(robertson(), np.array([0.04, 3e7, 1e4]))
    engine = BdfEngine(field, SensitivityPattern(0, frozenset()), 1e-9)
    needed = solution(engine.integrate(segment(1e5), start, 10_000)).steps
    stopped = failure(engine.integrate(segment(1e5), start, needed // 2))
    assert stopped.out_of_steps
    assert stopped.steps == needed // 2
    assert 0 < stopped.time < 1e5
    assert "steps are needed" in stopped.reason
    assert stopped.steps_ahead > 1


def test_thousands_of_steps_may_lie_between_two_outputs() -> None:
    """An oscillation of 150 periods: x = cos(t)."""
    problem = Problem(
        Model(ode={"x": "-y", "y": "k*x"}),
        {"t": [300 * np.pi], "x": [1.0]},
        {"k": {}},
        {"x": 1.0, "y": 0.0},
        t0=0.0,
    )
    found = integrated(ForwardMap(problem, "bdf"), np.array([1.0]))
    assert found.states[0] == pytest.approx([1.0, 0.0], abs=1e-4)


def test_an_undefined_right_hand_side_is_distinguished() -> None:
    problem = robertson()
    field, start = field_and_start(problem, np.array([np.nan, 3e7, 1e4]))
    engine = BdfEngine(field, SensitivityPattern(0, frozenset()), 1e-9)
    assert "not defined" in failure(engine.integrate(segment(1.0), start, 100)).reason


def test_threads_do_not_disturb_each_other() -> None:
    problem = robertson()
    field, start = field_and_start(problem, np.array([0.04, 3e7, 1e4]))
    engine = BdfEngine(field, SensitivityPattern(0, frozenset()), 1e-9)
    starts = [start._replace(scalars=start.scalars * (1 + 0.1 * i)) for i in range(8)]
    alone = [solution(engine.integrate(segment(1.0, 1e4), s, 10_000)).states for s in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda s: engine.integrate(segment(1.0, 1e4), s, 10_000), starts))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, solution(other).states)


def test_scalars_that_events_assign_have_sensitivities_of_all_unknowns() -> None:
    """x' = -r x with r = a before t = 1 and r = b^2 after."""
    problem = Problem(
        Model(ode={"x": "-r*x"}, constants={"r": 0.0}),
        parameters={"a": {}, "b": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment(
                "data",
                {"t": [1.0, 2.0], "x": [0.5, 0.1]},
                t0=0.0,
                constants={"r": "a"},
                events=[Event((1.0,), {"r": "b^2"})],
            )
        ],
    )
    a, b = 0.7, 1.3
    found = integrated(ForwardMap(problem, "bdf"), np.array([a, b]))
    end = np.exp(-a - b**2)
    assert found.states[:, 0] == pytest.approx([np.exp(-a), end], rel=1e-7)
    assert found.sensitivities[1, 0] == pytest.approx([-end, -2 * b * end], rel=1e-7)


def test_kinks_are_integrated() -> None:
    problem = Problem(
        Model(ode={"x": "max(1 - t, 0) - k*min(x, 1)"}),
        {"t": [0.5, 1.0, 3.0], "x": [1.0, 1.0, 1.0]},
        {"k": {}},
        {"x": 2.0},
        t0=0.0,
    )
    vector = np.array([0.8])
    ours = integrated(ForwardMap(problem, "bdf"), vector)
    theirs = integrated(ForwardMap(problem, "casadi", 1e-11), vector)
    assert np.allclose(ours.states, theirs.states, rtol=1e-6)
    assert np.allclose(ours.sensitivities, theirs.sensitivities, rtol=1e-5)


def test_a_transient_may_be_shorter_than_the_spacing_of_times() -> None:
    """Numbers near -1e5 are 1.5e-11 apart; x' = k (1 - x) settles within 1e-12."""
    problem = Problem(
        Model(ode={"x": "k*(1 - x)"}),
        {"t": [0.0], "x": [1.0]},
        {"k": {}},
        {"x": 0.0},
        t0=-1e5,
    )
    found = integrated(ForwardMap(problem, "bdf"), np.array([1e13]))
    assert found.states[0, 0] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-9, 1e-12])
def test_a_pulse_that_begins_slowly_is_not_stepped_over(tolerance: float) -> None:
    """x = 1 + k (1e-9 t + 1 - (1 + t) exp(-t)): nearly at rest before the pulse and after it."""
    problem = Problem(
        Model(ode={"x": "k*(1e-9 + t*exp(-t))"}),
        {"t": [1000.0], "x": [1.0]},
        {"k": {}},
        {"x": 1.0},
        t0=0.0,
    )
    found = integrated(ForwardMap(problem, "bdf", tolerance), np.array([0.3]))
    assert found.states[0, 0] == pytest.approx(1.3, rel=max(1e3 * tolerance, 1e-6))


def random_network(seed: int) -> tuple[Problem, Array]:
    """Reactions of first and second order, some inhibited, with rates over eight decades.

    None is autocatalytic: CVODES leaves unstable steady states by rounding.
    """
    rng = np.random.default_rng(seed)
    n, reactions = int(rng.integers(1, 8)), int(rng.integers(1, 10))
    changes: list[list[str]] = [["0"] for _ in range(n)]
    for r in range(reactions):
        a, b, c = (int(i) for i in rng.integers(0, n, 3))
        forms = [f"k{r}*x{a}*x{b}", f"k{r}*x{a}", f"k{r}*x{a}/(1 + x{b}^2)"]
        term = forms[1 if c == b else int(rng.choice(3, p=[0.4, 0.4, 0.2]))]
        changes[a].append(f"- {term}")
        changes[c].append(f"+ {term}")
    t0 = float(rng.choice([0.0, -1e5, 3.0]))
    times = t0 + np.sort(rng.uniform(0, 10 ** rng.uniform(-3, 4), 5))
    problem = Problem(
        Model(ode={f"x{i}": " ".join(terms) for i, terms in enumerate(changes)}),
        {"t": times, "x0": np.ones(5)},
        {f"k{r}": {} for r in range(reactions)},
        {f"x{i}": float(rng.choice([0.0, 1.0, 1e-6, 100.0])) for i in range(n)},
        t0=t0,
    )
    return problem, 10 ** rng.uniform(-4, 4, reactions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_reaction_networks_are_solved_as_by_cvodes(seed: int) -> None:
    problem, vector = random_network(seed)
    ours = integrated(ForwardMap(problem, "bdf"), vector)
    theirs = integrated(ForwardMap(problem, "casadi", 1e-10), vector)
    size = np.abs(theirs.states).max(axis=0)
    size = np.maximum(size, 1e-6 * max(size.max(), 1.0))
    assert (np.abs(ours.states - theirs.states) / size).max() < 1e-5
    change = np.abs(ours.sensitivities - theirs.sensitivities) * vector[list(ours.unknowns)]
    largest = np.abs(theirs.sensitivities * vector[list(ours.unknowns)]).max(axis=(0, 2))
    assert (change.max(axis=(0, 2), initial=0.0) / np.maximum(largest, size)).max() < 1e-5


@pytest.mark.parametrize(
    ("rate", "inputs", "several"),
    [
        ("k - x", {}, False),
        ("sin(157*(t - 1e-15)) - x", {}, True),
        ("u - x", {"u": "linear"}, True),
    ],
)
def test_rates_that_time_drives_give_sizes_at_several_times(
    rate: str, inputs: dict[str, str], several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a pulse begins, its rate is rounding alone.

    The 500 states of Chen et al. (2009) had sizes of 1e-30 from it, and their integration failed.
    """
    places = []
    solve = BdfEngine._solve

    def watched(engine: BdfEngine, part: PartToSolve) -> SolvedPart:
        places.append(part.places)
        return solve(engine, part)

    monkeypatch.setattr(BdfEngine, "_solve", watched)
    data = {"t": [0.0, 1.0], "x": [0.0, 0.5]} | {name: [0.0, 1.0] for name in inputs}
    problem = Problem(Model({"x": rate}, inputs=inputs), data, {"k": {}}, {"x": 0.0})
    integrated(ForwardMap(problem, "bdf"), np.ones(1))
    assert places
    assert all((n > 1) == several for n in places)
