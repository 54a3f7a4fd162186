"""Another engine integrates once more, and who differs from the rest is not believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.common.errors import InputError
from odefit.problem.vector_field import SensitivityPattern
from odefit.reporting.notices import opinion_sentence
from odefit.simulation import ForwardMap
from odefit.simulation.engines import engines
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution
from odefit.simulation.engines.lsoda_engine import LsodaEngine
from odefit.simulation.engines.registry import ENGINES, EngineRow
from odefit.simulation.other_integrations import able_to_integrate
from odefit.simulation.second_opinion import better_map, second_opinion
from odefit.simulation.simulations import confirmed_simulation

TIMES = np.linspace(0.0, 5.0, 11)


def decay(noise: Any = None) -> odefit.Problem:
    data = pd.DataFrame({"t": TIMES, "x": 2 * np.exp(-0.7 * TIMES)})
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data=data,
        parameters={"k": {"guess": 0.7}},
        initial={"x": 2.0},
        noise={} if noise is None else {"x": noise},
    )


class Wrong:
    """An engine that is off by a share of each value."""

    def __init__(self, inner: Any, share: float) -> None:
        self.name, self._inner, self._share = inner.name, inner, share

    def integrate(self, *arguments: Any) -> SegmentSolution | EngineFailure:
        found: SegmentSolution = self._inner.integrate(*arguments)
        found.states[:] *= 1 + self._share
        return found


def with_error(row: EngineRow, share: float) -> EngineRow:
    """A row whose engine is off by a share of each value."""
    return replace(row, make=lambda task: Wrong(row.make(task), share))


def breaking(monkeypatch: pytest.MonkeyPatch, names: set[str], share: float) -> None:
    """Let some engines be wrong."""

    rows = {name: with_error(row, share) for name, row in ENGINES.items() if name in names}
    monkeypatch.setattr(engines, "ENGINES", {**ENGINES, **rows})


USUAL: set[str] = {"runge-kutta"}  # the explicit engine of linear equations


def test_agreeing_engines_are_not_mentioned() -> None:
    forward = ForwardMap(decay())
    for noise in (True, False):
        opinion = second_opinion(forward, np.array([0.7]), noise=noise)
        assert opinion.agrees
        assert opinion.difference is not None
        assert opinion.difference.ratio < 0.1
        assert not opinion_sentence(opinion)
        assert better_map(forward, opinion) is None


def test_an_engine_that_differs_from_two_others_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaking(monkeypatch, USUAL, 1e-3)
    forward = ForwardMap(decay())
    opinion = second_opinion(forward, np.array([0.7]), noise=False)
    assert not opinion.agrees
    better = better_map(forward, opinion)
    assert better is not None
    found = better.trajectory(np.array([0.7]))
    assert np.allclose(found.states[:, 0], 2 * np.exp(-0.7 * TIMES), rtol=1e-7)  # type: ignore[union-attr]
    sentence = opinion_sentence(opinion)
    assert "x at t =" in sentence
    assert "gave another value" in sentence


def test_a_second_opinion_that_is_wrong_itself_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forward = ForwardMap(decay())
    other = second_opinion(forward, np.array([0.7]), noise=False).engine
    breaking(monkeypatch, {other}, 1e-3)
    monkeypatch.setattr(
        "odefit.simulation.second_opinion.judging_engines", lambda *_: [("bdf", 1e-11)]
    )
    opinion = second_opinion(ForwardMap(decay()), np.array([0.7]), noise=False)
    assert opinion.difference is not None
    assert opinion.difference.ratio > 1
    assert opinion.agrees
    assert not opinion_sentence(opinion)


def test_a_second_opinion_that_is_defined_nowhere_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states are negative under a root."""
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "sqrt(x)"}),
        data={"t": TIMES[1:], "y": np.exp(-0.35 * TIMES[1:])},
        parameters={"k": {"guess": 0.7}},
        initial={"x": 1.0},
        t0=0.0,
        noise={"y": {"sd": 0.1}},
    )
    other = second_opinion(ForwardMap(problem), np.array([0.7])).engine
    breaking(monkeypatch, {other}, -2.0)
    opinion = second_opinion(ForwardMap(problem), np.array([0.7]))
    assert opinion.engine == other
    assert opinion.difference is None


def test_a_message_reports_engines_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"heyoka": 1e-3, "runge-kutta": 2e-3, "bdf": -1e-3, "casadi": 3e-3, "lsoda": 0.02}
    rows = {n: with_error(row, shares[n]) for n, row in ENGINES.items() if n in shares}
    monkeypatch.setattr(engines, "ENGINES", rows)
    monkeypatch.setattr(
        "odefit.simulation.second_opinion.judging_engines", lambda *_: [("lsoda", None)]
    )
    opinion = second_opinion(ForwardMap(decay()), np.array([0.7]), noise=False)
    assert not opinion.agrees
    assert opinion.better is None
    assert opinion_sentence(opinion).startswith("No two integrators agree")


@pytest.mark.parametrize(("sd", "agrees"), [(0.05, True), (1e-3, False)])
def test_differences_count_in_units_of_the_noise(
    sd: float, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, USUAL, 1e-3)
    opinion = second_opinion(ForwardMap(decay({"sd": sd})), np.array([0.7]))
    assert opinion.agrees is agrees


def test_the_simulation_of_the_command_line_has_the_better_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaking(monkeypatch, USUAL, 1e-3)
    table, opinion = confirmed_simulation(decay(), {"k": 0.7})
    assert opinion is not None
    assert not opinion.agrees
    assert np.allclose(table["x"], 2 * np.exp(-0.7 * TIMES), rtol=1e-7)


def test_integration_from_an_answer_uses_the_better_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaking(monkeypatch, USUAL, 1e-3)
    forward = able_to_integrate(decay({"sd": 1e-4}), np.array([0.7]))
    found = forward.trajectory(np.array([0.7]))
    assert np.allclose(found.states[:, 0], 2 * np.exp(-0.7 * TIMES), rtol=1e-7)  # type: ignore[union-attr]


def test_algebraic_equations_have_one_by_a_tighter_tolerance() -> None:
    data = pd.DataFrame({"t": TIMES, "x": 2 * np.exp(-0.7 * TIMES)})
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x + 0*z"}, algebraic={"z": "z + z^3 - x"}),
        data=data,
        parameters={"k": {"guess": 0.7}},
        initial={"x": 2.0},
    )
    opinion = second_opinion(ForwardMap(problem), np.array([0.7]), noise=False)
    assert opinion.engine == "casadi"
    assert opinion.agrees


def test_lsoda_refuses_sensitivities() -> None:
    field = ForwardMap(decay()).field
    with pytest.raises(InputError, match="only states"):
        LsodaEngine(field, SensitivityPattern(1, frozenset()), 1e-9)


def test_lsoda_agrees_with_the_implicit_engine_through_doses_and_inputs() -> None:
    data = pd.DataFrame({"t": TIMES, "x": np.ones(11), "u": np.abs(np.sin(TIMES))})
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x + u"}, inputs={"u": "linear"}),
        experiments=[
            odefit.Experiment(
                "a", data, events=[odefit.Event((1.3,), {"x": "x + 5"})]
            )
        ],
        parameters={"k": {"guess": 0.7}},
        initial={"x": 2.0},
    )  # fmt: skip
    vector = np.array([0.7])
    found = ForwardMap(problem, "lsoda").trajectories(vector, sensitivities=False)
    exact = ForwardMap(problem, "bdf", 1e-11).trajectories(vector)
    assert np.allclose(found[0].states, exact[0].states, rtol=1e-6)  # type: ignore[index]


def test_lsoda_says_why_it_gives_up() -> None:
    data = pd.DataFrame({"t": [0.0, 2.0], "x": [1.0, 1.0]})
    problem = odefit.Problem(
        odefit.Model(ode={"x": "k*sqrt(1 - t)"}), data=data, parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0},
    )  # fmt: skip
    found = ForwardMap(problem, "lsoda").trajectories(np.array([1.0]), sensitivities=False)
    assert "LSODA gives up" in str(found)
