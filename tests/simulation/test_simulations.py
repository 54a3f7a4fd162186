"""Simulations as tables, from what a user writes on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Experiment, InputError, Model, Problem, library
from odefit.simulation.simulations import confirmed_simulation, times_from_text, values_from_text


def decay(**more: object) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": [0.0, 1.0], "y": [1.0, 0.5]},
        {"k": {"guess": 2.0}, "s": 3.0},
        {"x": 1.0},
        **more,  # type: ignore[arg-type]
    )


def test_values_are_read_from_texts() -> None:
    found = values_from_text(["k=0.5", "S0[exp 1]=1e3", "a = -2"])
    assert found == {"k": 0.5, "S0[exp 1]": 1000.0, "a": -2.0}


@pytest.mark.parametrize("text", ["k", "k=", "=1", "k=one", "k=nan", "k=inf", "k==", ""])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected NAME=VALUE"):
        values_from_text([text])


def test_times_are_read_from_a_text() -> None:
    assert times_from_text("0:10:5", decay()).tolist() == [0, 2.5, 5, 7.5, 10]
    assert times_from_text("-1:1e3:2", decay()).tolist() == [-1, 1000]
    assert times_from_text("5, 0,1e1", decay()).tolist() == [0, 5, 10]
    assert times_from_text("5", decay()).tolist() == [5]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0:1",
        "0:1:1",
        "1:0:5",
        "0:1:2.5",
        "0:nan:3",
        "a:b:c",
        "0:1:2:3",
        "0:1:99999999999",
        "0,x",
        "1,,2",
        "0:1:\N{SUPERSCRIPT TWO}",
    ],
)
def test_times_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected FROM:TO:COUNT"):
        times_from_text(text, decay())


@pytest.mark.parametrize("count", ["1", "1e-9", "1000001", "1000000000", "nan"])
def test_a_number_of_times_beyond_the_limit_is_refused_with_the_limit(count: str) -> None:
    told = rf"a whole number of times from 2 to 1000000, got '{count}'"
    with pytest.raises(InputError, match=told):
        times_from_text(f"0:1e9:{count}", decay())


def test_a_number_of_times_with_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InputError, match="--times"):
        times_from_text(f"0:1:{'9' * 5000}", decay())


def test_a_table_holds_states_and_observables() -> None:
    table, _ = confirmed_simulation(decay(), {}, np.array([0.0, 1.0, 2.0]))
    assert list(table.columns) == ["t", "x", "y"]
    assert table["y"].to_numpy() == pytest.approx(3 * np.exp(-2 * table["t"].to_numpy()))


def test_values_replace_guesses_and_fixed_numbers() -> None:
    table, _ = confirmed_simulation(decay(), {"k": 0.0, "s": 7.0, "x": 2.0})
    assert table["y"].tolist() == [14.0, 14.0]


def test_an_unknown_name_is_refused_with_a_proposal() -> None:
    with pytest.raises(InputError, match="no parameter or state 'K'; did you mean 'k'"):
        confirmed_simulation(decay(), {"K": 1.0})


def test_values_that_are_missing_are_named() -> None:
    problem = decay().with_parameters(k={})
    with pytest.raises(InputError, match=r"no value for k; give --set k=VALUE"):
        confirmed_simulation(problem, {})


def test_a_simulation_that_fails_says_why() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}), {"t": [0.0, 2.0], "x": [1.0, 1.0]}, {"k": {}}, {"x": 1.0}
    )
    with pytest.raises(InputError, match=r"the simulation failed: .*t = 1: "):
        confirmed_simulation(problem, {"k": 1.0})


def test_a_table_stacks_several_experiments() -> None:
    data = {"t": [0.0, 1.0], "x": [1.0, 0.5]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {"per_experiment": True}},
        initial={"x": 1.0},
        experiments=[Experiment("a", data), Experiment("b", data)],
    )
    table, _ = confirmed_simulation(problem, {"k[a]": 1.0, "k[b]": 2.0})
    assert table["experiment"].tolist() == ["a", "a", "b", "b"]
    assert table["x"].to_numpy() == pytest.approx([1, np.exp(-1), 1, np.exp(-2)])


def test_an_estimated_standard_deviation_needs_no_value() -> None:
    problem = decay(noise={"y": {"sd": "estimate"}})
    assert len(confirmed_simulation(problem, {})[0]) == 2


@pytest.mark.parametrize("name", ["hiv-proteinase", "alpha-pinene", "sir"])
def test_library_problems_are_simulated_at_their_reference(name: str) -> None:
    problem, reference = library.load(name), library.reference(name)
    table, _ = confirmed_simulation(problem, {**reference.parameters, **reference.initial})
    assert len(table) == sum(len(c.times) for c in problem.conditions)
    assert np.isfinite(table.drop(columns="experiment", errors="ignore").to_numpy()).all()
