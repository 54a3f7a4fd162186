"""The study of transcription: its runs are the paper's, its columns mean what the paper's mean."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import Campaign, Record, campaign
from evidence.running.runner import balanced, run_campaign
from evidence.transcription import measures as metrics
from evidence.transcription import paper as paper
from evidence.transcription.own_methods import solve_by_own_method
from evidence.transcription.page_tables import page_tables
from evidence.transcription.plan import (
    BRANCH,
    CONTINUOUS,
    OTHER_TOLERANCES,
    OWN,
    PENALTIES,
    SCHEMES,
    STEPS,
    TOLERANCES,
    Configuration,
    configurations,
    instance_of,
    own_configurations,
    solvers,
    start_of,
)
from evidence.transcription.runs import run as quick_run
from evidence.transcription.tables import compared, frame, scope_of
from evidence.transcription.tables import tables as study_tables
from odefit import InputError, library
from odefit.discretisation.formulations import ExtraTol
from odefit.methods.solvers.solver import penalised_objective

IPOPT = tuple(configurations("Ipopt", ("coarse", "fine")))


def record(key: str, outcome: str = "done", **result: Any) -> Record:
    task = Configuration.of(key).task
    if outcome != "done":
        return Record(key, task, outcome, None, "no luck", 780.0)  # type: ignore[arg-type]
    values = {"solved": True, "success": True, "place": "elsewhere", "seconds": 1.0} | result
    return Record(key, task, "done", values, "", 1.5)


# The runs ---------------------------------------------------------------------------------------


def test_a_solver_has_as_many_runs_as_in_the_paper() -> None:
    assert len(IPOPT) == 660
    assert 8 * len(IPOPT) == paper.EXECUTIONS
    of_ipopt = [t for t in campaign("transcription-study").tasks() if t["solver"] == "Ipopt"]
    assert [t["key"] for t in of_ipopt] == [c.key for c in IPOPT]


def test_meshes_tolerances_and_penalties_are_the_papers() -> None:
    assert {name: sizes[0] for name, sizes in STEPS.items()} == {
        "lotka-volterra-f": 100,
        "lotka-volterra-p": 100,
        "crauste-f": 100,
        "crauste-p": 100,
        "fitzhugh-nagumo": 200,
        "harmonic": 230,
        "alpha-pinene": 1230,
        "bbg": 120,
        "mammillary-3-f": 100,
        "mammillary-3-p": 100,
        "hiv-f": 100,
        "hiv-p": 100,
    }
    assert {name: sizes[1] for name, sizes in STEPS.items()} == {
        name: 3690 if name == "alpha-pinene" else 10 * sizes[0] for name, sizes in STEPS.items()
    }
    assert {name for name, sizes in STEPS.items() if len(sizes) > 2} == {"lotka-volterra-p"}
    assert STEPS["lotka-volterra-p"][2] == 10000
    assert (TOLERANCES, PENALTIES) == ((1e-4, 1e-6), (1e3, 1e5))
    assert OTHER_TOLERANCES["lotka-volterra-p"] == (1e-5, 1e-6, 1e-8)
    assert OTHER_TOLERANCES["crauste-f"] == OTHER_TOLERANCES["crauste-p"] == (1e-5, 1e-7, 1e-9)
    runs = Counter(c.problem for c in IPOPT)
    assert runs["harmonic"] == 50  # a solver's share of the 400
    assert runs["lotka-volterra-p"] == 90
    assert runs["crauste-p"] == 60


def test_a_key_contains_the_whole_configuration() -> None:
    for c in IPOPT:
        assert Configuration.of(c.key) == c


def test_a_small_part_of_the_study_favours_no_problem() -> None:
    tasks = [c.task for c in IPOPT]
    counts = Counter(t["problem"] for t in balanced(tasks, 120))
    assert set(counts) == set(STEPS)
    assert max(counts.values()) <= 12
    assert Counter(t["scheme"] for t in balanced(tasks, 120)) == dict.fromkeys(SCHEMES, 24)


def test_the_quick_study_leaves_out_fine_meshes_of_global_solvers_alone() -> None:
    whole, quick = (
        {t["key"]: t for t in campaign(name).tasks()}
        for name in ("transcription-study", "transcription-study-quick")
    )
    assert quick.keys() <= whole.keys()
    missing = [t for key, t in whole.items() if key not in quick]
    assert {t["mesh"] for t in missing} <= {"fine"}
    assert {scope_of(t["solver"]) for t in missing} <= {"global"}
    assert {t["solver"] for t in quick.values()} == {t["solver"] for t in whole.values()}


def test_one_solver_can_be_chosen() -> None:
    study = campaign("transcription-study-quick")
    chosen = study.with_options({"solver": "Ipopt", "seconds": "5"}).tasks()
    assert [t["key"] for t in chosen] == [c.key for c in IPOPT]
    assert {t["seconds"] for t in chosen} == {5.0}
    with pytest.raises(InputError, match="there is no 'Ipot'; did you mean 'Ipopt'"):
        study.with_options({"solver": "Ipot"})


def test_own_methods_have_the_problems_as_they_can_be_given_to_them() -> None:
    """Both satisfy the equations, and have coarse meshes or none, in either campaign."""
    runs = list(own_configurations())
    assert Counter(c.solver for c in runs) == {BRANCH: 6 * 12, "outer-approximation": 12}
    assert {c.formulation for c in runs} == {"Baseline"}
    assert {c.mesh for c in runs} == {"coarse"}
    assert sum(c.scheme == CONTINUOUS for c in runs) == 12
    for c in runs:
        assert Configuration.of(c.key) == c
    of_own = {"solver": ",".join(OWN)}
    for name in ("transcription-study", "transcription-study-quick"):
        tasks = campaign(name).with_options(of_own).tasks()
        assert [t["key"] for t in tasks] == [c.key for c in runs]
    assert {scope_of(name) for name in OWN} == {"global"}


def test_solvers_without_a_result_are_still_local_or_global() -> None:
    for name, solver in solvers().items():
        assert scope_of(name) == solver.scope
    assert [scope_of(s) for s in ("couenne", "baron", "knitro")] == ["global", "global", "local"]


def test_a_solver_may_stop_by_itself_before_its_task_is_stopped() -> None:
    for name, limit in (("transcription-study", 600.0), ("transcription-study-quick", 60.0)):
        assert {t["seconds"] for t in campaign(name).tasks()} == {limit}
        assert campaign(name).seconds > limit


def test_data_times_are_mesh_points() -> None:
    """The paper's footnote 2; alpha-pinene's mesh ends after its last measurement."""
    for problem, sizes in STEPS.items():
        c = Configuration(problem, "Euler", "Baseline", 0.0, sizes[0], "Ipopt")
        d = instance_of(c).discretisation
        assert d.points == sizes[0] + 1, problem
    pinene = Configuration("alpha-pinene", "Euler", "Baseline", 0.0, 1230, "Ipopt")
    d = instance_of(pinene).discretisation
    assert d.times[-1] == 36900.0
    assert d.times[1] == pytest.approx(30.0)


def test_formulations_have_the_values_of_their_configuration() -> None:
    c = Configuration("crauste-f", "Simpson", "ExtraTol", 1e-7, 100, "Ipopt")
    assert instance_of(c).formulation == ExtraTol(1e-7)
    assert c.task["formulation"] == "ExtraTol tight"


def test_start_values_are_absent_or_come_from_the_data() -> None:
    c = Configuration("lotka-volterra-p", "Trapezoid", "Baseline", 0.0, 100, "Ipopt")
    d = instance_of(c).discretisation
    assert start_of(d, "zero") == (None, None)
    values, unknowns = start_of(d, "data")
    assert values is not None
    assert unknowns is not None
    series = d.problem.conditions[0].series["y1"]
    assert values[d.measured[0], 0] == pytest.approx(series.values)
    # The predator is not seen: the middle of its bounds. Parameters: zero, within bounds, as is
    # the first measurement of the prey.
    assert (values[:, 1] == 100.0).all()
    assert series.values[0] < 90.0
    assert unknowns.tolist() == [1e-4, 1e-4, 1e-4, 90.0, 100.0]


# The tables -------------------------------------------------------------------------------------

HARMONIC = "harmonic, Trapezoid, Baseline, M = 230, {}"
FINE = "harmonic, Trapezoid, Baseline, M = 2300, {}"


def test_runs_without_result_count_in_every_denominator() -> None:
    records = [
        record(HARMONIC.format("Ipopt"), place="found", seconds=0.5),
        record(FINE.format("Ipopt"), place="found", seconds=0.25),
        record("harmonic, Euler, Baseline, M = 230, Ipopt", place="near", solved=False),
        record("harmonic, Euler, Baseline, M = 2300, Ipopt", "time limit"),
    ]
    table = study_tables(records)["problem"]
    row = table[table["problem"] == "harmonic"].iloc[0]
    assert row["runs"] == 4
    assert (row["SOLVED"], row["FOUND"], row["NEAR"]) == (0.5, 0.5, 0.25)
    assert (row["ALTERN"], row["TIME"], row["SUCCESS"]) == (0.0, 0.25, 0.75)
    assert math.isnan(row["CERTIFIED"])  # no global solver
    assert row["paper FOUND"] == 0.733


def test_certificates_are_counted_among_global_runs_alone() -> None:
    records = [
        record(HARMONIC.format("Ipopt"), place="found"),
        record(HARMONIC.format("SCIP"), place="found", certified=True),
        record(FINE.format("SCIP"), "time limit"),
    ]
    tables = study_tables(records)
    scheme = tables["scheme"].set_index("scheme")
    assert scheme.loc["Trapezoid", "CERTIFIED"] == 0.5
    assert scheme.loc["Trapezoid", "FOUND"] == pytest.approx(0.667)
    scope = tables["scope"].set_index("scope")
    assert scope.loc["global", "runs"] == 2  # the one that was stopped too
    assert scope.loc["local", "runs"] == 1


def test_our_solvers_are_compared_with_equivalent_ones() -> None:
    records = [record(HARMONIC.format(s)) for s in ("Ipopt", "Bonmin", "SCIP")]
    table = compared(frame(records), ("solver",), paper.SOLVERS)
    pairs = {(a, b) for a, b in zip(table["solver"], table["paper solver"], strict=True)}
    assert {("Ipopt", "Ipopt"), ("Bonmin", "BONMIN")} <= pairs
    assert {("SCIP", "Couenne"), ("SCIP", "BARON")} <= pairs
    ipopt = table[table["paper solver"] == "Ipopt"].iloc[0]
    assert (ipopt["paper SOLVED"], ipopt["paper FOUND"]) == (0.886, 0.395)
    # All that the paper has is shown, also where we have nothing.
    assert set(table["paper solver"]) == set(paper.SOLVERS)


def test_the_papers_own_rows_agree_with_each_other() -> None:
    """A misread figure shows: a mean over one disaggregation is a mean over the other."""
    for k, name in enumerate(paper.COLUMNS):
        if name == "TIME":
            best = {min(row[k] for row in t.values()) for t in (paper.SOLVERS, paper.SCHEMES)}
            assert best == {0.026}
            continue
        by_solver = sum(row[k] for row in paper.SOLVERS.values()) / 8
        by_scheme = sum(row[k] for row in paper.SCHEMES.values()) / 5
        share = {"Baseline": 125, "ExtraTol": 285, "SoftCons": 250}
        by_form = sum(paper.FORMULATIONS[f][k] * n for f, n in share.items()) / 660
        runs = Counter(c.problem for c in IPOPT)
        by_problem = sum(row[k] * runs[p] for p, row in paper.PROBLEMS.items()) / 660
        for other in (by_scheme, by_form, by_problem):
            assert other == pytest.approx(by_solver, abs=1.5e-3), name


def test_tables_of_the_page_are_of_the_solvers_that_have_runs() -> None:
    scip = [
        record(HARMONIC.format("SCIP"), place="found", certified=True),
        record("bbg, Euler, SoftCons 1000, M = 120, SCIP", solved=False, place="alternative"),
    ]
    own = [record(f"harmonic, {CONTINUOUS}, Baseline, M = 0, {BRANCH}", certified=True)]
    found = page_tables(frame(scip + own))
    assert set(found) == {"proving", "proving-problems"}
    rows = {row[0]: row[1:] for row in found["proving"].values.tolist()}
    assert rows["SCIP"] == ["2", "0.500", "0.500", "0.500"]
    assert rows["SCIP, Baseline"] == ["1", "1.000", "1.000", "1.000"]
    assert "SCIP, ExtraTol" not in rows
    assert rows["*the paper's BARON*"] == ["*660*", "*0.667*", "*0.518*", ""]
    assert rows["branch and bound, continuous time"] == ["1", "1.000", "0.000", "1.000"]
    of_problem = {row[0]: row[1:] for row in found["proving-problems"].values.tolist()}
    assert of_problem["harmonic"] == ["1.000", "1.000", "", "", "1.0", "-"]
    assert of_problem["bbg"] == ["0.000", "0.000", "", "", "-", "-"]

    ipopt = page_tables(frame([record(HARMONIC.format("Ipopt"), place="near")]))
    assert set(ipopt) == {"ipopt", "ipopt-problems"}
    proportions = ["1.000", "0.000", "1.000", "0.000", "1.000"]
    assert ipopt["ipopt"].values.tolist()[0] == ["all", "1", *proportions]
    assert ipopt["ipopt-problems"].values.tolist() == [
        ["harmonic", "0.000", "1.000", "0.000", "0.733", "0.002", "0.000"]
    ]


# Real runs --------------------------------------------------------------------------------------


def few_tasks() -> list[Any]:
    wanted = ("Trapezoid, Baseline", "Simpson, ExtraTol 1e-06", "Euler, SoftCons 1000")
    keys = [f"mammillary-3-f, {w}, M = 100, Ipopt" for w in wanted]
    return [Configuration.of(key).task | {"seconds": 60.0} for key in keys]


FEW = Campaign(
    "few",
    "three runs",
    few_tasks,
    quick_run,
    study_tables,
    campaign("transcription-study-quick").figures,
)


@pytest.mark.slow
def test_a_run_of_the_campaign_finds_references_and_draws_them(tmp_path: Path) -> None:
    records = run_campaign(FEW, tmp_path, jobs=1)
    assert [r.outcome for r in records] == ["done"] * 3
    for r in records:
        assert r.result is not None
        assert r.result["certified"] is None  # a local solver proves nothing
        assert r.result["build_seconds"] >= 0
    first = records[0].result
    assert first is not None
    assert first["solved"]
    assert first["success"]
    assert first["place"] == "found"
    assert first["max_re"] < 1e-2
    assert first["nrmse"] < 1e-4
    assert first["unknowns"]["a31"] == pytest.approx(0.6, rel=1e-2)
    for name in ("problem", "solver-scheme", "figure-mammillary-3-f"):
        endings = ("svg", "png") if name.startswith("figure") else ("csv", "md")
        for ending in endings:
            assert (tmp_path / f"{name}.{ending}").stat().st_size > 0


@pytest.mark.parametrize("solver", OWN)
def test_an_own_method_certifies_a_problem_of_the_study(solver: str) -> None:
    chosen = (c for c in own_configurations() if (c.problem, c.solver) == ("harmonic", solver))
    found = solve_by_own_method(next(chosen), 20.0)
    assert found["certified"]
    assert found["place"] == "found"
    assert found["nrmse"] < 1e-4
    assert found["unknowns"]["p1"] == pytest.approx(9.8, rel=1e-3)


@pytest.mark.slow
def test_global_runs_fill_their_panels() -> None:
    figures = campaign("transcription-study").figures
    assert figures is not None
    point: dict[str, Any] = {"max_re": 1e-3, "nrmse": 1e-6}
    records = [
        record(HARMONIC.format("SCIP"), place="found", solved=False, **point),
        record(HARMONIC.format("Ipopt"), place="found", **point),
        record("bbg, Euler, Baseline, M = 120, Ipopt", "crashed"),
    ]
    drawn = figures(records)
    assert list(drawn) == ["figure-harmonic"]  # nothing to draw of the other
    titles = [a.get_title(loc="left") for a in drawn["figure-harmonic"].axes]
    assert [t[:3] for t in titles if t] == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    assert "no such run" in [t.get_text() for t in drawn["figure-harmonic"].axes[4].texts]


def test_max_re_is_the_worst_parameter_and_leaves_initial_values_out() -> None:
    problem, reference = library.load("harmonic"), library.reference("harmonic")
    assert problem.keys == ("p1", "p2", "x1", "x2")
    # p1 = 9.8 and p2 = 1.3; the initial values are 1 and 1
    found = metrics.max_relative_error(problem, reference, np.array([9.31, 1.326, 99.0, -99.0]))
    assert found == pytest.approx(0.05)


def test_max_re_of_a_negative_parameter_is_positive() -> None:
    problem = library.load("mammillary-3-f")
    reference = library.reference("mammillary-3-f")
    values = np.array([{**reference.initial, **reference.parameters}[k] for k in problem.keys])
    assert metrics.max_relative_error(problem, reference, values) == 0.0
    values[list(problem.keys).index("a01")] = 0.2  # the reference is -0.2
    assert metrics.max_relative_error(problem, reference, values) == pytest.approx(2.0)


def test_nrmse_is_the_root_mean_square_over_the_range_of_all_data() -> None:
    problem = library.load("harmonic")
    series = problem.conditions[0].series
    y1, y2 = series["y1"].values, series["y2"].values
    span = max(y1.max(), y2.max()) - min(y1.min(), y2.min())
    # Ten residuals of 0.3 and ten of 0.4: the mean square is 0.125.
    predicted = [{"y1": y1 + 0.3, "y2": y2 - 0.4}]
    expected = math.sqrt(0.125) / span
    assert metrics.normalised_error(problem, predicted) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("max_re", "nrmse", "expected"),
    [
        (0.0, 1.0, "found"),
        (0.1, 1.0, "found"),
        (0.1001, 0.0, "near"),
        (0.5, 0.0, "near"),
        (0.5001, 0.99e-4, "alternative"),
        (0.5001, 1e-4, "elsewhere"),
        (math.nan, 0.0, "elsewhere"),
        (None, None, "elsewhere"),
    ],
)
def test_a_solution_counts_in_one_column(
    max_re: float | None, nrmse: float | None, expected: str
) -> None:
    assert metrics.place(max_re, nrmse) == expected


def test_a_certificate_needs_a_bound_within_either_gap() -> None:
    assert metrics.certified(10.0, 9.99, 0.0)
    assert not metrics.certified(10.0, 9.98, 0.0)
    assert metrics.certified(1e-7, 0.0, 1e-6)  # an optimum of zero has no relative gap
    assert not metrics.certified(1e-5, 0.0, 1e-6)
    assert not metrics.certified(1e-7, None, 1e-6)
    assert not metrics.certified(math.nan, 0.0, 1e-6)
    assert not metrics.certified(1.0, -math.inf, 1e-6)


def test_the_gap_is_relative_to_the_objective() -> None:
    assert metrics.relative_gap(10.0, 9.0) == pytest.approx(0.1)
    assert metrics.relative_gap(10.0, None) is None
    assert metrics.relative_gap(0.0, 0.0) is None


def test_soft_constraints_cost_their_penalty() -> None:
    c = Configuration("harmonic", "Euler", "SoftCons", 1e3, 230, "Ipopt")
    soft = instance_of(c)
    d = soft.discretisation
    # x1 = 1, x2 = 0 at all times, p1 = 2, p2 = 4: with h = 0.01, each of the 230 rows of x1
    # holds, and each of x2 is off by h * x1 / p2.
    values = np.tile([1.0, 0.0], (d.points, 1))
    unknowns = np.array([2.0, 4.0, 1.0, 0.0])
    plain = d.objective(values, unknowns)
    found = penalised_objective(soft, values, unknowns)
    assert found - plain == pytest.approx(1e3 * 230 * 0.01 / 4.0)
    hard = instance_of(Configuration("harmonic", "Euler", "Baseline", 0.0, 230, "Ipopt"))
    assert penalised_objective(hard, values, unknowns) == plain
    # A slack of the size of a solver's tolerance costs nothing.
    values[1:, 0] += 5e-7
    unknowns = np.array([2.0, 1e9, 1.0, 0.0])
    assert penalised_objective(soft, values, unknowns) == d.objective(values, unknowns)
