"""``odefit convert``: every way between the formats."""

from __future__ import annotations

from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run


def test_a_problem_file_becomes_petab_and_comes_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", "decay.toml", "as-petab") == 0
    assert capsys.readouterr().out.strip() == str(Path("as-petab") / "problem.yaml")
    assert run("convert", "as-petab/problem.yaml", "again.yaml", "--nominal") == 0
    assert run("convert", "again.yaml", "back/decay.toml") == 0
    problem, back = odefit.load("decay.toml"), odefit.load("back/decay.toml")
    assert len(back.keys) == len(problem.keys)
    assert back.size == problem.size
    assert sorted(p.name for p in Path("back").iterdir())[0] == "decay.toml"


def test_what_petab_has_no_words_for_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "decay.toml").read_text(encoding="utf-8")
    (folder / "robust.toml").write_text(
        f'{text}\n[noise]\ny = {{ sd = 0.1, loss = "huber" }}\n', encoding="utf-8"
    )
    said = refused(capsys, "convert", "robust.toml", "as-petab")
    assert "PEtab 2 has no words for huber" in said
    assert not Path("as-petab").exists()
