"""Conditions that share segments: integrated once, with the values of each on its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Parameter, Problem
from odefit.simulation import Evaluation, Failure
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice, UnitChoices
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.trajectories.unit_outcome import UnitOutcome
from tests.simulation.numerics import Array, differences, evaluated
from tests.simulation.zoo import ZOO

DATA = {"t": [1.0, 2.0, 4.0], "y": [0.9, 0.5, 0.3]}
"""Data times after t0 = 0, at which nothing is measured."""


def problem(experiments: list[Experiment], **more: Any) -> Problem:
    """A chain x -> q with a rate k, a dose d, a rate of loss m, and a switch."""
    model: dict[str, Any] = {
        "ode": {"x": "-k*x*on", "q": "k*x*on - m*q"},
        "observables": {"y": "s*x + q", "z": "q"},
        "constants": {"on": 1.0, "s": 1.0, "level": 0.0},
        **more.pop("model", {}),
    }
    return Problem(
        Model(**model),
        parameters={"k": {}, "m": {}, "d": {}, "e": {}, "scale": {}},
        initial={"x": {}, "q": "0.2*m"},
        experiments=experiments,
        **more,
    )


def run(
    name: str, *events: Event, data: Any = None, t0: float = 0.0, **constants: Any
) -> Experiment:
    return Experiment(name, data or DATA, t0=t0, constants=constants, events=list(events))


def alone(whole: Problem, vector: Array, engine: EngineName) -> tuple[Array, Array]:
    """Residuals and Jacobian, each condition evaluated by a forward map of its own."""
    forward = ForwardMap(whole, engine)
    trajectories = [forward.trajectory(vector, c.name) for c in whole.conditions]
    found = forward.assemble(vector, trajectories)  # type: ignore[arg-type]
    assert isinstance(found, tuple), found
    return found[0].residuals, found[0].jacobian


@pytest.fixture
def integrations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of directions of each integration."""
    found: list[int] = []
    integrate = Engines.integrate

    def counted(self: Engines, *arguments: Any, **options: Any) -> Any:
        found.append(arguments[1].directions)
        return integrate(self, *arguments, **options)

    monkeypatch.setattr(Engines, "integrate", counted)
    return found


LATE = {"t": [0.0, 1.0, 2.5, 6.0], "z": [0.1, np.nan, 0.4, 0.5], "y": [1.0, 0.7, np.nan, 0.4]}

SHARING = {
    # name: experiments, integrations, directions of each
    "different scales": (
        [run("a", s="scale"), run("b", s=2.0), run("c", data=LATE, s="e")],
        [3],  # k, m and x
    ),
    "events that differ only later": (
        [
            run("a", Event((0.0,), {"x": "x + 1"}), Event((1.5,), {"x": "x + d"})),
            run("b", Event((0.0,), {"x": "x + 1"}), Event((1.5,), {"x": "x + e"}), data=LATE),
            run("c", Event((0.0,), {"x": "x + 1"})),
        ],
        [3, 4, 4],
    ),
    "equal events of different doses": (
        [
            run("a", Event((1.0,), {"x": "x + level"}), level="d"),
            run("b", Event((1.0,), {"x": "x + level"}), level="e"),
            run("c", Event((1.0,), {"x": "x + level"}), level="d", s="scale"),
        ],
        [3, 4, 4],
    ),
    "a long run before": (
        [
            run("a", Event((0.0,), {"on": "d"}), t0=-50.0),
            run("b", Event((0.0,), {"on": "0.5"}), t0=-50.0, data=LATE),
            run("c", Event((0.0,), {"on": "0.5"}), Event((2.0,), {"on": "0"}), t0=-50.0),
        ],
        [3, 4, 3, 3],
    ),
    "an event after the last measurement": (
        [run("a"), run("b", Event((4.0,), {"x": "0"})), run("c", Event((9.0,), {"x": "d"}))],
        [3],
    ),
    "different initial values": ([run("a"), Experiment("b", DATA, initial={"x": "d"})], [3, 3]),
    "a switch of their own": ([run("a", on=0.5), run("b", on=0.5), run("c", on="e")], [3, 4]),
}


@pytest.mark.parametrize("engine", ["heyoka", "casadi"])
@pytest.mark.parametrize("name", SHARING)
def test_shared_segments_have_the_values_of_each_condition_on_its_own(
    name: str, engine: EngineName
) -> None:
    whole = problem(SHARING[name][0])
    vector = np.linspace(0.4, 1.2, len(whole.keys))
    residuals, jacobian = alone(whole, vector, engine)
    found = evaluated(ForwardMap(whole, engine), vector)
    assert found.residuals == pytest.approx(residuals, rel=2e-7, abs=2e-7)
    assert found.jacobian == pytest.approx(jacobian, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("name", SHARING)
def test_shared_segments_are_integrated_once(name: str, integrations: list[int]) -> None:
    experiments, directions = SHARING[name]
    whole = problem(experiments)
    ForwardMap(whole, "heyoka").evaluate(np.linspace(0.4, 1.2, len(whole.keys)))
    assert integrations == directions


@pytest.mark.parametrize("name", SHARING)
def test_the_cost_alone_shares_too(name: str, integrations: list[int]) -> None:
    experiments, directions = SHARING[name]
    whole = problem(experiments)
    vector = np.linspace(0.4, 1.2, len(whole.keys))
    forward = ForwardMap(whole, "casadi")
    cost = forward.cost(vector)
    assert integrations == [0] * len(directions)
    assert cost == pytest.approx(evaluated(forward, vector).cost, rel=1e-7)


@pytest.mark.slow
def test_the_jacobian_of_shared_segments_is_that_of_the_residuals() -> None:
    whole = problem(SHARING["a long run before"][0])
    forward = ForwardMap(whole, "heyoka")
    vector = np.linspace(0.4, 1.2, len(whole.keys))
    expected = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-3)
    assert evaluated(forward, vector).jacobian == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_separate_doses_of_conditions_are_exact() -> None:
    """x' = -k x from x0, with a dose of its own for each condition at t = 1."""
    doses = [0.0, 0.5, 2.0]
    whole = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}, "D": {"per_experiment": True}},
        initial={"x": 1.0},
        experiments=[
            Experiment(
                f"dose {i}",
                {"t": [0.0, 1.0, 2.0 + i], "x": [0.0, 0.0, 0.0]},
                events=[Event((1.0,), {"x": "x + D"})],
            )
            for i in range(3)
        ],
    )
    vector = np.array([0.8, *doses])

    def exact(v: Array) -> Array:
        k = v[0]
        found = []
        for i, dose in enumerate(v[1:]):
            found += [1.0, np.exp(-k), (np.exp(-k) + dose) * np.exp(-k * (1 + i))]
        return np.array(found)

    found = evaluated(ForwardMap(whole), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-10)
    assert found.jacobian == pytest.approx(differences(exact, vector), rel=1e-8, abs=1e-9)


# Inputs ---------------------------------------------------------------------------------------


def with_inputs(kind: str, second: list[float]) -> Problem:
    times = [0.0, 1.0, 2.0, 3.0, 4.0]
    first = [0.0, 1.0, 0.5, 0.5, 2.0]
    return Problem(
        Model(ode={"x": "a*u - x"}, observables={"y": "x"}, inputs={"u": kind}),
        parameters={"a": {}},
        initial={"x": 0.3},
        experiments=[
            Experiment("a", {"t": times, "u": first, "y": times}),
            Experiment("b", {"t": times, "u": second, "y": times}),
            Experiment("c", {"t": times, "u": second, "y": [np.nan, 1.0, 1.0, np.nan, np.nan]}),
        ],
    )


@pytest.mark.parametrize(
    ("kind", "second", "count"),
    [
        ("constant", [0.0, 1.0, 0.5, 0.7, 3.0], 2),  # they part at t = 3
        ("linear", [0.0, 1.0, 0.5, 0.5, 3.0], 2),  # at t = 3, where the lines begin to differ
        ("linear", [0.0, 1.0, 0.5, 0.5, 2.0], 1),
        ("linear", [0.1, 1.0, 0.5, 0.5, 2.0], 2),  # at t0
        ("cubic", [0.0, 1.0, 0.5, 0.5, 2.1], 2),  # at t0: a spline has no local part
    ],
)
def test_conditions_part_where_their_inputs_become_different(
    kind: str, second: list[float], count: int, integrations: list[int]
) -> None:
    whole = with_inputs(kind, second)
    found = evaluated(ForwardMap(whole), np.array([0.7]))
    assert len(integrations) == count
    residuals, jacobian = alone(whole, np.array([0.7]), "auto")
    assert found.residuals == pytest.approx(residuals, rel=1e-9, abs=1e-10)
    assert found.jacobian == pytest.approx(jacobian, rel=1e-9, abs=1e-10)


def test_an_input_that_is_observed_alone_parts_no_conditions(integrations: list[int]) -> None:
    times = [0.0, 1.0, 2.0]
    whole = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x + u"}, inputs={"u": "linear"}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment("a", {"t": times, "u": [0.0, 0.0, 0.0], "y": times}),
            Experiment("b", {"t": times, "u": [1.0, 1.0, 1.0], "y": times}),
        ],
    )
    found = evaluated(ForwardMap(whole), np.array([0.5]))
    assert len(integrations) == 1
    assert found.residuals[3:] == pytest.approx(found.residuals[:3] + 1.0)


# Further --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear algebra", "nonlinear algebra", "kinks"])
def test_equations_of_any_kind_are_shared(name: str, integrations: list[int]) -> None:
    plain, vector = ZOO[name]()
    data = plain.experiments[0].data
    state = next(iter(plain.model.ode))
    double = Event((1.2,), {state: f"2*{state}"})
    experiments = [
        Experiment("a", data),
        Experiment("b", data),
        Experiment("c", data, events=[double]),
    ]
    whole = Problem(
        plain.model, parameters=plain.parameters, initial=plain.initial, experiments=experiments
    )
    found = evaluated(ForwardMap(whole), vector)
    assert len(integrations) == 2
    residuals, jacobian = alone(whole, vector, "auto")
    assert found.residuals == pytest.approx(residuals, rel=1e-6, abs=1e-6)
    assert found.jacobian == pytest.approx(jacobian, rel=1e-5, abs=1e-5)


def test_a_failure_is_that_of_the_first_condition_that_shares_the_segment() -> None:
    whole = Problem(
        Model(ode={"x": "k*x^2"}, observables={"y": "s*x"}, constants={"s": 1.0}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment("first", {"t": [0.0, 3.0], "y": [1.0, 1.0]}, constants={"s": 2.0}),
            Experiment("second", {"t": [0.0, 3.0], "y": [1.0, 1.0]}),
        ],
    )
    found = ForwardMap(whole).evaluate(np.array([1.0]))
    assert isinstance(found, Failure)
    assert found.experiment == "first"
    assert found.time == pytest.approx(1.0, rel=1e-2)


def test_an_initial_value_that_is_not_finite_fails_for_all() -> None:
    whole = Problem(
        Model(ode={"x": "-x"}, observables={"y": "s*x"}, constants={"s": 1.0}),
        parameters={"k": {}},
        initial={"x": "1/k"},
        experiments=[Experiment(n, {"t": [0.0, 3.0], "y": [1.0, 1.0]}) for n in ("a", "b")],
    )
    found = ForwardMap(whole).evaluate(np.array([0.0]))
    assert isinstance(found, Failure)
    assert (found.experiment, found.reason) == ("a", "the initial value of x is not finite")


def test_an_evaluation_of_many_conditions_does_not_touch_the_last_one() -> None:
    whole = problem(SHARING["events that differ only later"][0])
    forward = ForwardMap(whole)
    vector = np.linspace(0.4, 1.2, len(whole.keys))
    first = evaluated(forward, vector)
    kept = first.residuals.copy(), first.jacobian.copy()
    assert isinstance(forward.evaluate(2 * vector), Evaluation)
    assert np.array_equal(first.residuals, kept[0])
    assert np.array_equal(first.jacobian, kept[1])
    again = evaluated(forward, vector)
    assert np.array_equal(again.jacobian, kept[1])


def test_unknowns_of_experiments_part_them() -> None:
    whole = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": Parameter(per_experiment=True)},
        initial={"x": 1.0},
        experiments=[Experiment(n, {"t": [0.0, 1.0], "x": [1.0, 1.0]}) for n in ("a", "b")],
    )
    found = evaluated(ForwardMap(whole), np.array([0.5, 1.0]))
    assert found.residuals == pytest.approx([0.0, np.exp(-0.5) - 1, 0.0, np.exp(-1.0) - 1])


# Units ----------------------------------------------------------------------------------------


def decays(rates: list[float]) -> Problem:
    """Conditions of which those with a high rate are stiff, each with two scales."""
    data = {"t": [0.0, 0.5, 50.0], "y": [1.0, 0.5, 0.3]}
    return Problem(
        Model(
            ode={"x": "-k*fast*(x - cos(t))", "z": "x - z"},
            observables={"y": "s*(x + z)"},
            constants={"fast": 1.0, "s": 1.0},
        ),
        parameters={"k": {}, "scale": {}},
        initial={"x": {}, "z": 0.0},
        experiments=[
            Experiment(f"{i} {s}", data, constants={"fast": rate, "s": s})
            for i, rate in enumerate(rates)
            for s in ("scale", 2.0)
        ],
    )


class Chunks:
    """Units integrated elsewhere, in chunks of a given size, by a forward map of their own."""

    def __init__(self, whole: Problem, size: int) -> None:
        self.forward = ForwardMap(whole)
        self.size = size
        self.numbers: list[int] = []

    def __call__(
        self,
        numbers: Sequence[int],
        vector: Array,
        choices: Sequence[EngineChoice],
        sensitivities: bool,
    ) -> dict[int, UnitOutcome]:
        found: dict[int, UnitOutcome] = {}
        for first in range(0, len(numbers), self.size):
            some = numbers[first : first + self.size]
            self.numbers += some
            found |= self.forward.integrate_units(some, vector, choices, sensitivities)
        return pickle.loads(pickle.dumps(found))  # type: ignore[no-any-return]


UNITS: dict[str, Callable[[], Problem]] = {
    **{name: partial(problem, experiments) for name, (experiments, _) in SHARING.items()},
    "all stiff": lambda: decays([1e5, 2e5, 3e5, 4e5]),
    "the last ones stiff": lambda: decays([1.0, 2.0, 1e5, 2e5]),
    "the first one stiff": lambda: decays([1e5, 1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("size", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", UNITS)
def test_units_integrated_elsewhere_give_the_same_to_the_last_digit(name: str, size: int) -> None:
    whole = UNITS[name]()
    vector = np.linspace(0.4, 1.2, len(whole.keys))
    here, there = ForwardMap(whole), ForwardMap(whole)
    there.integrate_elsewhere(Chunks(whole, size))
    expected, found = evaluated(here, vector), evaluated(there, vector)
    assert np.array_equal(found.residuals, expected.residuals)
    assert np.array_equal(found.jacobian, expected.jacobian)
    assert found.choice == expected.choice
    again = there.evaluate_cost(vector, found.choice)
    assert isinstance(again, Evaluation)
    assert again.cost == here.cost(vector, expected.choice)


def test_the_first_unit_finds_the_engine_that_all_others_begin_with(
    integrations: list[int],
) -> None:
    whole = decays([1e5, 2e5, 3e5, 4e5])
    forward, elsewhere = ForwardMap(whole), Chunks(whole, 2)
    forward.integrate_elsewhere(elsewhere)
    vector = np.array([1.0, 0.5, 1.2])
    first = evaluated(forward, vector)
    assert first.choice.stiff
    assert elsewhere.numbers == [1, 2, 3]
    elsewhere.numbers.clear()
    evaluated(forward, vector, first.choice)
    assert elsewhere.numbers == [0, 1, 2, 3]
    assert len(integrations) == 2 * 4


def test_each_condition_continues_with_its_best_engine() -> None:
    pytest.importorskip("heyoka")
    whole = decays([1.0, 1e5, 2.0])
    vector, forward = np.array([1.0, 0.5, 1.2]), ForwardMap(whole)
    found = evaluated(forward, vector)
    assert isinstance(found.choice, UnitChoices)
    # A trunk each, and a limb of nothing.
    assert [choice.stiff for choice in found.choice.units] == 2 * [False] + 2 * [True] + 2 * [False]
    assert not found.choice.stiff  # most are not


def test_limbs_that_come_one_by_one_grow_from_one_trunk(integrations: list[int]) -> None:
    whole = problem(SHARING["a long run before"][0])
    forward, vector = ForwardMap(whole, "heyoka"), np.linspace(0.4, 1.2, len(whole.keys))
    assert forward.units == 2
    for number in range(2):
        forward.integrate_units([number], vector, 3 * [UNDECIDED], True)
    assert integrations == [3, 4, 3, 3]


def test_a_unit_that_fails_elsewhere_fails_here() -> None:
    whole = Problem(
        Model(ode={"x": "k*r*x^2"}, constants={"r": 0.0}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment(f"{i}", {"t": [0.0, 3.0], "x": [1.0, 1.0]}, constants={"r": float(i)})
            for i in range(4)
        ],
    )
    forward = ForwardMap(whole)
    expected = forward.evaluate(np.array([0.2]))
    assert isinstance(expected, Failure)
    assert expected.experiment == "2"
    forward.integrate_elsewhere(Chunks(whole, 2))
    assert forward.evaluate(np.array([0.2])) == expected
