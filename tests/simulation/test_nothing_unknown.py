"""Problems in which nothing is unknown have their exact solutions, whatever is an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.common.arrays import Array
from odefit.problem import problem_from_mapping
from odefit.simulation import Evaluation, Failure, ForwardMap, simulate
from odefit.simulation.simulations import residual_table

TIMES = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
ENGINES = ["heyoka", "runge-kutta", "bdf", "casadi"]


def problem_of(**sections: Any) -> odefit.Problem:
    """x' = -k x from x(0) = 3/c = 1.5 with k = 1 and c = 2, apart from `sections`."""
    experiment = {"name": "run", "data": {"t": TIMES, "x": np.ones(5)}}
    experiment |= sections.pop("experiment", {})
    base = {
        "format": 1,
        "ode": {"x": "-k*x"},
        "constants": {"k": 1.0, "c": 2.0},
        "initial": {"x": "3/c"},
        "experiment": [experiment],
    }
    return problem_from_mapping({**base, **sections})


def saw(t: Array) -> Array:
    """1.5 exp(-t), with 1.5 more each time that it has fallen to 0.5: at ln 3, then each ln 4."""
    count = np.ceil((t - np.log(3.0)) / np.log(4.0)).clip(0)
    last = np.log(3.0) + (count - 1) * np.log(4.0)
    return np.where(count > 0, 2.0 * np.exp(-(t - last)), 1.5 * np.exp(-t))


def event(**fields: Any) -> dict[str, Any]:
    return {"experiment": {"event": [fields]}}


CASES: dict[str, tuple[dict[str, Any], Callable[[Array], Array]]] = {
    "an initial value": ({}, lambda t: 1.5 * np.exp(-t)),
    "an initial value that is a constant": (
        {"initial": {"x": "c"}},
        lambda t: 2.0 * np.exp(-t),
    ),
    "parameters held fixed": (
        {"constants": {}, "parameters": {"k": {"fixed": 1.0}, "c": {"fixed": 2.0}}},
        lambda t: 1.5 * np.exp(-t),
    ),
    "parameters of equal bounds": (
        {"constants": {"k": 1.0}, "parameters": {"c": {"lower": 2.0, "upper": 2.0}}},
        lambda t: 1.5 * np.exp(-t),
    ),
    "an initial value of the experiment": (
        {"experiment": {"initial": {"x": "5*c"}}},
        lambda t: 10.0 * np.exp(-t),
    ),
    "a constant of the experiment": (
        {"constants": {"c": 2.0}, "experiment": {"constants": {"k": "c/4"}}},
        lambda t: 1.5 * np.exp(-t / 2),
    ),
    "a new value of a state": (
        event(time=1.0, assign={"x": "x + 3/c"}),
        lambda t: 1.5 * np.exp(-t) + np.where(t > 1.0, 1.5 * np.exp(1.0 - t), 0.0),
    ),
    "a new value of a constant": (
        event(time=1.0, assign={"k": "k*c"}),
        lambda t: 1.5 * np.exp(-t - np.maximum(t - 1.0, 0.0)),
    ),
    "the time of an event": (
        event(time="c/4", assign={"x": "3"}),
        lambda t: np.where(t > 0.5, 3.0 * np.exp(0.5 - t), 1.5 * np.exp(-t)),
    ),
    "the condition of an event": (event(when="x < 1/c", assign={"x": "x + 3/c"}), saw),
    "an algebraic equation": (
        {"ode": {"x": "-k*z"}, "algebraic": {"z": "z - c*x"}},
        lambda t: 1.5 * np.exp(-2.0 * t),
    ),
    "a steady start": (
        {
            "ode": {"x": "c - k*x"},
            "experiment": {"steady_state": True, "event": [{"time": 0.0, "assign": {"k": "k*c"}}]},
        },
        lambda t: 1.0 + np.exp(-2.0 * t),
    ),
    "the time of a switch": (
        {"ode": {"x": "-if(t < c/2, k, k/c)*x"}},
        lambda t: 1.5 * np.exp(-np.minimum(t, 1.0) - np.maximum(t - 1.0, 0.0) / 2),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_trajectory_is_the_exact_one(case: str) -> None:
    sections, exact = CASES[case]
    problem = problem_of(**sections)
    assert problem.keys == ()
    found = simulate(problem, np.zeros(0))
    assert not isinstance(found, Failure), found
    np.testing.assert_allclose(found.states["x"], exact(TIMES), rtol=2e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_engines_find_it(engine: str) -> None:
    found = ForwardMap(problem_of(), engine=engine).evaluate(np.zeros(0))  # type: ignore[arg-type]
    assert isinstance(found, Evaluation)
    assert found.objective == pytest.approx(float(np.sum((1.5 * np.exp(-TIMES) - 1.0) ** 2)))
    assert found.jacobian.shape == (5, 0)


def test_residuals_have_the_observable_and_the_noise_of_the_constants() -> None:
    problem = problem_of(
        observables={"y": "c*x + 1/c"},
        noise={"y": {"sd": "0.1*c + 0.01*c*y"}},
        experiment={"data": {"t": TIMES, "y": np.ones(5)}},
    )
    table = residual_table(problem, np.zeros(0))
    assert not isinstance(table, Failure)
    exact = 3.0 * np.exp(-TIMES) + 0.5
    np.testing.assert_allclose(table[0].predicted, exact, rtol=2e-7)
    np.testing.assert_allclose(table[0].sds, 0.2 + 0.02 * exact, rtol=2e-7)
    np.testing.assert_allclose(table[0].standardized, (exact - 1.0) / table[0].sds, rtol=1e-6)


def test_a_model_of_sbml_needs_nothing_to_be_estimated() -> None:
    """Two amounts in a compartment of size 2; their initial values are quotients."""
    model = odefit.read_sbml(
        '<sbml xmlns="http://www.sbml.org/sbml/level2/version4" level="2" version="4"><model>'
        '<listOfCompartments><compartment id="cell" size="2"/></listOfCompartments><listOfSpecies>'
        '<species id="A" compartment="cell" initialAmount="6"/>'
        '<species id="B" compartment="cell" initialAmount="1"/></listOfSpecies>'
        '<listOfParameters><parameter id="k" value="0.5"/></listOfParameters><listOfReactions>'
        '<reaction id="r"><listOfReactants><speciesReference species="A"/></listOfReactants>'
        '<listOfProducts><speciesReference species="B"/></listOfProducts><kineticLaw>'
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/><ci>cell</ci><ci>k</ci>'
        "<ci>A</ci></apply></math></kineticLaw></reaction></listOfReactions></model></sbml>"
    )
    sections = model.mapping()
    sections["experiment"][0]["data"] = {"t": TIMES, "A": np.ones(5)}
    found = simulate(problem_from_mapping(sections), np.zeros(0))
    assert not isinstance(found, Failure), found
    np.testing.assert_allclose(found.states["A"], 3.0 * np.exp(-TIMES / 2), rtol=2e-7)
    np.testing.assert_allclose(found.states["B"], 3.5 - 3.0 * np.exp(-TIMES / 2), rtol=2e-7)
