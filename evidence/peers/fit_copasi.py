"""One fit by COPASI in a process of its own: `whole_fit.py` starts it and reads what it prints.

    python evidence/peers/fit_copasi.py PROBLEM.toml scatter-search|levenberg-marquardt SEED

States become global quantities of type "ode", observables assignments, unknown initial values fit
items like the parameters. Every measurement has weight 1, so that COPASI's objective is the plain
sum of squares. Everything else is left at COPASI's defaults.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import basico
import pandas as pd

IMPORTED = time.perf_counter()

METHODS = {
    "scatter-search": ("Scatter Search", 1),
    "levenberg-marquardt": ("Levenberg - Marquardt", 10),
}
"""COPASI's name of the method, and how many random starts it gets."""


def safe(name: str) -> str:
    """A name that COPASI cannot take for a function, a constant or a keyword."""
    return f"q_{name}"


def translate(expression: str, names: set[str]) -> str:
    """An expression of the problem file in COPASI's notation."""
    return re.sub(
        r"[A-Za-z_]\w*",
        lambda m: f"{{Values[{safe(m[0])}]}}" if m[0] in names else m[0],
        expression,
    )


def fit_items(problem: dict[str, Any]) -> dict[str, tuple[str, float, float]]:
    """Of every unknown: the COPASI object that is fitted, and its bounds."""
    items = {}
    for name, given in problem["parameters"].items():
        items[name] = (f"Values[{safe(name)}].InitialValue", given["lower"], given["upper"])
    for name, given in problem["initial"].items():
        if isinstance(given, dict):
            items[name] = (f"Values[{safe(name)}].InitialValue", given["lower"], given["upper"])
    return items


def build(file: Path, folder: Path) -> dict[str, tuple[str, float, float]]:
    """Make the model and its parameter estimation task; the fit items by unknown."""
    problem = tomllib.loads(file.read_text(encoding="utf-8"))
    names = {*problem["ode"], *problem["parameters"]}
    items = fit_items(problem)
    basico.new_model(name="model", notes="")
    for name, given in problem["parameters"].items():
        middle = 0.5 * (given["lower"] + given["upper"])
        basico.add_parameter(safe(name), initial_value=middle, type="fixed")
    for name in problem["ode"]:
        given = problem["initial"][name]
        if isinstance(given, dict):
            given = 0.5 * (given["lower"] + given["upper"])
        basico.add_parameter(safe(name), initial_value=float(given))
    for name, rhs in problem["ode"].items():
        basico.set_parameters(safe(name), exact=True, type="ode", expression=translate(rhs, names))
    columns = {"t": "Time"}
    for name, expression in problem["observables"].items():
        basico.add_parameter(
            f"obs_{name}", type="assignment", expression=translate(expression, names)
        )
        columns[name] = f"Values[obs_{name}]"
    (experiment,) = problem["experiment"]
    data = pd.read_csv(file.parent / experiment["data"])
    basico.add_experiment("run", data.rename(columns=columns), data_dir=str(folder))
    weigh_equally(len(columns))
    basico.set_fit_parameters(
        [
            {"name": name, "lower": lower, "upper": upper, "start": 0.5 * (lower + upper)}
            for name, lower, upper in items.values()
        ]
    )
    return items


def weigh_equally(columns: int) -> None:
    """Weight 1 for every measurement, in place of weights made from the data."""
    model = basico.get_current_model()
    experiment = basico.get_experiment("run")
    experiment.setNormalizeWeightsPerExperiment(False)
    container = model.getModel().getMathContainer()
    experiments = model.getTask("Parameter Estimation").getProblem().getExperimentSet()
    # A weight equal to COPASI's own is not kept but follows it: its own must be settled first.
    experiment.calculateWeights()
    experiments.compile(container)
    mapping = experiment.getObjectMap()
    for column in range(1, columns):
        mapping.setScale(column, 1.0)
    experiments.compile(container)


def run(method: str, seed: int) -> tuple[float, list[float]]:
    """One fit from a random start; objective and solution.

    The seed is that of Scatter Search; COPASI draws the start itself, and takes no seed for it.
    """
    basico.run_parameter_estimation(
        method=method,
        randomize_start_values=True,
        calculate_statistics=False,
        update_model=False,
        settings={"method": {"Seed": seed}},
    )
    problem = basico.get_current_model().getTask("Parameter Estimation").getProblem()
    found = problem.getSolutionVariables(False)
    return float(problem.getSolutionValue()), [float(found.get(i)) for i in range(found.size())]


def objective_at(values: dict[str, float], items: dict[str, tuple[str, float, float]]) -> float:
    """COPASI's objective at given values of the unknowns: how the set-up is checked."""
    model = basico.get_current_model()
    problem = model.getTask("Parameter Estimation").getProblem()
    for i, name in enumerate(items):
        problem.getOptItem(i).setStartValue(values[name])
    basico.run_parameter_estimation(
        method="Current Solution Statistics",
        randomize_start_values=False,
        calculate_statistics=False,
        update_model=False,
    )
    return float(problem.getSolutionValue())


def main(arguments: list[str]) -> None:
    """Fit and print the outcome as JSON; with method "check", the objective at given values."""
    file, method, last = Path(arguments[0]), arguments[1], arguments[2]
    with tempfile.TemporaryDirectory() as folder:
        items = build(file, Path(folder))
        built = time.perf_counter()
        if method == "check":
            print(objective_at(json.loads(last), items))
            return
        name, starts = METHODS[method]
        runs = [run(name, 1000 * int(last) + k + 1) for k in range(starts)]
        objective, solution = min(runs)
    print(
        json.dumps(
            {
                "objective": objective,
                "unknowns": dict(zip(items, solution, strict=True)),
                "import": IMPORTED - BEGAN,
                "work": time.perf_counter() - IMPORTED,
                "build": built - IMPORTED,
                "all": [o for o, _ in runs],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
