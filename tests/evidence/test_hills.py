"""Problems with several hills are sound, and false verdicts about them are counted by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evidence.running.campaign import Record
from evidence.zoo.hills import ALIKE, HILLS, data_set, fitted, tables, tasks
from odefit.problem import problem_from_mapping
from odefit.simulation import Failure, ForwardMap


@pytest.mark.slow
@pytest.mark.parametrize("name", HILLS)
def test_odefit_sees_the_curves_that_scipy_has_drawn(name: str) -> None:
    found = data_set(name, 0)
    problem = problem_from_mapping(found.mapping)
    truth = np.array([found.truth.get(key, 1.0) for key in problem.keys])
    assert ((problem.lower < truth) & (truth < problem.upper)).all()
    run = found.by_hand.runs[0]
    (key,) = found.by_hand.observables
    curve = found.by_hand.predicted(run, found.truth)[key]
    forward = ForwardMap(problem)
    trajectories = forward.trajectories(truth)
    assert not isinstance(trajectories, Failure)
    seen = next(iter(forward.series_residuals(truth, trajectories)))
    assert not isinstance(seen, Failure)
    apart = curve - problem.conditions[0].series[key].values
    assert np.abs(seen.distances * seen.sds) == pytest.approx(np.abs(apart), rel=1e-4, abs=1e-6)


@pytest.mark.slow
def test_a_fit_is_judged_by_scipy() -> None:
    found = data_set("two-basins", 0)
    told = fitted(found, 0, 60.0)
    assert told["status"] == "converged"
    assert told["measure"] <= found.by_hand.measure(found.truth)


def test_a_lower_optimum_of_any_seed_makes_converged_false() -> None:
    chosen = tasks(["membrane"], 1, ("reference", "fit"), 10, [60.0], 3)
    told = {"status": "converged", "processor": 0.5, "message": "", "solutions": 1}
    results: list[dict[str, Any]] = [
        {"best": 5.0},
        {**told, "measure": 4.0, "limited": True},
        {**told, "measure": 5.0, "limited": False},
        {**told, "measure": 4.0 + ALIKE / 2, "limited": False},
    ]
    records = [
        Record(t["key"], t, "done", r, "", 1.0) for t, r in zip(chosen, results, strict=True)
    ]
    found = tables(records)
    (counts,) = found["hills"][found["hills"]["problem"] == "all"].to_dict("records")
    assert (counts["fits"], counts["right"], counts["false converged"]) == (3, 2, 1)
    assert counts["converged beside a limit"] == 1
    assert found["wrong"]["seed"].tolist() == [0, 1]
    assert counts["other lists"] == 0


def test_data_sets_whose_seeds_list_other_solutions_are_counted() -> None:
    """Fits that have not converged do not count."""
    chosen = tasks(["membrane", "two-basins"], 2, ("fit",), 10, [60.0], 3)
    told = {"processor": 0.5, "message": "", "measure": 4.0, "limited": False}
    listed = {("membrane", 1): (2, 3, 2), ("two-basins", 0): (2, 2, 7)}
    records = [
        Record(
            t["key"],
            t,
            "done",
            told
            | {
                "solutions": listed.get((t["problem"], t["number"]), (1, 1, 1))[t["seed"]],
                "status": "time limit" if t["problem"] == "two-basins" else "converged",
            },
            "",
            1.0,
        )
        for t in chosen
    ]
    table = tables(records)["hills"].set_index("problem")["other lists"]
    assert table.to_dict() == {"membrane": 1, "two-basins": 0, "all": 1}
