"""All evidence: tasks are sound, tables say what happened, the command line has a remedy."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys

import pytest

from evidence import ROWS, Record, campaign
from evidence.command_line import main
from evidence.intervals.recovery import noisy_problem
from evidence.running.campaign import Campaign
from evidence.running.output import markdown, shown
from odefit import library
from odefit.common.errors import InputError


def importable(name: str) -> Campaign:
    """Return a campaign; skip the test if it compares with heyoka, and heyoka is not installed."""
    if name in ("trajectory", "screening-in-lanes", "local-linearization"):
        pytest.importorskip("heyoka")
    return campaign(name)


@pytest.mark.parametrize("name", ROWS)
def test_tasks_are_json_with_a_unique_key(name: str) -> None:
    one = importable(name)
    tasks = one.tasks()
    if any(option.name == "folder" for option in one.options) and not tasks:
        return  # problems that have to be there
    assert json.loads(json.dumps(tasks)) == tasks
    assert len({t["key"] for t in tasks}) == len(tasks) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_tables_can_be_made_of_failures_alone(name: str) -> None:
    one = campaign(name)
    records = [Record(t["key"], t, "crashed", None, "no luck", 1.0) for t in one.tasks()[:3]]
    if not records:
        return
    for table in one.tables(records).values():
        assert markdown(table).startswith("| ")


@pytest.mark.parametrize("name", ROWS)
def test_campaigns_can_be_sent_to_processes(name: str) -> None:
    one = importable(name)
    again = pickle.loads(pickle.dumps(one))
    assert (again.name, again.run, again.tasks()) == (name, one.run, one.tasks())


@pytest.mark.slow
def test_a_list_of_campaigns_needs_nothing_heavy() -> None:
    code = (
        "import sys, evidence\n"
        "print(*sorted({'pandas', 'scipy', 'matplotlib', 'casadi', 'heyoka'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_an_unknown_name_gets_a_proposal() -> None:
    with pytest.raises(InputError, match=r"did you mean 'recovery'\? there is: alpha-pinene,"):
        campaign("recovry")
    with pytest.raises(InputError, match="no evidence 'x'; there is"):
        campaign("x")


@pytest.mark.slow
def test_alpha_pinene_is_found_without_a_guess() -> None:
    one = campaign("alpha-pinene")
    task = one.tasks()[0]
    result = one.run(task)
    assert result["right"]
    assert result["objective"] == pytest.approx(19.872167, abs=1e-5)
    assert result["worst_error"] < 5e-3
    records = [Record(task["key"], task, "done", result, "", 1.0)]
    records.append(
        Record(one.tasks()[1]["key"], one.tasks()[1], "time limit", None, "stopped", 120.0)
    )
    summary = one.tables(records)["summary"]
    assert summary["right runs"][0] == "1 of 2"


def test_recovery_counts_truths_inside_intervals() -> None:
    one = campaign("recovery")
    tasks = one.tasks()[:2]

    def result(low: float, high: float) -> dict[str, object]:
        values = {"truth": 2.0, "estimate": 2.1, "error": 0.1, "low": low, "high": high}
        return {"status": "converged", "seconds": 1.0, "unknowns": {"k": values}}

    records = [
        Record(tasks[0]["key"], tasks[0], "done", result(1.9, 2.3), "", 1.0),
        Record(tasks[0]["key"], tasks[0], "done", result(2.05, 2.15), "", 1.0),
    ]
    row = one.tables(records)["problems"].iloc[0]
    assert row["intervals"] == 2
    assert row["coverage"] == 0.5
    assert row["mean score"] == pytest.approx(1.0)


def test_recovery_reports_the_noise_that_it_adds() -> None:
    task = {"problem": "sir", "noise": 0.05, "sd": "given", "seed": 3}
    problem = noisy_problem(task)
    exact = library.load("sir")
    for name, noise in problem.noise.items():
        values = exact.conditions[0].series[name].values
        assert noise.sd == pytest.approx(0.05 * values.std(ddof=1))
    assert noisy_problem({**task, "sd": "none"}).noise == {}


def test_cells_are_short() -> None:
    assert shown(math.nan) == shown(None) == ""
    assert shown(True) == "yes"
    assert shown(12.0) == "12"
    assert shown(0.1234567) == "0.12346"
    assert shown("a|b\nc") == "a\\|b c"


def test_campaigns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("alpha-pinene ") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run nothing", "there is no evidence 'nothing'"),
        ("run library --limit 0", "--limit: expected a positive number"),
        ("run recovery --set noise", "--set: expected NAME=VALUE"),
    ],
)
def test_a_mistake_is_status_two_with_a_remedy(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err


def test_an_action_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "ACTION" in capsys.readouterr().err
