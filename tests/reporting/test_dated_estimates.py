"""The estimate of a time has its date beside it wherever estimates are shown."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.reporting.documents.estimate_tables import WRITERS
from odefit.reporting.parameters import parameter_rows
from odefit.reporting.terminal import result_text

CUT = datetime.datetime(2021, 3, 8, 8, 30)


@pytest.fixture(scope="module")
def result() -> odefit.Result:
    """The fit of a decay that becomes faster at 2021-03-08 08:30."""
    times = np.arange(20.0)
    switch = 7.0 + 8.5 / 24.0
    levels = np.where(times < switch, 0.05 * times, 0.05 * switch + 0.4 * (times - switch))
    dates = [str(datetime.date(2021, 3, 1) + datetime.timedelta(days=d)) for d in range(20)]
    noise = 0.01 * np.sin(12.9 * np.arange(20))
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-if(t < t_cut, 0.05, k)*x"}),
        {"t": dates, "x": (np.exp(-levels) + noise).tolist()},
        parameters={"t_cut": {"lower": 1, "upper": 18}, "k": {"lower": 0.1, "upper": 2}},
        initial={"x": 1.0},
        noise={"x": {"sd": 0.01}},
    )
    return odefit.fit(problem, seed=1, jobs=1)


def test_the_date_of_a_switch_and_of_the_ends_of_its_interval_are_shown(
    result: odefit.Result, tmp_path: Path
) -> None:
    row = next(row for row in parameter_rows(result) if row.key == "t_cut")
    estimate, low, high = row.dates
    assert abs(datetime.datetime.fromisoformat(estimate) - CUT) < datetime.timedelta(hours=5)
    assert low < estimate < high
    words = f"{estimate} ({low} to {high})"
    assert f"- t_cut: {words}" in str(result)
    assert words in " ".join(result_text(result, width=40).split())
    result.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"<td>{words}</td>" in page
    for suffix in (".md", ".tex"):
        table = WRITERS[suffix](result)
        assert words in table.replace("\\", "")
        assert "Date" in table.splitlines()[0 if suffix == ".md" else 3]


def test_tables_and_the_file_have_dates_as_values(result: odefit.Result, tmp_path: Path) -> None:
    table = result.parameters
    (row,) = [row for row in parameter_rows(result) if row.dated]
    assert row.dated is not None
    assert table["date"]["t_cut"] == row.dated.date(row.estimate)
    assert table["date_low"]["t_cut"] == row.dated.date(row.ci_low)
    assert table["date"].isna().tolist() == [key != "t_cut" for key in table.index]
    result.save(tmp_path / "r.json")
    dates = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["dates"]
    assert [*dates] == ["t_cut"]
    upper = row.dated.date(row.ci_high)
    assert upper is not None
    assert dates["t_cut"]["upper"] == upper.isoformat()
    again = odefit.load_result(tmp_path / "r.json")
    assert str(again.parameters) == str(table)


@pytest.mark.parametrize(
    ("error", "shown"),
    [(5.0, "2021-03-08"), (0.5, "2021-03-08 08:24"), (1e-3, "2021-03-08 08:24:00")],
)
def test_a_date_is_as_exact_as_its_error(result: odefit.Result, error: float, shown: str) -> None:
    row = next(row for row in parameter_rows(result) if row.dated)
    exact = replace(row, estimate=7.35, std_error=error)
    assert exact.dates[0] == shown
