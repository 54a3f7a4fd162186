"""An estimated noise is told with its bias and its degrees of freedom, whatever else there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import odefit
from odefit.assessment.parts import Trouble
from odefit.problem import Model, Problem
from odefit.reporting.parameters import parameter_rows
from odefit.reporting.terminal import result_text
from odefit.result.result import Result
from odefit.result_data.result_file import to_mapping
from tests.assessment.intervals.test_degrees_of_freedom import assessed, line, subjects
from tests.reporting.examples import result_of

CORRECTED = "when corrected for the unknowns that were fitted"


@pytest.fixture(scope="module")
def censored() -> Result:
    """Subjects whose relative noise of 10 % is estimated, beside values below a limit."""
    problem = subjects(np.random.default_rng(3), 1.0)
    vector, found = assessed(problem)
    return result_of(problem, vector, 30.1, found, (), -18.99)


@pytest.fixture(scope="module")
def straight() -> Result:
    """A line with six measurements, whose standard deviation is estimated."""
    problem = line(noise={"x": {"sd": "estimate"}})
    vector, found = assessed(problem)
    return result_of(problem, vector, 6.0, found, (), -5.0)


def remark_on_noise(result: Result, trouble: Trouble) -> tuple[str, str]:
    """Return flag and note of the noise where its interval has this trouble."""
    assert result.uncertainty is not None
    other = replace(result.uncertainty, trouble={"x_sd": trouble})
    rows = parameter_rows(replace(result, uncertainty=other))
    (row,) = (row for row in rows if row.key == "x_sd")
    return row.flag, row.note


@pytest.mark.slow
def test_a_relative_noise_is_corrected_with_values_below_the_limit(
    censored: Result,
) -> None:
    """Of 40 values, 11 unknowns are estimated, and values below the limit tell less."""
    assert f"- r: 0.1203 {CORRECTED}" in result_text(censored)
    assert censored.parameters.loc["r", "note"] == f"0.1203 {CORRECTED}"
    text = " ".join(result_text(censored).split())
    assert "allow for the unknowns that were fitted with 21.1 degrees of freedom." in text


@pytest.mark.parametrize("trouble", [Trouble.NOT_LINEAR, Trouble.BY_PROFILE])
def test_another_remark_does_not_replace_the_bias(straight: Result, trouble: Trouble) -> None:
    assert straight.uncertainty is not None
    bias = f"{straight.uncertainty.corrected_noise['x_sd']:.3f} {CORRECTED}"
    flag, note = remark_on_noise(straight, trouble)
    assert flag in str(trouble)
    assert note.startswith(f"{bias}. The ")
    assert f"- x_sd: {bias}" in result_text(straight)


def test_a_correction_that_cannot_be_seen_is_not_mentioned(straight: Result) -> None:
    """With 20,000 values, the corrected standard deviation was told with the same digits."""
    assert straight.uncertainty is not None
    value = straight.best.vector[straight.problem.keys.index("x_sd")]
    same = replace(straight.uncertainty, corrected_noise={"x_sd": value * (1 + 1e-6)})
    assert "when corrected" not in result_text(replace(straight, uncertainty=same))


def test_an_unknown_without_an_interval_has_no_corrected_noise(straight: Result) -> None:
    assert remark_on_noise(straight, Trouble.NOT_DETERMINED)[1] == "not determined by these data"


def test_the_degrees_of_freedom_are_those_that_a_reader_counts(straight: Result) -> None:
    text = " ".join(result_text(straight).split())
    assert "allow for the unknowns that were fitted with 4 degrees of freedom." in text


@pytest.mark.slow
def test_solutions_of_an_estimated_noise_are_compared_by_their_likelihood() -> None:
    """Two rates that may be exchanged: the weighted squares of both are the number of values."""
    times = np.linspace(0.0, 8.0, 17)
    a, b, noise = 0.3, 1.1, 0.03 * np.random.default_rng(5).normal(size=17)
    values = 2 * a / (b - a) * (np.exp(-a * times) - np.exp(-b * times)) + noise
    result = odefit.fit(
        Problem(
            Model(ode={"x": "-a*x", "y": "a*x - b*y"}, observables={"z": "s*y"}),
            {"t": times, "z": values},
            {"a": (0.01, 5), "b": (0.01, 5), "s": (0.01, 20)},
            {"x": 1.0, "y": 0.0},
            noise={"z": {"sd": "estimate"}},
        )
    )
    written = to_mapping(result)
    assert written["objective"] == pytest.approx(17.0)
    assert written["measure"] == "-2 log L"
    assert len(written["solutions"]) == 2
    likelihoods = [solution["log_likelihood"] for solution in written["solutions"]]
    assert written["values"] == pytest.approx([-2 * one for one in likelihoods])
    assert "weighted squares add up to the number of values" in " ".join(
        result_text(result).split()
    )
