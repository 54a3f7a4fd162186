"""``odefit new``: a first problem file for a table, which never replaces another unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run

TABLE = "# by hand\ntime,y,remark\n0,2.01,\n1,0.99,\n2,0.52,\n3,0.24,late\n4,0.13,\n5,0.06,\n"


@pytest.fixture
def table(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.csv").write_text(TABLE, encoding="utf-8")
    return folder


def test_a_problem_file_is_written_that_loads_from_anywhere(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("new", "sub/mine.csv") == 0
    said = capsys.readouterr()
    first = str(Path("sub") / "mine.toml")
    assert said.out.splitlines() == [
        f"{first}: replace the placeholder in [ode], then run",
        f"  odefit check {first}",
        f"  odefit fit {first}",
    ]
    assert said.err == (
        "not used: column remark: has texts, such as 'late' in row 6; correct them if it is a "
        "measurement\n"
    )
    assert run("new", "sub/mine.csv", "-o", "other.toml") == 0
    assert 'data = "sub/mine.csv"' in Path("other.toml").read_text(encoding="utf-8")
    assert [odefit.load(p).size for p in (first, "other.toml")] == [6, 6]
    assert run("check", first) == 0


def test_a_file_is_replaced_only_by_force(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Path("sub") / "mine.toml"
    target.write_text("mine", encoding="utf-8")
    assert (
        refused(capsys, "new", "sub/mine.csv").strip()
        == f"error: {target}: exists already; write --force to replace it, or -o OTHER.toml"
    )
    assert target.read_text(encoding="utf-8") == "mine"
    assert run("new", "sub/mine.csv", "--force") == 0
    assert odefit.load(target).size == 6


def test_a_table_with_limits_is_written_beside_the_file_and_fitted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "t,x\n0,5\n1,3.1\n2,1.8\n3,1.2\n4,0.7\n5,<0.5\n6,<0.5\n"
    (folder / "lod.csv").write_text(text, encoding="utf-8")
    assert run("new", "lod.csv") == 0
    assert capsys.readouterr().err == (
        "note: lod_limits.csv: this table, with limits in place of texts, is fitted\n"
        "note: column x: 2 values beyond a limit, such as '<0.5', have the limit there, and 1 "
        "(below) or -1 (above it) in column x_cens\n"
    )
    assert run("fit", "lod.toml", "--starts", "2") == 0
    capsys.readouterr()
    Path("lod.toml").unlink()
    said = refused(capsys, "new", "lod.csv")
    assert "lod_limits.csv: exists already; write --force to replace it" in said
    assert Path("lod.csv").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "none.csv: there is no such file in"),
        (("sub/mine.csv", "-o", "p.json"), "p.json: a problem file ends in .toml; write -o p.toml"),
        (("sub/mine.csv", "-o", "no/p.toml"), "the directory no does not exist"),
    ],
)
def test_a_mistake_is_one_message(
    table: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(capsys, "new", *arguments)


def test_the_next_steps_for_a_table_elsewhere_allow_its_folder(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (table / "models").mkdir()
    assert run("new", "sub/mine.csv", "-o", "models/mine.toml") == 0
    written = str(Path("models") / "mine.toml")
    check = capsys.readouterr().out.splitlines()[1].split()
    assert check[:4] == ["odefit", "check", written, "--within"]
    assert "leads out of the folder" in refused(capsys, "check", written)
    assert run(*check[1:]) == 0


def test_a_model_in_sbml_is_told_how_it_becomes_a_problem_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cell.xml").write_text("<sbml/>", encoding="utf-8")
    said = refused(capsys, "new", "cell.xml")
    assert "cell.xml: this is a model without data" in said
    assert "odefit.save(problem, 'NAME.toml')" in said
    assert not Path("cell.toml").exists()
