"""A result shows itself: tables, simulation, plots, report, text."""

from __future__ import annotations

import math
import pickle
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import odefit
from odefit.common.errors import InputError
from odefit.result.result import Result, Solution
from tests.reporting import examples

TROUBLED = examples.troubled()
ALPHA_PINENE = examples.alpha_pinene()
FAILED = examples.failed()

COLUMNS = [
    "kind",
    "estimate",
    "std_error",
    "rse",
    "ci_low",
    "ci_high",
    "identifiable",
    "note",
    "unit",
]


@pytest.mark.parametrize(
    "result",
    [
        TROUBLED,
        ALPHA_PINENE,
        FAILED,
        replace(ALPHA_PINENE, uncertainty=None),
        examples.many(2, 2),
    ],
)
def test_every_number_that_is_missing_has_a_reason(result: Result) -> None:
    table = result.parameters
    assert list(table.columns) == COLUMNS
    assert set(result.problem.keys) <= set(table.index)
    numbers = table[["estimate", "std_error", "rse", "ci_low", "ci_high"]]
    incomplete = table[numbers.isna().any(axis=1)]
    assert (incomplete["note"].str.len() > 0).all()
    for value in table["identifiable"]:
        assert value is True or value is False or value is None
    assert (table.loc[table["identifiable"].isna(), "note"].str.len() > 0).all()


def test_a_well_determined_result_has_no_remarks() -> None:
    table = ALPHA_PINENE.parameters.query("kind == 'parameter'")
    assert (table["note"] == "").all()
    assert table["identifiable"].tolist() == [True] * 5
    assert table["unit"].tolist() == ["1/min"] * 5
    assert table["estimate"].tolist() == examples.ALPHA_PINENE.tolist()
    assert table.attrs["level"] == 0.95


@pytest.mark.parametrize(
    ("key", "identifiable", "note"),
    [
        ("k_a", True, ""),
        ("k2", False, f"not determined. {examples.PRODUCT}"),
        ("V_max", None, "at the lower bound (0)"),
        ("K_m", False, "no effect: the measured observables do not depend on it here"),
        ("mu_N", None, "weakly determined: the standard error is 1000 % of the estimate"),
        ("delta_E", None, "fixed by the problem"),
        ("gut[oral]", None, "known"),
        ("effect", None, "follows from alpha*0.01"),
        ("blood[oral]", True, ""),
        ("y_gut_sd", True, ""),
    ],
)
def test_the_table_says_why(key: str, identifiable: bool | None, note: str) -> None:
    row = TROUBLED.parameters.loc[key]
    assert row["identifiable"] is identifiable
    assert row["note"] == note


def test_without_a_solution_the_note_is_the_message() -> None:
    table = FAILED.parameters
    assert table["estimate"].isna().all()
    assert set(table["note"]) == {"no solution was found: every start failed"}
    assert math.isnan(FAILED.objective)
    assert FAILED.log_likelihood is None
    with pytest.raises(ValueError, match="no solution was found: every start failed"):
        _ = FAILED.best
    with pytest.raises(ValueError, match="no solution was found"):
        FAILED.simulate()


def test_without_degrees_of_freedom_the_missing_interval_is_explained() -> None:
    uncertainty = ALPHA_PINENE.uncertainty
    assert uncertainty is not None
    limits = np.full((5, 2), np.nan)
    none = replace(uncertainty, degrees_of_freedom=0.0, intervals=limits)
    table = replace(ALPHA_PINENE, uncertainty=none).parameters
    assert "no degrees of freedom" in str(table.loc["p1", "note"])


def test_a_standard_error_that_is_missing_without_trouble_is_explained() -> None:
    uncertainty = ALPHA_PINENE.uncertainty
    assert uncertainty is not None
    none = replace(
        uncertainty,
        standard_errors=np.full(5, np.nan),
        intervals=np.full((5, 2), np.nan),
        sentence="",
    )
    table = replace(ALPHA_PINENE, uncertainty=none).parameters
    assert table.loc["p1", "note"] == "the standard error could not be computed"
    assert table.loc["p1", "identifiable"] is None


def test_simulation_defaults_to_the_data_times() -> None:
    table = ALPHA_PINENE.simulate()
    condition = ALPHA_PINENE.problem.condition()
    assert list(table.columns) == ["t", *(f"x{i}" for i in range(1, 6)),
                                   *(f"y{i}" for i in range(1, 6))]  # fmt: skip
    assert table["t"].tolist() == condition.times.tolist()
    squares = sum(
        float(np.sum((table[name] - series.values) ** 2))
        for name, series in condition.series.items()
    )
    assert squares == pytest.approx(19.872166934, rel=1e-8)


def test_simulation_at_given_times_and_in_a_named_experiment() -> None:
    table = TROUBLED.simulate([0.0, 5.0, 5.5], experiment="oral")
    assert table["t"].tolist() == [0.0, 5.0, 5.5]
    assert table["gut"].iloc[1] == pytest.approx(np.exp(-1.02 * 5.0), rel=1e-6)
    assert table["gut"].iloc[2] > 0.5  # after the dose
    assert ALPHA_PINENE.simulate(0.0)["x1"].tolist() == [100.0]
    with pytest.raises(InputError, match="orl"):
        TROUBLED.simulate(experiment="orl")


PLOTS = ("fit", "residuals", "starts", "parameters", "correlation")


@pytest.mark.slow
@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("result", [TROUBLED, ALPHA_PINENE, FAILED])
def test_every_plot_is_a_figure_that_can_be_drawn(
    name: str, result: Result, tmp_path: Path
) -> None:
    figure = getattr(result, f"plot_{name}")()
    assert isinstance(figure, Figure)
    kinds = ("png", "svg", "pdf") if result is TROUBLED else ("png",)
    for kind in kinds:
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 500


@pytest.mark.slow
def test_importing_and_making_a_result_needs_numpy_alone() -> None:
    heavy = ("matplotlib", "pandas", "rich", "scipy", "heyoka", "casadi")
    code = f"import odefit.result.result, sys; print(*sorted(set(sys.modules) & set({heavy!r})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.slow
def test_plots_neither_need_nor_touch_pyplot() -> None:
    code = (
        "from tests.reporting import examples; import sys, matplotlib\n"
        "matplotlib.rcParams['font.size'] = 17.0\n"
        "r = examples.alpha_pinene()\n"
        "r.plot_fit(); r.plot_correlation()._repr_png_()\n"
        "print('matplotlib.pyplot' in sys.modules, matplotlib.rcParams['font.size'])"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert run.stdout.split() == ["False", "17.0"]


def test_a_result_prints_as_a_readable_summary() -> None:
    text = str(ALPHA_PINENE)
    assert "alpha-pinene" in text
    assert "The fit converged to a local optimum." in text
    assert re.search(r"p1 +5\.926e-05 +2\.6e-07 +0\.44 +\[5\.873e-05, 5\.979e-05\]", text)
    assert "seed 20240601" in text
    assert "\x1b" not in text
    assert repr(ALPHA_PINENE) == (
        "Result('alpha-pinene': converged, objective 19.8722, 1 solution)"
    )


def test_solutions_show_as_one_line_each() -> None:
    first = TROUBLED.solutions[0]
    second = replace(first, objective=12.5, hits=0)
    text = repr(replace(TROUBLED, solutions=[replace(first, hits=1), second]).solutions)
    one, other = text.split("\n")
    assert one.startswith("[0] ")
    assert ", 1 start: " in one
    assert other.startswith("[1] ")
    assert ", from the equations: " in other
    key, value = next(iter(first.parameters.items()))
    for line in (one, other):
        assert f"{key} = {value:.5g}" in line
        assert len(line) < 400
    assert repr(first) == f"Solution({first.line})"
    assert repr(FAILED.solutions) == "no solutions"


def test_a_solution_of_many_values_says_how_many_it_does_not_show() -> None:
    values = {f"k{i}": float(i) for i in range(30)}
    one = Solution(np.arange(30.0), values, {"x": 2.0}, 0.25, log_likelihood=-3.5, hits=7)
    assert repr(one) == (
        "Solution(log-likelihood -3.5, 7 starts: k0 = 0, k1 = 1, k2 = 2, k3 = 3, k4 = 4, k5 = 5, "
        "k6 = 6, k7 = 7, k8 = 8, k9 = 9, k10 = 10, k11 = 11 and 19 more)"
    )


def test_solutions_are_a_tuple_that_can_be_pickled() -> None:
    solutions = ALPHA_PINENE.solutions
    assert isinstance(solutions, tuple)
    again = pickle.loads(pickle.dumps(solutions))
    assert repr(again) == repr(solutions)


def test_a_notebook_shows_the_tables() -> None:
    page = TROUBLED._repr_html_()
    assert "<script" not in page
    assert f"not determined. {examples.PRODUCT}" in page


@pytest.mark.slow
def test_a_report_is_written_in_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    ALPHA_PINENE.report(path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"):
        ALPHA_PINENE.report(tmp_path / "nowhere" / "report.html")


def slowly(_: odefit.Progress) -> None:
    """So slow a program that memory is looked at meanwhile."""
    time.sleep(1.0)


@pytest.mark.slow
def test_long_work_on_a_result_has_a_memory_limit() -> None:
    """This process holds more than 100 MB long before."""
    profiles = ALPHA_PINENE.profile(jobs=1, memory="100MB", progress=slowly)
    samples = ALPHA_PINENE.bootstrap(500, jobs=1, memory="100MB", progress=slowly)
    for status, message in ((profiles.status, profiles.message), (samples.status, samples.message)):
        assert status is odefit.Status.MEMORY_LIMIT
        assert "memory limit" in message
    with pytest.raises(InputError, match="memory: 1 MB is too little"):
        ALPHA_PINENE.profile(memory="1MB")
