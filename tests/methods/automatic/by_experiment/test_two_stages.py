"""Experiments are fitted one by one first where most unknowns act on one of them alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Control, Experiment, ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.methods.automatic.by_experiment.two_stages import TwoStageSearch, _composed, refusal
from odefit.methods.estimate import Start, Status
from odefit.methods.single_shooting import START_SEARCH
from odefit.problem.variants.parts import loose_groups, parts_of_groups
from odefit.simulation import Evaluation

TIMES = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 24.0])
RATE = 1.3  # of absorption


def doses(count: int, seed: int, **changes: Any) -> tuple[Problem, dict[str, float]]:
    """Return oral doses of subjects with own clearances and volumes, and the true values."""
    random = np.random.default_rng(seed)
    subjects, truth = [], {"ka": RATE}
    for i in range(count):
        clearance, volume = np.exp(random.normal([np.log(2.0), np.log(20.0)], 0.4))
        k = clearance / volume
        values = 100.0 / volume * RATE / (RATE - k) * (np.exp(-k * TIMES) - np.exp(-RATE * TIMES))
        values *= np.exp(0.05 * random.normal(size=len(TIMES)))
        subjects.append(Experiment(f"s{i}", {"t": TIMES, "c": values}, t0=0.0))
        truth |= {f"CL[s{i}]": clearance, f"V[s{i}]": volume}

    def own(low: float, high: float) -> dict[str, Any]:
        return {"lower": low, "upper": high, "scale": "log10", "per_experiment": True}

    given: dict[str, Any] = {
        "parameters": {
            "ka": {"lower": 0.01, "upper": 100.0, "scale": "log10"},
            "CL": own(0.01, 100.0),
            "V": own(0.1, 1000.0),
        },
        "initial": {"G": 100.0, "A": 0.0},
        "experiments": subjects,
    }
    model = Model(ode={"G": "-ka*G", "A": "ka*G - CL/V*A"}, observables={"c": "A/V"})
    return Problem(model, **(given | changes)), truth


def test_each_experiment_has_its_own_unknowns_and_the_shared_ones() -> None:
    problem, _ = doses(4, 0)
    parts = parts_of_groups(problem, loose_groups(problem, 1))
    assert [part.problem.keys for part in parts][2] == ("ka", "CL", "V")
    assert [problem.keys[i] for i in parts[2].unshared] == ["CL[s2]", "V[s2]"]
    assert all(part.shared == {0} for part in parts)


def test_experiments_of_a_subject_are_fitted_together() -> None:
    """Two doses of each subject share its constants, which no other experiment has."""
    names = [f"{name}{i}" for i in range(4) for name in ("CL", "V")]
    experiments = [
        Experiment(
            f"subject {i}, dose {dose}",
            {"t": TIMES, "c": np.exp(-0.1 * TIMES)},
            t0=0.0,
            initial={"G": dose},
            constants={"CL": f"CL{i}", "V": f"V{i}"},
        )
        for i in range(4)
        for dose in (50.0, 100.0)
    ]
    positive = {"lower": 0.01, "upper": 1000.0}
    problem = Problem(
        Model(
            ode={"G": "-ka*G", "A": "ka*G - CL/V*A"},
            observables={"c": "A/V"},
            constants={"CL": 1.0, "V": 1.0},
        ),
        None,
        dict.fromkeys(["ka", *names], positive),
        {"G": 100.0, "A": 0.0},
        experiments=experiments,
    )
    assert refusal(problem) is None
    parts = parts_of_groups(problem, loose_groups(problem, 4))
    assert [part.problem.keys for part in parts] == [("ka", f"CL{i}", f"V{i}") for i in range(4)]
    assert parts[1].names == ("subject 1, dose 50.0", "subject 1, dose 100.0")
    assert loose_groups(problem, 8) is None  # the rate of absorption joins all


def test_two_stages_are_refused_where_random_starts_do_as_well() -> None:
    assert refusal(doses(4, 0)[0]) is None
    assert refusal(doses(3, 0)[0]) == "few unknowns act on one experiment alone"
    single = odefit.library.load("harmonic")
    assert refusal(single) == "there is one experiment"
    names = [f"k{i}" for i in range(10)]
    model = Model(ode={"x": "-(b + " + " + ".join(names) + ")*x"})
    rates = {"lower": 0.0, "upper": 1.0}
    runs = [Experiment(f"r{i}", {"t": TIMES, "x": np.exp(-TIMES)}) for i in range(9)]
    unknowns = dict.fromkeys(names, rates) | {"b": rates | {"per_experiment": True}}
    mostly_shared = Problem(model, None, unknowns, {"x": 1.0}, experiments=runs)
    assert refusal(mostly_shared) == "most unknowns act on several experiments"
    short = [Experiment(f"r{i}", {"t": [1.0], "x": [0.4]}, t0=0.0) for i in range(9)]
    own = {"b": rates | {"per_experiment": True}, "k0": rates}
    few = Problem(Model(ode={"x": "-(b + k0)*x"}), None, own, {"x": 1.0}, experiments=short)
    assert refusal(few) == "an experiment has fewer measurements than unknowns"


def ended(vector: Array | list[float], cost: float = 1.0) -> Start:
    """Return a converged start that ended at a vector."""
    at = np.array(vector, dtype=float)
    return Start(0, at, at, 2 * cost, Status.CONVERGED, "", 5, 0.1, cost)


def test_shared_unknowns_are_medians_and_of_equal_ends_the_nearest_counts() -> None:
    problem, _ = doses(4, 0)
    parts = parts_of_groups(problem, loose_groups(problem, 1))
    fast = [[1.0, 2.0, 20.0], [1.2, 2.1, 21.0], [1.4, 2.2, 22.0]]
    slow = [0.1, 1.9, 1.9]
    alone = [(parts[0], [ended(slow), ended(fast[0])])]
    alone += [(part, [ended(v)]) for part, v in zip(parts[1:3], fast[1:], strict=True)]
    begin = np.full(len(problem.unknowns), 7.0)
    vector = _composed(begin, alone)
    values = dict(zip(problem.keys, vector.tolist(), strict=True))
    assert values["ka"] == pytest.approx(1.2)
    assert [values[f"V[s{i}]"] for i in range(4)] == [20.0, 21.0, 22.0, 7.0]
    assert (begin == 7.0).all()


def test_a_start_finds_the_optimum_that_random_starts_miss() -> None:
    problem, truth = doses(10, 0)
    forward = ForwardMap(problem)
    at_truth = forward.evaluate_cost(np.array([truth[key] for key in problem.keys]))
    assert isinstance(at_truth, Evaluation)
    ends = [TwoStageSearch(START_SEARCH).run(forward, i, Control(seed=1)) for i in range(4)]
    best = min(ends, key=lambda end: end.cost)
    assert best.cost < at_truth.cost
    assert best.vector == pytest.approx([truth[key] for key in problem.keys], rel=0.25)


def test_a_start_that_is_stopped_at_once_ends_without_an_error() -> None:
    problem, _ = doses(4, 0)
    control = Control(seed=1)
    control.interrupted.set()
    end = TwoStageSearch(START_SEARCH).run(ForwardMap(problem), 0, control)
    assert end.status is not Status.CONVERGED


@pytest.mark.parametrize("seed", [0, 11, 14])
def test_the_default_does_not_settle_where_all_random_starts_end(seed: int) -> None:
    problem, truth = doses(10, seed)
    result = odefit.fit(problem, seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert any(route.name == "two-stage search" and route.starts for route in result.routes)
    forward = ForwardMap(problem)
    at_truth = forward.evaluate_cost(np.array([truth[key] for key in problem.keys]))
    assert isinstance(at_truth, Evaluation)
    assert result.best.objective < at_truth.objective
