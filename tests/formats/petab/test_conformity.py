"""The conformity suites of PEtab, version 1 and 2: chi-square, log-likelihood, simulations.

The cases are those of PEtab-dev/petab_test_suite with models in SBML; licence beside them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from odefit.common.arrays import Array
from odefit.formats.petab import PetabImport, read_petab
from odefit.methods.fit_measure import prior_squares
from odefit.problem import problem_to_mapping
from odefit.simulation import Evaluation, Failure, ForwardMap, simulate

SUITE = Path(__file__).parents[2] / "data" / "petab" / "suite"
CASES = sorted(path.relative_to(SUITE).as_posix() for path in SUITE.glob("v?/*"))


def read(case: str) -> tuple[PetabImport, dict[str, Any]]:
    folder = SUITE / case
    (solution,) = folder.glob("*_solution.yaml")
    (problem,) = [p for p in folder.glob("*.yaml") if p != solution]
    return read_petab(problem), yaml.safe_load(solution.read_text())


def nominal(found: PetabImport) -> Array:
    return np.array([found.nominal[key] for key in found.problem.keys])


def simulated(found: PetabImport, forward: ForwardMap, vector: Array) -> list[float]:
    """Return the simulation of each measurement, in the order of the table."""
    values = []
    columns: dict[tuple[str, str], Array] = {}
    for experiment, observable, row in found.rows:
        key = experiment, observable
        if key not in columns:
            curves = simulate(found.problem, vector, experiment=experiment, forward=forward)
            assert not isinstance(curves, Failure)
            columns[key] = curves.observables[observable]
        times = found.problem.condition(experiment).times
        values.append(float(columns[key][np.flatnonzero(times == row.time)[0]]))
    return values


def test_both_suites_are_complete() -> None:
    versions = [case[:2] for case in CASES]
    assert (versions.count("v1"), versions.count("v2")) == (20, 31)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_conformity_case_has_its_likelihood_and_simulations(case: str) -> None:
    found, solution = read(case)
    forward = ForwardMap(found.problem)
    vector = nominal(found)
    evaluation = forward.evaluate_cost(vector)
    assert isinstance(evaluation, Evaluation)
    assert evaluation.log_likelihood == pytest.approx(solution["llh"], abs=solution["tol_llh"])
    (table,) = solution["simulation_files"]
    with (SUITE / case / table).open() as file:
        expected = list(csv.DictReader(file, delimiter="\t"))
    own = sorted(
        (row.observable, row.time, value)
        for (_, _, row), value in zip(found.rows, simulated(found, forward, vector), strict=True)
    )
    given = sorted((r["observableId"], float(r["time"]), float(r["simulation"])) for r in expected)
    assert [row[:2] for row in own] == [row[:2] for row in given]
    assert [row[2] for row in own] == pytest.approx(
        [row[2] for row in given], abs=solution["tol_simulations"]
    )
    squares = evaluation.objective - prior_squares(found.problem, vector)
    assert squares == pytest.approx(solution["chi2"], abs=solution["tol_chi2"])


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if i % 3 else ()) for i, c in enumerate(CASES)],
)
def test_the_gradient_of_the_case_is_that_of_differences(case: str) -> None:
    found, _ = read(case)
    lower, upper = found.problem.lower, found.problem.upper
    vector = np.clip(nominal(found) + 0.037, lower + 0.01, upper - 0.01)
    forward = ForwardMap(found.problem)
    at = forward.evaluate(vector)
    assert isinstance(at, Evaluation)
    gradient = at.jacobian.T @ at.residuals
    for k in range(len(vector)):
        costs = []
        for step in (-2e-3, -1e-3, 1e-3, 2e-3):
            moved = vector.copy()
            moved[k] += step
            costs.append(forward.cost(moved))
        slope = (costs[0] - 8 * costs[1] + 8 * costs[2] - costs[3]) / (12 * 1e-3)
        assert slope == pytest.approx(gradient[k], rel=1e-5, abs=1e-6 * np.abs(gradient).max())


def test_spans_shorter_than_rounding_between_events_are_integrated() -> None:
    """S = 2 + 2.5 t reaches 14 before the second period, and again just at its beginning."""
    found, _ = read("v2/0016")
    assert isinstance(ForwardMap(found.problem).evaluate(np.array([2.5])), Evaluation)


@pytest.mark.parametrize("case", ["v1/0001", "v1/0007", "v1/0014", "v2/0011", "v2/0016"])
@pytest.mark.parametrize(("column", "cell"), [("realDate", "2020-03-06"), ("Notes", "by hand")])
def test_further_columns_in_all_tables_are_reported_and_change_nothing(
    tmp_path: Path, case: str, column: str, cell: str
) -> None:
    """Version 1 has none in its condition table, where one of texts is no quantity all the same."""
    expected, solution = read(case)
    (problem,) = [p for p in (SUITE / case).glob("*.yaml") if not p.stem.endswith("_solution")]
    tables = []
    for path in (SUITE / case).iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".tsv" and "simulations" not in path.name:
            tables.append(path.name)
            lines = [f"{line}\t{cell if i else column}" for i, line in enumerate(lines)]
        (tmp_path / path.name).write_text("\n".join(lines), encoding="utf-8")
    found = read_petab(tmp_path / problem.name)
    assert problem_to_mapping(found.problem) == problem_to_mapping(expected.problem)
    further = [n for n in found.problem.notes if n not in expected.problem.notes]
    assert len(further) == len(tables)
    assert all(f"The column '{column}' of " in n and " is not read" in n for n in further)
    evaluation = ForwardMap(found.problem).evaluate(nominal(found))
    assert isinstance(evaluation, Evaluation)
    assert evaluation.objective == pytest.approx(solution["chi2"], abs=solution["tol_chi2"])
