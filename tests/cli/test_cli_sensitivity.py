"""``odefit sensitivity``: a ranking, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.commands import refused, run


def test_a_ranking_is_printed_and_a_table_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sensitivity", "decay.toml", "--set", "k=0.7", "s=2", "--times", "0:4:9"]
    assert run(*command, "--csv", "local.csv", "--plot", "local.svg") == 0
    text = capsys.readouterr().out
    assert "relative change of the output" in text
    assert "  y: k " in text
    table = pd.read_csv("local.csv")
    assert list(table.columns) == ["output", "experiment", "t", "key", "elasticity", "derivative"]
    assert len(table) == 18
    assert "elasticity" in Path("local.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_shares_of_the_variance_of_a_quantity_are_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("SALib")
    command = ["sensitivity", "decay.toml", "--kind", "sobol", "--of", "AUC = integral(y, 0:4)"]
    ranges = ["--range", "s=1:3", "k=0.1:1", "--samples", "64", "--seed", "2"]
    assert run(*command, *ranges, "--json", "s.json", "--plot", "s.png") == 0
    data = json.loads(Path("s.json").read_text(encoding="utf-8"))
    shares = {row["key"]: row["total"] for row in data["indices"]}
    assert shares.keys() == {"k", "s"}
    assert 0.9 < sum(shares.values()) < 1.3
    assert data["evaluations"] == 256
    assert data["failed"] == 0
    assert "AUC: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--range", "k"], "--range k: expected NAME=LOW:HIGH, such as k1=0.1:2"),
        (["--kind", "sobol", "--range", "kk=1:2"], "there is no unknown 'kk'"),
        (["--of", "yy"], "there is no observable 'yy'"),
        (["--scenario", "a.toml"], "--scenario: give the result of a fit"),
        ([], "no value for k, s; give --set k=VALUE s=VALUE"),
    ],
)
def test_mistakes_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(capsys, "sensitivity", "decay.toml", *arguments)
