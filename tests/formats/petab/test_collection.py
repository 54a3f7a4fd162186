"""Published problems of the benchmark collection: their log-likelihoods at the nominal values.

The references are those of AMICI's tests (its models/benchmark_models.yaml), of the published
simulation where these have none, or, for Oliveira, of an integration by CVODES at 1e-11.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.formats.petab import PetabImport, read_petab
from odefit.simulation import Evaluation, ForwardMap

FOLDER = Path(__file__).parents[2] / "data" / "petab"

REFERENCES = {
    "Blasi_CellSystems2016": 642.82690,  # measured at the steady state
    "Boehm_JProteomeRes2014": -138.222,
    "Brannmark_JBC2010": -141.88911,  # begins at a steady state
    "Oliveira_NatCommun2021": -9623396.415,  # switches at estimated times
    "Perelson_Science1996": -432.03855,
}


def read(name: str) -> tuple[PetabImport, ForwardMap, Array]:
    found = read_petab(FOLDER / name / f"{name}.yaml")
    vector = np.array([found.nominal[key] for key in found.problem.keys])
    return found, ForwardMap(found.problem), vector


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_the_log_likelihood_is_that_of_the_reference(name: str) -> None:
    _, forward, vector = read(name)
    found = forward.evaluate_cost(vector)
    assert isinstance(found, Evaluation)
    allowed = 0.1 if "Oliveira" in name else 1e-3  # of ten million
    assert found.log_likelihood == pytest.approx(REFERENCES[name], abs=allowed)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n == "Brannmark_JBC2010" else ())
        for n in REFERENCES
    ],
)
def test_the_gradient_is_that_of_differences(name: str) -> None:
    """Away from the nominal values, which are optima, and where switches meet measurements."""
    found, forward, vector = read(name)
    lower, upper = found.problem.lower, found.problem.upper
    vector = np.clip(vector * (1 + 0.03 * np.cos(np.arange(len(vector)))), lower, upper)
    at = forward.evaluate(vector)
    assert isinstance(at, Evaluation)
    gradient = at.jacobian.T @ at.residuals * vector
    tight = ForwardMap(found.problem, tolerance=1e-12)
    for k in range(len(vector)):
        costs = []
        for step in (-2e-3, -1e-3, 1e-3, 2e-3):
            moved = vector.copy()
            moved[k] *= 1 + step
            costs.append(tight.cost(moved))
        slope = (costs[0] - 8 * costs[1] + 8 * costs[2] - costs[3]) / (12 * 1e-3)
        assert slope == pytest.approx(gradient[k], rel=1e-5, abs=1e-6 * np.abs(gradient).max())
