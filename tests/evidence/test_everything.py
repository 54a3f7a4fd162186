"""`run all`: every table of the pages is made by a part, which says how long it takes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evidence import overview, page
from evidence.command_line import main
from evidence.everything import Part, parts, run_all
from evidence.registry import ROWS
from odefit.common.errors import InputError

DAY = 24 * 60


def test_all_parts_take_a_day_at_most_on_two_cores() -> None:
    assert 0 < sum(part.minutes for part in parts()) <= DAY


def test_every_table_of_the_pages_is_made_by_a_part() -> None:
    filled = {table for one in ROWS.values() for table in one.fills}
    assert {table for part in parts() for table in part.row.fills} == filled


def test_parts_of_a_page_are_those_that_fill_its_tables() -> None:
    assert [part.row.name for part in parts(["algebraic"])] == [
        "rational",
        "rational-noise",
        "rational-long",
    ]
    with pytest.raises(InputError, match="no page 'speeed'; did you mean 'speed'"):
        parts(["speeed"])


def test_options_are_those_of_a_row() -> None:
    (part,) = parts(["sbml"], {"sbml-suite.cases": "00001"})
    assert part.given == {"cases": "00001"}
    with pytest.raises(InputError, match=r"expected ROW\.NAME=VALUE with 'all', got folder=x"):
        parts([], {"folder": "x"})


def test_a_share_of_the_tasks_is_a_limit() -> None:
    row = replace(ROWS["rational"], share=0.25, minutes=20)
    part = Part(row, {"sets": "2"})
    assert part.minutes == 5
    words = part.command(Path("out"), 2, 30)
    assert words[3:] == "run rational --out out --limit 8 --jobs 2 --set sets=2".split()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that would have run; that of 'library' fails."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, int("library" in command))

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(page, "record", lambda folder: [])
    monkeypatch.setattr(page, "write", lambda: None)
    monkeypatch.setattr(overview, "write", lambda: None)
    return commands


def test_a_part_that_fails_or_lacks_a_package_is_reported_and_the_others_run(
    ended: list[list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lacking = Part(replace(ROWS["whole-fit"], needs=["no-such-package"]))
    folderless = Part(ROWS["petab-gradients"], {"shift": "0.1"})
    chosen = [Part(ROWS["library"]), lacking, folderless, Part(ROWS["alpha-pinene"])]
    assert run_all(chosen, tmp_path) == [
        "library: failed, with exit status 1",
        "whole-fit: left out, as no-such-package is not installed",
        "petab-gradients: left out, as it needs --set petab-gradients.folder=DIR",
    ]
    assert [command[4] for command in ended] == ["library", "alpha-pinene"]
    said = capsys.readouterr().out
    assert said.startswith("4 parts, about ")
    assert "[4/4] alpha-pinene: about 60 s, until " in said


def test_a_table_of_a_part_of_a_campaign_ends_no_other_part(
    ended: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lacking() -> None:
        raise InputError("Dense series: a column is missing")

    monkeypatch.setattr(overview, "write", lacking)
    assert (
        run_all([Part(ROWS["jak-stat"]), Part(ROWS["alpha-pinene"])], tmp_path)
        == ["Dense series: a column is missing"] * 2
    )
    assert [command[4] for command in ended] == ["jak-stat", "alpha-pinene"]


def test_options_of_a_part_require_its_packages() -> None:
    row = replace(ROWS["petab-gradients"], needs=["no-such-package"])
    assert Part(row).missing() == ["no-such-package"]
    assert Part(row, {"amici": "python"}).missing() == []


def test_pages_are_chosen_of_all_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "library", "--only", "speed"]) == 2
    assert "--only: chooses pages of 'run all'" in capsys.readouterr().err


def test_an_unknown_option_is_refused_before_anything_runs(
    ended: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("run all --only petab --set petab-gradients.shft=1".split()) == 2
    assert "no option 'shft'; did you mean 'shift'" in capsys.readouterr().err
    assert ended == []
