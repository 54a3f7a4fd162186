"""A number that stands for a missing value is pointed out, and values of a wide range are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit.problem import Model, Problem, load
from odefit.problem.inputs.sentinels import sentinels

CASES = Path(__file__).parents[2] / "cases"


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([10.1, 6.0, -999.0, 1.3], {-999.0: 1}),
        ([10.1, -9999.0, -9999.0, 1.3], {-9999.0: 2}),
        ([10.1, -999.0, -9999.0, 1.3], {-999.0: 1, -9999.0: 1}),
        ([0.5, 2.0, 3.0, -9.0], {-9.0: 1}),
        ([200.0, 5000.0, -999.0, 30.0], {-999.0: 1}),  # a stream of water is never negative
        ([-70.0, -60.0, -55.0, -999.0], {-999.0: 1}),
        ([15.0, 20.0, 25.0, 99.9], {99.9: 1}),
        ([70.0, 80.0, 65.0, 999.0], {999.0: 1}),
        ([10.1, 1e30, 1.3], {1e30: 1}),
        ([10.1, 9.96921e36, 6.0, 1.3], {9.96921e36: 1}),  # NetCDF
        ([0.1, 0.2, 0.3, 32767.0], {32767.0: 1}),
        ([0.1, 0.2, 0.3, 3.4e38, np.nan], {3.4e38: 1}),
    ],
)
def test_a_code_far_from_all_other_values_is_reported(
    values: list[float], codes: dict[float, int]
) -> None:
    found, others = sentinels(np.array(values))
    assert dict(found) == codes
    assert len(others) == np.isfinite(values).sum() - sum(codes.values())


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 5.0, 30.0, 200.0, 999.0],
        [100.0, 99.0, 98.0, 9.0],
        [-20.0, -9.0, 10.0, 30.0],
        [1e-3, 1e2, 1e7, 1e12],
        [0.0, 0.0, 0.0, 1e-9, 1.0],
        [0.0, 1e6],
        [-5e4, 1e5, 2e5, -9999.0],
        [900.0, 999.0, 1100.0],
        [],
        [-999.0],
    ],
)
def test_a_value_near_the_others_gets_no_remark(values: list[float]) -> None:
    assert sentinels(np.array(values))[0] == []


def test_a_missing_value_written_as_minus_999_is_a_remark_with_its_remedy() -> None:
    """The case minus-999."""
    (warning,) = load(CASES / "minus-999" / "m999.toml").warnings
    assert "m999.csv, column x: -999 occurs in 1 of 5 values, far from all" in warning
    assert "(0.5 to 10.1); if it means that nothing was measured, leave these fields" in warning


def test_inputs_times_and_covariates_are_checked_as_well() -> None:
    model = Model(ode={"x": "-k*x*WT + u"}, inputs={"u": "linear"})
    data = {
        "ID": [1, 1, 2, 2],
        "t": [0.0, 1.0, 0.0, 999.0],
        "x": [5.0, 4.0, 5.0, 3.0],
        "u": [1.0, 2.0, 1.0, -999.0],
        "WT": [70.0, 70.0, -99.0, -99.0],
    }
    problem = Problem(model, data, {"k": (0.0, None)}, {"x": 5.0}, by="ID")
    told = "\n".join(problem.warnings)
    assert "column u: -999 occurs in 1 of 4 values" in told
    assert "column WT: -99 occurs in 2 of 4 values" in told
    plain = {"t": [0.0, 1.0, -999.0], "x": [5.0, 4.0, 3.0], "u": [1.0, 2.0, 3.0]}
    problem = Problem(
        Model(ode={"x": "-k*x + u"}, inputs={"u": "linear"}), plain, {"k": (0, None)}, {"x": 5.0}
    )
    assert any("column t: -999 occurs in 1 of 3" in w for w in problem.warnings)
