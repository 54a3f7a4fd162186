"""The campaign of proved bounds: its problems are the papers', its tables say what was seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import Record, campaign
from evidence.bounds import paper as paper
from evidence.bounds import plan as plan
from evidence.bounds.plan import BRANCH, CASES, OUTER, SCIP, Case, task
from evidence.bounds.runs import branch_and_bound, outer_approximation, scip, until
from evidence.bounds.runs import run as bounds
from evidence.bounds.tables import figures as global_figures
from evidence.bounds.tables import runs
from evidence.bounds.tables import tables as global_tables
from evidence.running.runner import run_campaign
from evidence.running.store import to_json
from evidence.transcription.plan import STEPS
from odefit import library
from odefit.common.errors import InputError
from odefit.methods.solvers.scip import Scip

WIDE = "alpha-pinene, legendre 5 x 3, p in [0, 1]"
HIV = "hiv-proteinase, legendre 5 x 5"
TINY = Case("noisy", "harmonic", "legendre", 3, 2, factor=1.1, noise=0.05, gap=0.05)


def ended(name: str, method: str, history: list[list[float]], **changed: Any) -> Record:
    """A run whose bounds came together like this."""
    seconds, lower, upper = history[-1]
    made = {
        "lower": lower,
        "upper": upper,
        "gap": (upper - lower) / upper if upper else None,
        "closed": True,
        "seconds": seconds,
        "count": 7,
        "unit": "boxes",
        "status": "converged",
        "message": "",
        "scope": "",
        "history": history,
        "unknowns": {},
        "sizes": {"unknowns": 5, "residuals": 40, "coefficients": 21},
    } | changed
    of = task(CASES[name], method, 60.0)
    return Record(of["key"], of, "done", json.loads(to_json(made)), "", seconds)


def refused(name: str, method: str, reason: str) -> Record:
    of = task(CASES[name], method, 60.0)
    return Record(of["key"], of, "done", {"refused": reason}, "", 1.0)


# Settings ---------------------------------------------------------------------------------------


def test_tables_are_the_papers() -> None:
    assert paper.SIZES["alpha-pinene"]["MILP binaries"] == 380
    for part, method in ((p, m) for p in paper.BOUNDS for m in paper.BOUNDS[p]):
        lower, upper, gap, _, _ = paper.BOUNDS[part][method]
        assert gap == pytest.approx((upper - lower) / upper, abs=5e-4)
    assert set(paper.PARAMETERS) == set(library.load("hiv-proteinase").keys)


def test_the_papers_problems_have_its_settings() -> None:
    case = CASES[WIDE]
    problem = case.load()
    assert {*problem.lower, *problem.upper} == {0.0, 1.0}
    assert case.options == {"pieces": 4, "hyperplanes": 6, "cut": 20.0, "tolerance": 0.0306}
    assert (CASES[HIV].options["pieces"], CASES[HIV].options["cuts"]) == (
        3,
        ((0, 1, 2, 3), (1, 2, 3, 4)),
    )


def test_noise_free_problems_are_the_eleven_in_continuous_time_and_on_two_meshes() -> None:
    own = [case for case in CASES.values() if case.part == "noise-free"]
    assert len({case.problem for case in own}) == len(STEPS) - 1 == 11
    assert [case.space for case in own].count("trapezoid") == 11
    for case in own:
        if case.space == "trapezoid":
            assert case.steps == STEPS[case.problem][0]
            assert BRANCH in case.seconds
            assert SCIP in case.seconds
        assert library.reference(case.problem).noise == "none"


def test_noisy_problems_are_within_a_factor_of_the_reference() -> None:
    for case in (c for c in CASES.values() if c.part == "noisy"):
        problem, known = case.load(), library.reference(case.problem)
        true = np.array([{**known.parameters, **known.initial}[key] for key in problem.keys])
        given = library.load(case.problem)
        assert (problem.lower <= true).all()
        assert (true <= problem.upper).all()
        assert (problem.lower >= np.maximum(true / 2, given.lower) - 1e-12).all()
        assert (problem.upper <= np.minimum(true * 2, given.upper) + 1e-12).all()
        first = next(iter(problem.conditions[0].series.values()))
        exact = next(iter(given.conditions[0].series.values()))
        assert not np.allclose(first.values, exact.values)


def test_every_task_has_a_unique_key_with_its_limit() -> None:
    short = campaign("global").with_options({"seconds": "5"}).tasks()
    tasks = [*campaign("global").tasks(), *short]
    assert len({t["key"] for t in tasks}) == len(tasks)
    assert {t["seconds"] for t in short} == {5.0}
    assert max(t["seconds"] for t in tasks) < campaign("global").seconds


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        ({"parts": "hiv-proteinase"}, 3),
        ({"parts": "noisy"}, 4),
        ({"problems": "harmonic", "methods": "scip"}, 2),
        ({"spaces": "continuous", "parts": "noise-free"}, 11),
    ],
)
def test_options_select_parts(chosen: dict[str, str], count: int) -> None:
    assert len(campaign("global").with_options(chosen).tasks()) == count


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("parts", "noise", "there is no 'noise'"),
        ("problems", "harmonics", "did you mean 'harmonic'"),
        ("spaces", "radau", "spaces are: continuous"),
        ("methods", "baron", "methods are"),
        ("seconds", "0", "positive"),
        ("seconds", "long", "how long"),
        ("gap", "1", "no option 'gap'"),
    ],
)
def test_senseless_options_are_refused(option: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        campaign("global").with_options({option: text})


# Runs -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_three_methods_bound_the_same_optimum() -> None:
    found = {
        BRANCH: branch_and_bound(TINY, 30.0),
        OUTER: outer_approximation(replace(TINY, options={"tolerance": 0.05}), 30.0),
        SCIP: scip(TINY, 30.0),
    }
    if Scip().missing() is not None:
        assert "not installed" in found.pop(SCIP)["refused"]
    least = max(r["lower"] for r in found.values())
    for method, r in found.items():
        assert r["lower"] <= r["upper"] * (1 + 1e-6), method
        assert least <= r["upper"] * (1 + 1e-6), method
        assert r["closed"], method
        assert r["upper"] == pytest.approx(found[BRANCH]["upper"], rel=0.051)
        times, lower, upper = np.array(r["history"], dtype=float).T
        assert (np.diff(times) >= 0).all()
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper) <= 0).all()
        assert times[-1] <= r["seconds"]
        assert (lower[-1], upper[-1]) == pytest.approx((r["lower"], r["upper"]), rel=1e-7)
    sizes = found[OUTER]["sizes"]
    assert sizes["MILP binaries"] > 0
    unknowns = 4
    assert sizes["NLP variables"] - sizes["NLP equations"] == unknowns
    assert found[BRANCH]["sizes"] == {"unknowns": 4, "residuals": 20, "coefficients": 15}


def test_a_case_that_cannot_be_run_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scip, "missing", lambda _: "SCIP is not installed")
    name = "harmonic, trapezoid 230"
    found = bounds(task(CASES[name], SCIP, 5.0))
    assert found == {"refused": "SCIP is not installed"}

    def refuse(*_: object) -> None:
        raise InputError("not with this model")

    monkeypatch.setattr(plan.Case, "load", refuse)
    assert bounds(task(CASES[name], BRANCH, 5.0))["refused"] == "not with this model"


@pytest.mark.slow
def test_the_campaign_runs_and_makes_its_tables(tmp_path: Path) -> None:
    choice = {"problems": "harmonic", "spaces": "continuous", "parts": "noise-free"}
    chosen = campaign("global").with_options(choice | {"seconds": "20"})
    (record,) = run_campaign(chosen, tmp_path, jobs=1)
    assert record.outcome == "done"
    assert record.result is not None
    assert record.result["closed"]
    for name in ("noise-free", "targets"):
        assert (tmp_path / f"{name}.md").exists()
    assert not (tmp_path / "bounds-noise-free.svg").exists()  # nothing to see


# Tables -----------------------------------------------------------------------------------------


def test_seconds_to_a_gap_are_those_of_the_log() -> None:
    history: list[list[float | None]]
    history = [[1.0, None, None], [2.0, 0.0, 10.0], [3.0, 9.9, 10.0], [4.0, 9.995, 10.0]]
    assert until(history, 0.05) == until(history, 0.01) == 3.0
    assert until(history, 0.001) == 4.0
    assert until(history, 0.0001) is None


def test_targets_hold_where_they_were_reached_in_time() -> None:
    early = [[1.0, 0.0, 20.0], [19.0, 19.9, 20.0], [50.0, 19.99, 20.0]]
    late = [[1.0, 0.0, 20.0], [21.0, 19.9, 20.0], [70.0, 19.99, 20.0]]
    for history, holds in ((early, [True, True]), (late, [False, False])):
        table = global_tables([ended(WIDE, BRANCH, history)])["targets"]
        assert list(table["holds"]) == holds
    table = global_tables([ended(WIDE, OUTER, [[5.0, 0.0, 19.9], [99.0, 19.3, 19.9]])])["targets"]
    assert table["seen"].item() == "LB 19.3, reached after 99 s"
    assert table["holds"].item()


def test_the_papers_figures_are_shown_beside_ours() -> None:
    records = [
        ended(WIDE, OUTER, [[73.0, 19.48, 19.877]]),
        refused(WIDE, SCIP, "SCIP is not installed"),
        ended(HIV, OUTER, [[200.0, 0.0175, 0.0215]], unknowns={"k3": 6.0}),
    ]
    tables = global_tables(records)
    assert list(tables) == ["table-1", "table-2", "table-3", "table-4", "targets"]
    two = tables["table-2"]
    assert list(two["method"]) == ["BARON (paper)", "outer approximation (paper)", OUTER, SCIP]
    assert list(two["seconds"][:3]) == [43_200.0, 8_916.0, 73.0]
    assert two["status"].iloc[-1] == "SCIP is not installed"
    three = tables["table-3"].set_index("parameter")
    assert list(three.loc["k3"])[:2] == [6.235, 5.764]
    assert three.loc["k3"].iloc[-1] == 6.0
    assert len(three) == 21
    assert "gap <= 18.6 %" in tables["targets"]["target"].iloc[-1]


def test_a_lower_bound_alone_is_reported_as_such() -> None:
    infinite = float("inf")
    tables = global_tables([ended(HIV, OUTER, [[9.0, 0.018, infinite]], gap=None, closed=False)])
    assert list(tables["targets"]["seen"]) == ["no upper bound"]
    assert tables["table-4"]["LB"].iloc[-1] == 0.018
    assert tables["table-3"].iloc[:, -1].isna().all()
    assert set(global_figures([ended(HIV, OUTER, [[9.0, 0.018, infinite]])])) == {
        "bounds-hiv-proteinase"
    }


def test_noise_free_problems_are_counted() -> None:
    records = [
        ended("harmonic, continuous time", BRANCH, [[3.0, 0.0, 0.0]]),
        ended("bbg, continuous time", BRANCH, [[61.0, 0.0, 0.5]], closed=False),
        ended("bbg, trapezoid 120", SCIP, [[6.0, 0.0, 0.5]], closed=False),
    ]
    tables = global_tables(records)
    assert list(tables["targets"]["seen"]) == ["1 of 2"]
    assert len(tables["noise-free"]) == 3
    assert set(global_figures(records)) == {"bounds-noise-free"}


def test_records_without_results_make_tables_and_no_figures() -> None:
    of = task(CASES[WIDE], BRANCH, 60.0)
    nothing = Record(of["key"], of, "out of memory", None, "too much", 1.0)
    (run,) = runs([nothing])
    assert (run.result, run.reason) == ({}, "too much")
    assert "too much" in global_tables([nothing])["targets"]["seen"].iloc[0]
    assert global_figures([nothing]) == {}
    assert global_tables([]) == {}
