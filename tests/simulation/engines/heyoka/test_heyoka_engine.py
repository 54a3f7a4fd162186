"""What the engine asks of heyoka as a whole; what it integrates is compared in test_engines.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.common.arrays import Array
from odefit.simulation import Evaluation
from odefit.simulation.engines.bdf.engine import BdfEngine
from odefit.simulation.engines.engine import ConsistentValues, EngineFailure
from odefit.simulation.engines.segments import segment_between
from odefit.simulation.trajectories.trajectory import ConditionMap

hy = pytest.importorskip("heyoka")
HeyokaWalk = pytest.importorskip("odefit.simulation.engines.heyoka.heyoka_walk").HeyokaWalk


def test_compiled_models_do_not_accumulate_in_memory() -> None:
    """Thousands of models in one process would fill the 2 GB that heyoka allows by itself."""
    import odefit.simulation.engines.heyoka.heyoka_engine  # noqa: F401

    assert 0 < hy.llvm_state.get_memcache_limit() <= 32 * 2**20
    assert hy.llvm_state.get_memcache_size() <= hy.llvm_state.get_memcache_limit()


def decay(*order: str) -> odefit.Problem:
    equations = {"x": "-k*x", "y": "k*x - b*y"}
    model = odefit.Model(ode={n: equations[n] for n in order or "xy"}, observables={"y": "y"})
    data = {"t": np.linspace(0.0, 4.0, 9), "y": np.linspace(0.0, 1.0, 9)}
    return odefit.Problem(model, data, {"k": {"lower": 0}, "b": {"lower": 0}}, {"x": 1, "y": 0.2})


def values(forward: odefit.ForwardMap, k: float, b: float) -> Array:
    found = forward.evaluate(np.array([k, b]))
    assert not isinstance(found, odefit.Failure)
    return np.column_stack([found.residuals, found.jacobian])


def test_equations_that_were_compiled_before_are_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from odefit.simulation.engines.heyoka.heyoka_equations import _RECENT

    _RECENT.clear()
    made: list[int] = []
    make = hy.taylor_adaptive

    def counting(system: list[object], *arguments: object, **options: object) -> object:
        made.append(len(system))
        return make(system, *arguments, **options)

    monkeypatch.setattr(hy, "taylor_adaptive", counting)
    problem = decay()
    one, two = (odefit.ForwardMap(problem, engine="heyoka") for _ in range(2))
    first = values(one, 0.7, 0.2)
    assert made == [6]
    # Each has parameters and a state of its own, however their calls alternate.
    other = values(two, 0.3, 1.5)
    assert np.abs(other - first).max() > 0.1
    assert values(one, 0.7, 0.2) == pytest.approx(first, rel=1e-14, abs=1e-14)
    assert values(two, 0.3, 1.5) == pytest.approx(other, rel=1e-14, abs=1e-14)
    assert made == [6]
    again = odefit.ForwardMap(decay(), engine="heyoka")
    assert np.array_equal(values(again, 0.3, 1.5), other)
    assert made == [6]
    changed = odefit.ForwardMap(decay("y", "x"), engine="heyoka")
    assert values(changed, 0.3, 1.5) == pytest.approx(other)
    assert made == [6, 6]


def test_equations_with_other_fixed_values_are_not_confused() -> None:
    """The same model with values that are fixed otherwise has other equations."""
    problem = decay()
    held = [problem.with_parameters(b=value) for value in (0.2, 1.5)]
    for known, one in zip((0.2, 1.5), held, strict=True):
        assert one.model is problem.model
        found = odefit.ForwardMap(one, engine="heyoka").evaluate(np.array([0.7]))
        assert not isinstance(found, odefit.Failure)
        whole = values(odefit.ForwardMap(problem, engine="heyoka"), 0.7, known)
        assert found.residuals == pytest.approx(whole[:, 0], rel=1e-12, abs=1e-12)
        assert found.jacobian[:, 0] == pytest.approx(whole[:, 1], rel=1e-12, abs=1e-12)


def test_the_defect_of_a_step_does_not_depend_on_the_others_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from odefit.simulation.engines.heyoka.heyoka_walk import HeyokaWalk

    whole: Any = HeyokaWalk._defects
    compared: list[int] = []

    def twice(
        self: HeyokaWalk,
        output: Any,
        edges: Array,
        coefficients: Array,
        steps: Any,
        times: Array,
        *more: Array,
    ) -> Array:
        found: Array = whole(self, output, edges, coefficients, steps, times, *more)
        if isinstance(steps, slice):
            backwards = np.arange(len(coefficients))[::-1]
            again = whole(self, output, edges, coefficients, backwards, times[::-1], *more)
            assert again[::-1] == pytest.approx(found, rel=1e-9, abs=1e-12)
            compared.append(len(coefficients))
        return found

    monkeypatch.setattr(HeyokaWalk, "_defects", twice)
    model = odefit.Model(ode={"x": "-k*x + exp(-((t - 5)/0.3)^2)"}, observables={"x": "x"})
    data = {"t": np.linspace(0.0, 10.0, 5), "x": np.zeros(5)}
    problem = odefit.Problem(model, data, {"k": {"lower": 0.0}}, {"x": 0.0})
    found = odefit.ForwardMap(problem, engine="heyoka").evaluate(np.array([0.4]))
    assert not isinstance(found, odefit.Failure)
    assert max(compared) > 2


def pendulum(rows: int, sign: float = -1.0, between: int = 1) -> odefit.Problem:
    """Return a damped pendulum whose pivot an input in every row moves."""
    times = np.linspace(0.0, 0.05 * rows, rows)
    model = odefit.Model(
        ode={"x": "v", "v": f"g*u + {sign}*(k*sin(x) + v*v*v)"}, inputs={"u": "linear"}
    )
    data = {"t": times, "u": np.round(np.sin(1.3 * times) + 0.5, 3), "x": np.zeros(rows)}
    data["x"][np.arange(rows) % between > 0] = np.nan
    return odefit.Problem(model, data, {"k": {}, "g": {}}, {"x": {}, "v": 0.0})


@pytest.mark.parametrize("between", [1, 3])
def test_knots_in_every_row_agree_with_another_engine(between: int) -> None:
    """With values in every third row alone, the other knots have no output."""
    problem, at = pendulum(61, between=between), np.array([2.0, 0.7, 0.4])
    here, there = (
        odefit.ForwardMap(problem, engine).evaluate(at) for engine in ("heyoka", "runge-kutta")
    )
    assert isinstance(here, Evaluation)
    assert isinstance(there, Evaluation)
    assert here.residuals == pytest.approx(there.residuals, abs=1e-11)
    assert here.jacobian == pytest.approx(there.jacobian, abs=1e-10)


def test_a_solution_that_grows_without_bound_fails_between_the_knots() -> None:
    """Without the sine v' is about v^3, which grows without bound at a time of 1/(2 v^2)."""
    failure = odefit.ForwardMap(pendulum(200, 1.0), "heyoka").evaluate(np.array([1e-9, 3.0, 0.4]))
    assert isinstance(failure, odefit.Failure)
    assert 0.3 < failure.time < 3.0


def test_steps_are_limited_over_all_knots() -> None:
    """A part may always take one step; of a fast pendulum it needs several."""
    from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine

    forward = odefit.ForwardMap(pendulum(61), "heyoka")
    at = np.array([2e4, 0.7, 0.4])
    of_condition = forward._conditions.single(0)
    assert isinstance(of_condition, ConditionMap)
    propagation = of_condition.propagation
    begun = propagation.begin(at, propagation.sizes(at))
    assert isinstance(begun, ConsistentValues)
    condition = forward.problem.conditions[0]
    segment = segment_between(condition, ("u",), 0.0, condition.times[1:])
    engine = HeyokaEngine(forward.field, propagation._pattern, 1e-12)
    stopped = engine.integrate(segment, begun.values, 20)
    assert isinstance(stopped, EngineFailure)
    assert stopped.out_of_steps
    assert 0.0 < stopped.time < 1.5
    whole = engine.integrate(segment, begun.values, 10_000)
    assert not isinstance(whole, EngineFailure)
    assert 120 <= whole.steps < 10_000


@pytest.mark.parametrize("unit", [1e-7, 1e-5, 1e-3, 1e3])
def test_a_chaotic_trajectory_is_as_accurate_in_every_unit(unit: float) -> None:
    """heyoka's tolerance is absolute below 1; an error of 1e-12 would grow a thousandfold here."""
    lorenz = {"x": "10*(y - x)", "y": f"x*(r - z/{unit!r}) - y", "z": f"x*y/{unit!r} - 2.5*z"}
    start = {"x": unit, "y": unit, "z": 20.0 * unit}
    data = {"t": np.linspace(0.5, 10.0, 20), "x": np.zeros(20)}
    problem = odefit.Problem(odefit.Model(lorenz, {"x": "x"}), data, {"r": (20.0, 40.0)}, start)
    found = odefit.ForwardMap(problem, engine="heyoka").evaluate(np.array([28.0]))
    exact = odefit.ForwardMap(in_unit_of_one(problem, unit), engine="heyoka")
    expected = exact.evaluate(np.array([28.0]))
    assert isinstance(found, Evaluation)
    assert isinstance(expected, Evaluation)
    error = np.abs(found.residuals / unit - expected.residuals).max()
    assert error < 1e-9 * np.abs(expected.residuals).max()


def in_unit_of_one(problem: odefit.Problem, unit: float) -> odefit.Problem:
    """Return the Lorenz system of the test with states of about ten."""
    ode = {name: str(e).replace(f"/{unit!r}", "") for name, e in problem.model.ode.items()}
    start = {"x": 1.0, "y": 1.0, "z": 20.0}
    data = problem.experiments[0].data
    return odefit.Problem(odefit.Model(ode, {"x": "x"}), data, problem.parameters, start)


def evaluated_without(
    refused: type,
    use: str,
    problem: odefit.Problem,
    at: Array,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Evaluation, Evaluation]:
    """Return an evaluation in which a class is refused its use, and an accurate one."""
    accurate = odefit.ForwardMap(problem, "bdf", 1e-11).evaluate(at)

    def refuse(*arguments: object) -> None:
        raise AssertionError(use)

    monkeypatch.setattr(refused, "integrate", refuse)
    found = odefit.ForwardMap(problem).evaluate(at)
    assert isinstance(found, Evaluation)
    assert isinstance(accurate, Evaluation)
    return found, accurate


@pytest.mark.parametrize("ratio", [1e-9, 1.0])
def test_the_explicit_engine_stands_in_for_steps_in_python(
    ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tolerance of heyoka, which is that of the largest state, sees no much smaller one."""
    model = odefit.Model({"x": "-0.3*x", "y": f"{ratio!r}*k*x^2 - y"}, observables={"y": "y"})
    data = {"t": np.linspace(0.5, 5.0, 10), "y": np.zeros(10)}
    problem = odefit.Problem(model, data, {"k": (0.1, 10.0)}, {"x": 1.0, "y": ratio})
    at = np.array([3.0])
    found, accurate = evaluated_without(
        HeyokaWalk, "the Taylor method went step by step", problem, at, monkeypatch
    )
    assert found.residuals / ratio == pytest.approx(accurate.residuals / ratio, rel=1e-8)
    assert found.jacobian / ratio == pytest.approx(accurate.jacobian / ratio, rel=1e-8)
    if ratio < 1.0:
        with pytest.raises(AssertionError, match="step by step"):
            odefit.ForwardMap(problem, "heyoka").evaluate(at)


@pytest.mark.parametrize("power", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("rate", ["k - x^{0}/2", "k/(1 + x^{0}) - x", "k*(1 - x^{0})"])
def test_a_whole_power_of_a_state_that_begins_at_zero_needs_no_implicit_engine(
    power: int, rate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The series of such a power divide by the state."""
    data = {"t": np.linspace(0.2, 2.0, 10), "x": np.zeros(10)}
    model = odefit.Model({"x": rate.format(power)})
    problem = odefit.Problem(model, data, {"k": (0.1, 10.0)}, {"x": 0.0}, t0=0.0)
    found, accurate = evaluated_without(
        BdfEngine, "the implicit engine was needed", problem, np.array([0.9]), monkeypatch
    )
    assert found.residuals == pytest.approx(accurate.residuals, rel=1e-8)
    assert found.jacobian == pytest.approx(accurate.jacobian, rel=1e-7)
