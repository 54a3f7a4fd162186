"""Expansion and the unknowns that they share."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.problem.experiment import Event, Experiment
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.series.number_fields import PRIME
from tests.structure.models import TIMES, problem

NOTHING = np.zeros((1, 0, 2), dtype=complex)
"""No known function."""

DATA = {"t": TIMES, "y": np.cos(TIMES)}


def test_known_and_fixed_values_are_not_unknowns() -> None:
    model = problem(
        {"x": "-k*x + c", "z": "-m*z"},
        {"y": "x + z"},
        {"k": {}, "m": {"fixed": 0.5}},
        {"x": 2.0, "z": {}},
        constants={"c": 3.0},
    )
    assert DifferentiatedSystem(model, free_states=False).names == ["k", "z"]
    assert DifferentiatedSystem(model, free_states=True).names == ["k", "x@", "z@"]


def test_given_initial_values_are_exact_modulo_the_prime() -> None:
    model = problem({"x": "-k*x"}, {"y": "x"}, ["k"], {"x": 0.1})
    system = DifferentiatedSystem(model, free_states=False)
    point = system.expansions[0].modular_expansion_point(1, np.random.default_rng(0))
    taylor = system.run_modular(0, np.array([[7]]), 1, point)
    tenth = pow(10, -1, PRIME)
    assert taylor.outputs[0, :, 0].tolist() == [tenth, -7 * tenth % PRIME]


def test_experiments_share_parameters_and_have_initial_values_of_their_own() -> None:
    system = DifferentiatedSystem(
        Problem(
            Model(ode={"x": "-k*x*d"}, observables={"y": "x"}, constants={"d": 1.0}),
            parameters={"k": {}},
            initial={"x": {"per_experiment": True}},
            experiments=[
                Experiment("one", DATA),
                Experiment("two", DATA, constants={"d": 2.0}),
                Experiment("three", DATA, initial={"x": 1.0}),
            ],
        ),
        free_states=False,
    )
    assert system.names == ["k", "x[one]", "x[two]"]
    assert [b.unknowns for b in system.expansions] == [("k", "x[one]"), ("k", "x[two]"), ("k",)]
    point = np.array([[2.0, 3.0, 5.0]], dtype=complex)
    rates = [
        system.run(k, point, 1, NOTHING[:, :, 0], NOTHING).outputs[0, 1, 0].real for k in range(3)
    ]
    assert rates == [-6.0, -20.0, -2.0]


def test_several_times_have_separate_states() -> None:
    model = problem({"x": "-k*x"}, {"y": "x"}, ["k"])
    assert DifferentiatedSystem(model, free_states=True, times=2).names == ["k", "x@#1", "x@#2"]


def test_events_at_the_initial_time_count_and_later_ones_do_not() -> None:
    def with_event(time: float) -> DifferentiatedSystem:
        return DifferentiatedSystem(
            Problem(
                Model(ode={"x": "-k*x"}, observables={"y": "x"}),
                parameters={"k": {}, "dose": {}},
                initial={"x": 1.0},
                experiments=[
                    Experiment("run", DATA, t0=0.0, events=[Event((time,), {"x": "x + dose"})])
                ],
            ),
            free_states=False,
        )

    assert with_event(0.0).names == ["k", "dose"]
    assert with_event(0.5).names == ["k"]


def test_a_model_with_a_kink_has_no_taylor_series_and_it_is_reported_why() -> None:
    with pytest.raises(NoTaylorSeriesError) as caught:
        DifferentiatedSystem(problem({"x": "-k*abs(x)"}, {"y": "x"}, ["k"]), free_states=False)
    assert caught.value.reason.startswith("abs(...) has a kink")


def test_a_generic_point_satisfies_the_constraints() -> None:
    model = problem({"x": "-k*z + sin(x)"}, {"y": "x"}, ["k"], algebraic={"z": "z^3 + z - sqrt(x)"})
    system = DifferentiatedSystem(model, free_states=False)
    values, around = system.generic_point(np.random.default_rng(0), 3)
    known, functions = around[0]
    expansion = system.expansions[0]
    taylor = system.run(0, values[None], 3, known[None], functions[None])
    constraints = taylor.outputs[0, :, len(expansion.observables) : expansion.outputs]
    assert np.abs(constraints).max() < 1e-10
