"""Published designs: the second writing of their models is that of the sources, and plans hold."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.published.designs import (
    DESIGNS,
    consecutive,
    fixed_effects,
    poped_objective,
    population,
    run,
    tables,
)
from evidence.running.campaign import Record

# Printed by PopED 0.7 in the introduction on its web site, for samples at 1, 2, 8, 240 and 245 h.
FIXED = [
    [0.05336692, -8.68396266, -0.05863412],
    [-8.68396266, 2999.851007, -14.43058560],
    [-0.05863412, -14.4305856, 37.1524329],
]
VARIANCES = [
    [999.953587, 312.240246, 3.202847, 575.347261],
    [312.240246, 439.412556, 2.287838, 638.581909],
    [3.202847, 2.287838, 3412.005199, 1182.325475],
    [575.347261, 638.581909, 1182.325475, 33864.3226],
]


def test_the_information_of_a_population_is_that_of_poped() -> None:
    found = population(np.array([1.0, 2.0, 8.0, 240.0, 245.0]))
    assert found[:3, :3] == pytest.approx(np.array(FIXED), rel=2e-7)
    assert found[3:, 3:] == pytest.approx(np.array(VARIANCES), rel=2e-6)
    assert not found[:3, 3:].any()


@pytest.mark.parametrize(
    ("times", "printed"),
    [
        ((1, 2, 8, 240, 245), 39.309),
        ((1, 2, 245), 29.66484),
        ((0.4573, 10, 10, 240, 240.9), 40.5277),
        ((1, 10, 10, 240, 241), 40.3782),
    ],
)
def test_poped_prints_these_objectives(times: tuple[float, ...], printed: float) -> None:
    # The optimal times are printed with four digits, and the objective belongs to all of them.
    assert poped_objective(np.array(times, dtype=float)) == pytest.approx(printed, abs=1.2e-4)


def test_the_times_of_box_and_lucas_are_the_best_ones() -> None:
    best = consecutive(np.array([1.22946, 6.85767]))
    assert best > consecutive(np.array([1.24, 6.85767]))
    assert best > consecutive(np.array([1.22946, 6.9]))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n == "reactor" else []) for n in DESIGNS]
)
def test_no_published_design_is_better_than_the_planned_one(name: str) -> None:
    result = run({"key": name, "design": name})
    assert result["found value"] >= result["published value"] - 1e-9
    record = Record(name, {"key": name, "design": name}, "done", result, "", 1.0)
    assert len(tables([record])["published-designs"]) == 1
    if name == "poped-early-hours":
        assert result["found"] == pytest.approx([1.0, 10.0, 10.0, 240.0, 241.0])
    if name == "poped-early":
        assert result["found"][1:3] == pytest.approx([10.0, 10.0])
        assert result["found"][0] == pytest.approx(0.4197, abs=2e-3)
    if name in {"poped", "poped-hours"}:  # better by PopED's own objective, too
        assert result["others"][1] > result["others"][0] + 0.1


def test_another_division_between_the_windows_gives_more_information() -> None:
    theirs, other = np.array([1.0, 10, 10, 240, 241]), np.array([1.0, 1, 10, 10, 240])
    assert fixed_effects(other) > fixed_effects(theirs) + 0.06
    assert poped_objective(other) > poped_objective(theirs) + 0.2
