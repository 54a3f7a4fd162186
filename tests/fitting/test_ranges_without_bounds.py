"""Unknowns without bounds: the search begins where the model does something, in any unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, ForwardMap, Model, Problem, Status

GAS = 8.314
A, E = 4e9, 6.5e4
SECONDS_A_YEAR = 3.156e7
FREE: Mapping[str, Any] = {}
POSITIVE = {"lower": 0.0}

ARRHENIUS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, float]]] = {
    "factor": (
        "A*exp(-E/(8.314*T))",
        {"A": POSITIVE, "E": POSITIVE},
        {"A": A, "E": E},
    ),
    "rate at a reference": (
        "kr*exp(-E/8.314*(1/T - 1/330))",
        {"kr": POSITIVE, "E": POSITIVE},
        {"kr": A * math.exp(-E / (GAS * 330)), "E": E},
    ),
    "natural logarithm": (
        "exp(a - E/(8.314*T))",
        {"a": FREE, "E": POSITIVE},
        {"a": math.log(A), "E": E},
    ),
    "decimal logarithm": (
        "10^(a - E/(2.302585*8.314*T))",
        {"a": FREE, "E": FREE},
        {"a": math.log10(A), "E": E},
    ),
    "temperature of activation": (
        "A*exp(-b/T)",
        {"A": {"lower": 0.0, "upper": 1e15}, "b": {"lower": 0.0, "upper": 1e5}},
        {"A": A, "b": E / GAS},
    ),
    "kilojoules": (
        "A*exp(-E/(0.008314*T))",
        {"A": POSITIVE, "E": {"lower": 0.0, "upper": 300.0}},
        {"A": A, "E": E / 1000},
    ),
}


def found(problem: Problem, truth: Mapping[str, float], within: float) -> None:
    """Fit, and compare with the values of which the data are a simulation with noise."""
    result = odefit.fit(problem, seed=1, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.best.parameters == pytest.approx(truth, rel=within)
    at_truth = 2 * ForwardMap(problem).cost(np.array([truth[k] for k in problem.keys]))
    unlikely = 25.0  # more than noise lets the optimum gain over the truth
    assert at_truth - unlikely < result.objective <= at_truth


@pytest.mark.slow
@pytest.mark.parametrize("form", ARRHENIUS)
def test_a_rate_that_depends_on_temperature_is_found_in_every_form(form: str) -> None:
    rate, unknowns, truth = ARRHENIUS[form]
    random = np.random.default_rng(0)
    times, runs = np.linspace(1.0, 12.0, 10), []
    for kelvin in (310.0, 320.0, 330.0, 345.0):
        k = A * math.exp(-E / (GAS * kelvin))
        values = np.exp(-k * times) + 0.01 * random.standard_normal(10)
        data = {"t": times, "c": values}
        constants = {"T": kelvin}
        runs.append(Experiment(f"{kelvin} K", data, 0.0, {"c": 1.0}, constants=constants))
    model = Model(ode={"c": f"-({rate})*c"}, constants={"T": 310.0})
    noise = {"c": {"sd": 0.01}}
    found(Problem(model, parameters=unknowns, experiments=runs, noise=noise), truth, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("molar", [1.0, 1e-9, 1e-12])
@pytest.mark.parametrize("seconds", [1.0, SECONDS_A_YEAR])
def test_binding_is_found_in_molar_and_picomolar_seconds_and_years(
    molar: float, seconds: float
) -> None:
    """C' = kon (R - C)(L - C) - koff C has a closed form, which the data are of, with noise."""
    on, off, receptor, ligand, noise = 1e6, 4e-3, 2e-9, 5e-9, 1e-11
    times = np.linspace(20.0, 900.0, 14)
    mean = (receptor + ligand + off / on) / 2
    spread = math.sqrt(mean**2 - receptor * ligand)
    low, high = mean - spread, mean + spread
    decay = np.exp(-2 * on * spread * times)
    values = low * (1 - decay) / (1 - low / high * decay)
    values = values + noise * np.random.default_rng(0).standard_normal(14)
    problem = Problem(
        Model(
            ode={"C": "kon*(R - C)*(L - C) - koff*C"},
            constants={"R": receptor / molar, "L": ligand / molar},
        ),
        {"t": times / seconds, "C": values / molar},
        {"kon": POSITIVE, "koff": POSITIVE},
        {"C": 0.0},
        noise={"C": {"sd": noise / molar}},
        t0=0.0,
    )
    found(problem, {"kon": on * molar * seconds, "koff": off * seconds}, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 1e-9])
@pytest.mark.parametrize("bounds", [FREE, POSITIVE], ids=["no bounds", "positive"])
def test_an_open_hill_function_is_found(unit: float, bounds: Mapping[str, Any]) -> None:
    truth = {"v": 2.0 * unit, "K": 1.3 * unit, "n": 2.5, "d": 0.8}
    random = np.random.default_rng(0)
    times, runs = np.linspace(0.5, 6.0, 6), []
    for u in (0.2, 0.6, 1.2, 2.5, 8.0):
        plateau = 2.0 * u**2.5 / (1.3**2.5 + u**2.5) / 0.8
        values = plateau * (1 - np.exp(-0.8 * times)) + 0.03 * random.standard_normal(6)
        data, constants = {"t": times, "y": values * unit}, {"u": u * unit}
        runs.append(Experiment(f"u = {u}", data, 0.0, {"y": 0.0}, constants=constants))
    model = Model(ode={"y": "v*u^n/(K^n + u^n) - d*y"}, constants={"u": unit})
    unknowns = dict.fromkeys(truth, bounds)
    noise = {"y": {"sd": 0.03 * unit}}
    found(Problem(model, parameters=unknowns, experiments=runs, noise=noise), truth, 0.1)
