"""Two engines, one answer; and the switch between them."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.simulation import Failure, Trajectory
from odefit.simulation.engines.engine import EngineFailure, at_one_end
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.registry import explicit_engine
from odefit.simulation.engines.runge_kutta.engine import RungeKuttaEngine
from odefit.simulation.engines.steps import IMPLICIT_TOLERANCE
from tests.simulation.numerics import Array, by_unknown, evaluated, integrated
from tests.simulation.test_library_accuracy import at_reference

NON_STIFF = (
    "alpha-pinene bbg crauste-p fitzhugh-nagumo gma harmonic hiv-p lotka-volterra-f "
    "mammillary-3-f rational-seir seasonal-lotka-volterra sir"
).split()


def explicit() -> str:
    """Return the name of the engine for equations that are not stiff."""
    row = explicit_engine()
    assert row is not None
    return row.name


@pytest.mark.parametrize("name", NON_STIFF)
def test_both_engines_agree(name: str) -> None:
    problem, vector = at_reference(name)
    taylor = integrated(ForwardMap(problem, "heyoka"), vector)
    stiff = integrated(ForwardMap(problem, "casadi"), vector)
    assert taylor.unknowns == stiff.unknowns
    for one, other in (
        (taylor.states, stiff.states),
        (taylor.sensitivities, stiff.sensitivities),
    ):
        scale = np.maximum(np.abs(one).max(axis=0), 1e-3 * np.abs(one).max())
        assert np.all(np.abs(one - other).max(axis=0) < 2e-6 * scale)


def test_a_coarser_search_leaves_the_explicit_engines_far_more_accurate() -> None:
    """Digits cost them little. The Taylor method keeps all, unless it alone was asked for."""
    forward = ForwardMap(library.load("harmonic"))
    coarse = forward.engines.with_accuracy(1e-5, controlled=False).tolerances
    assert (coarse["heyoka"], coarse["bdf"]) == (1e-12, 1e-5)
    assert coarse["runge-kutta"] == pytest.approx(1e-9)
    assert ForwardMap(forward.problem, "runge-kutta", 1e-5).accuracy() == 1e-5
    assert ForwardMap(forward.problem, "runge-kutta").accuracy() == 1e-12


def test_a_right_hand_side_that_is_a_number_is_integrated_without_sensitivities() -> None:
    problem = Problem(
        Model(ode={"x": "b"}), {"t": [0.0, 2.0], "x": [1.0, 2.0]}, {"b": {}}, {"x": 1}
    )
    found = ForwardMap(problem).trajectory(np.array([0.5]), sensitivities=False)
    assert isinstance(found, Trajectory)
    assert found.states[:, 0] == pytest.approx([1.0, 2.0])


def test_the_switch_takes_the_stiff_engine_for_hiv_proteinase() -> None:
    problem, vector = at_reference("hiv-proteinase")
    forward = ForwardMap(problem)
    assert forward.engines.preferred() == explicit()
    found = integrated(forward, vector)
    assert forward.engines.preferred(found.choice) == "bdf"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in library.names() if n != "hiv-proteinase"])
def test_the_switch_stays_with_the_taylor_engine(name: str) -> None:
    problem, vector = at_reference(name)
    forward = ForwardMap(problem)
    found = integrated(forward, vector)
    assert forward.engines.preferred(found.choice) == explicit()


def relaxation(end: float = 10.0) -> Problem:
    """Stiff if k is large: x runs after cos(t) within 1/k."""
    times = np.linspace(0.0, end, 6)
    return Problem(
        Model(ode={"x": "-k*(x - cos(t))"}),
        {"t": times, "x": np.cos(times)},
        {"k": {"lower": 0.0}},
        {"x": 1.0},
    )


def exact(k: float, times: Array) -> Array:
    """Of `relaxation`, from x(0) = 1."""
    a, b = k * k / (1 + k * k), k / (1 + k * k)
    return a * np.cos(times) + b * np.sin(times) + (1 - a) * np.exp(-k * times)


@pytest.mark.parametrize("k", [0.1, 1.0, 30.0, 1e3, 1e5, 1e7])
def test_any_stiffness_is_integrated(k: float) -> None:
    forward = ForwardMap(relaxation())
    found = integrated(forward, np.array([k]))
    assert np.allclose(found.states[:, 0], exact(k, found.times), rtol=0, atol=1e-7)
    most = 1e3 if explicit() == "heyoka" else 10  # the other explicit engine takes more steps
    assert forward.engines.preferred(found.choice) == ("bdf" if k > most else explicit())


def test_an_evaluation_does_not_depend_on_what_came_before() -> None:
    forward = ForwardMap(relaxation())
    mild, stiff = np.array([1.0]), np.array([1e7])
    first = evaluated(forward, mild)
    assert forward.engines.preferred(evaluated(forward, stiff).choice) == "bdf"
    again = evaluated(forward, mild)
    assert np.array_equal(first.residuals, again.residuals)
    assert np.array_equal(first.jacobian, again.jacobian)
    assert again.choice == first.choice
    assert not again.choice.stiff


def test_a_given_engine_choice_saves_the_comparison() -> None:
    forward = ForwardMap(relaxation())
    vector = np.array([1e7])
    first = evaluated(forward, vector)
    again = evaluated(forward, vector, first.choice)
    assert first.choice.stiff
    assert again.choice.stiff
    assert np.array_equal(first.residuals, again.residuals)
    assert forward.accuracy(first.choice) == IMPLICIT_TOLERANCE


def test_a_long_problem_is_not_taken_for_a_stiff_one() -> None:
    problem = Problem(  # on the unit circle, but not linear
        Model(ode={"x": "w*y + x*(1 - x^2 - y^2)", "y": "-w*x + y*(1 - x^2 - y^2)"}),
        {"t": [0.0, 5000.0], "x": [1.0, 1.0]},
        {"w": {}},
        {"x": 1.0, "y": 0.0},
    )
    forward = ForwardMap(problem)
    found = integrated(forward, np.array([1.0]))
    assert forward.engines.preferred(found.choice) == explicit()
    assert found.states[-1, 0] == pytest.approx(np.cos(5000.0), abs=1e-8)
    assert by_unknown(found, 1)[-1, 0, 0] == pytest.approx(-5000 * np.sin(5000.0), rel=1e-8)


@pytest.mark.parametrize(("steps", "calls"), [(None, 2), (50_000, 1)])
def test_a_search_trusts_the_implicit_engine_on_unbounded_growth(
    steps: int | None, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explicit engine would come near the pole in ever smaller steps."""
    engine: Any = RungeKuttaEngine
    if explicit() == "heyoka":
        from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine

        engine = HeyokaEngine
    model = Model(ode={"x": "w*y", "y": "-w*x", "z": "r*z^2"})
    data = {"t": [0.0, 5000.0], "x": [1.0, 1.0]}
    initial = {"x": 1.0, "y": 0.0, "z": 1e-3}
    forward = ForwardMap(
        Problem(model, data, {"w": {}, "r": {}}, initial), tolerance=1e-3, steps=steps
    )
    integrate = Mock(side_effect=engine.integrate)
    monkeypatch.setattr(engine, "integrate", lambda *given: integrate(*given))
    found = forward.evaluate(np.array([1.0, 1.0]))
    assert isinstance(found, Failure)
    assert integrate.call_count == calls
    again = forward.evaluate(np.array([1.0, 1.0]), EngineChoice(stiff=True))
    assert isinstance(again, Failure)
    assert integrate.call_count == 2 * calls - 1  # where stiffness is known, none or one more


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (EngineFailure(7.99, "", True), EngineFailure(8.0, ""), True),
        (EngineFailure(8.01, "", True), EngineFailure(8.0, ""), True),
        (EngineFailure(4.0, "", True), EngineFailure(8.0, ""), False),
        (EngineFailure(7.99, "", True), EngineFailure(8.0, "", True), False),
        (EngineFailure(1.0, "", True), EngineFailure(1.0, ""), False),
    ],
    ids=["before", "beyond", "far before", "both out of steps", "at the start"],
)
def test_a_solution_ends_where_one_engine_cannot_go_on_and_the_other_is_slow(
    first: EngineFailure, second: EngineFailure, expected: bool
) -> None:
    assert at_one_end(1.0, first, second) is expected


def test_an_evaluation_towards_a_singularity_takes_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The temperature falls to zero, ever faster: no number of steps leads beyond."""
    model = Model({"T": "q*exp(-E/T) - h*(T - 300)"}, {"y": "T"})
    data = {"t": np.linspace(0.0, 40.0, 21), "y": np.full(21, 300.0)}
    forward = ForwardMap(Problem(model, data, {"q": {}, "E": {}, "h": {}}, {"T": 300.0}))
    steps = []
    by = Engines._by

    def counted(*arguments: Any) -> Any:
        solved = by(*arguments)
        steps.append(solved.steps)
        return solved

    monkeypatch.setattr(Engines, "_by", counted)
    for vector in ([-0.237, -766.0, -0.0724], [-0.01165, -2687.5, -0.0407]):
        assert isinstance(forward.evaluate(np.array(vector), UNDECIDED), Failure)
    assert sum(steps) < 150_000


def test_a_forced_engine_that_runs_out_of_steps_says_so() -> None:
    found = ForwardMap(relaxation(), "heyoka").trajectory(np.array([1e8]))
    assert isinstance(found, Failure)
    assert 0.0 < found.time < 10.0
    assert re.fullmatch(r"more than \d+ steps are needed", found.reason)


def test_names_of_a_model_cannot_clash_with_those_of_an_engine() -> None:
    problem = Problem(
        Model(ode={"s0_0": "-x0*s0_0", "par": "s0_0 - par"}),
        {"t": [0.0, 1.0], "s0_0": [1.0, 0.4], "par": [0.0, 0.3]},
        {"x0": {}},
        {"s0_0": 1.0, "par": {}},
    )
    vector = problem.vector({"x0": 0.7, "par": 0.2})
    for engine in ("heyoka", "casadi"):
        found = ForwardMap(problem, engine).trajectory(vector)
        assert isinstance(found, Trajectory)
        assert found.states[-1, 0] == pytest.approx(np.exp(-0.7), rel=1e-8)


@pytest.mark.parametrize("late", [[3600.0], [1e-3, 3600.0 - 1e-6, 3600.0]])
def test_output_times_may_be_close_together_in_a_long_segment(late: list[float]) -> None:
    """Closer than 1e-9 of it, while x = 1 + exp(-k t) moves by a hundredth between them."""
    times = np.array([*(1e-4 + np.array([0.0, 1e-6, 2e-6, 3e-6, 2e-5])), *late])
    data = {"t": times, "x": np.ones(len(times))}
    problem = Problem(Model(ode={"x": "-k*(x - 1)"}), data, {"k": {}}, {"x": 2.0}, t0=0.0)
    found = integrated(ForwardMap(problem, "casadi"), np.array([1e4]))
    decay = np.exp(-1e4 * times)
    assert found.states[:, 0] == pytest.approx(1 + decay, abs=1e-7)
    assert found.sensitivities[:, 0, 0] == pytest.approx(-times * decay, abs=1e-9)


def test_a_model_too_large_to_compile_goes_to_the_implicit_engine_at_once() -> None:
    n = 60
    rates: dict[str, dict[str, float]] = {f"k{i}": {} for i in range(n)}
    chain = {f"x{i}": f"{f'k{i - 1}*x{i - 1}' if i else '1'} - k{i}*x{i}" for i in range(n)}
    initial = dict.fromkeys(chain, 0.5)
    problem = Problem(Model(ode=chain), {"t": [1.0], "x59": [1.0]}, rates, initial, t0=0.0)
    forward = ForwardMap(problem)
    found = evaluated(forward, np.full(n, 0.7))
    assert forward.engines.preferred(found.choice) == "bdf"
    assert forward.accuracy(found.choice) == IMPLICIT_TOLERANCE


def test_a_dense_series_over_many_periods_is_long_rather_than_stiff() -> None:
    """The Taylor method gets the steps that it needs before the implicit engine is asked."""
    times = np.linspace(0.0, 128.0, 1501)
    model = Model(ode={"x": "a*x - 0.8*x*y", "y": "c*x*y - d*y"})
    ones = {"t": times, "x": np.ones(1501)}
    problem = Problem(model, ones, {k: {} for k in "acd"}, {"x": {}, "y": {}})
    forward = ForwardMap(problem)
    vector = np.array([0.9, 0.5, 0.6, 0.3, 0.4])
    found = evaluated(forward, vector)
    assert not found.choice.stiff
    assert found.choice.taylor_steps is None
    # d ln x - c x + a ln y - 0.8 y is constant.
    x, y = integrated(forward, vector).states.T
    constant = 0.6 * np.log(x) - 0.5 * x + 0.9 * np.log(y) - 0.8 * y
    assert np.ptp(constant) < 1e-10


def test_costs_along_a_dense_series_are_those_of_the_evaluation_without_its_sensitivities() -> None:
    pytest.importorskip("heyoka")
    times = np.linspace(0.0, 4.0, 300)
    problem = Problem(
        Model(ode={"x": "-k*x^2"}), {"t": times, "x": np.ones(300)}, {"k": {}}, {"x": 1.0}
    )
    forward = ForwardMap(problem)
    vector = np.array([0.5])
    exact = 0.5 * np.sum((1.0 / (1.0 + 0.5 * times) - 1.0) ** 2)
    assert forward.cost(vector) == pytest.approx(exact, rel=1e-10)
    directions = {pattern.directions for _, pattern, _ in forward.engines._engines}
    assert directions == {0}
    assert evaluated(forward, vector).cost == pytest.approx(exact, rel=1e-10)
