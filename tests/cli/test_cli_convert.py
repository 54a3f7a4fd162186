"""``odefit convert``: every way between the formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run


def test_a_problem_file_becomes_petab_and_comes_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("yaml")
    assert run("convert", "decay.toml", "as-petab") == 0
    assert capsys.readouterr().out.strip() == str(Path("as-petab") / "problem.yaml")
    assert run("convert", "as-petab/problem.yaml", "again.yaml", "--nominal") == 0
    assert run("convert", "again.yaml", "back/decay.toml") == 0
    problem, back = odefit.load("decay.toml"), odefit.load("back/decay.toml")
    assert len(back.keys) == len(problem.keys)
    assert back.size == problem.size
    assert sorted(p.name for p in Path("back").iterdir())[0] == "decay.toml"


def test_a_target_of_another_kind_gets_all_kinds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "convert", "decay.toml", "model.txt")
    assert "expected NAME.toml (a problem file), NAME.yaml or a folder (PEtab), or a pro" in said
    assert "NAME.py, NAME.c, NAME.jl, NAME.m" in said


def test_a_feature_that_petab_cannot_express_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "decay.toml").read_text(encoding="utf-8")
    (folder / "robust.toml").write_text(
        f'{text}\n[noise]\ny = {{ sd = 0.1, loss = "huber" }}\n', encoding="utf-8"
    )
    said = refused(capsys, "convert", "robust.toml", "as-petab")
    assert "PEtab 2 cannot express huber" in said
    assert not Path("as-petab").exists()


@pytest.mark.slow
def test_a_fitted_model_becomes_a_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "decay.toml", "--json", "result.json") == 0
    capsys.readouterr()
    assert run("convert", "result.json", "model.py") == 0
    said = capsys.readouterr()
    assert said.out.strip() == "model.py"
    assert "compare it with odefit's own simulation: python model.py" in said.err
    done = subprocess.run(
        [sys.executable, "model.py"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "differs from odefit by at most" in done.stdout
    refusal = refused(capsys, "convert", "result.json", "other.py", "--set", "kk=1")
    assert "there is no parameter or state 'kk'" in refusal
    assert run("convert", "result.json", "other.py", "--set", "k=0.25") == 0
    assert "'k': 0.25," in Path("other.py").read_text(encoding="utf-8")
    estimate = odefit.load_result("result.json").params["k"].value
    assert f"'k': {estimate!r}," in Path("model.py").read_text(encoding="utf-8")


def test_a_problem_becomes_a_program_with_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", "decay.toml", "model.c", "--set", "k=0.5", "--set", "s=2") == 0
    assert "cc -std=c99 -O2 model.c -lm -o model" in capsys.readouterr().err
    assert "0.5, 2.0" in Path("model.c").read_text(encoding="utf-8")
    assert "no value for k, s; give --set k=VALUE s=VALUE" in refused(
        capsys, "convert", "decay.toml", "other.c"
    )
    assert "only a program takes values" in refused(
        capsys, "convert", "decay.toml", "other.toml", "--set", "k=1"
    )
    assert "there is no parameter or state 'kk'" in refused(
        capsys, "convert", "decay.toml", "other.c", "--set", "kk=1"
    )
