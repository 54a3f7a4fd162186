"""What a terminal would obey is in no text of a problem or a result."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import odefit
from odefit.problem.inputs.file_access import has_controls, refuse_controls
from odefit.problem.inputs.issues import Issues
from odefit.problem.toml.drafts import draft
from tests.problem.texts import DECAY

RESULT = Path(__file__).parents[2] / "results-format-1" / "algebraic.json"


@given(st.text())
def test_text_without_controls_has_no_character_that_moves_the_cursor(text: str) -> None:
    odd = {c for c in text if unicodedata.category(c) == "Cc"} - set("\n\t\r")
    assert not odd or has_controls(text)


@pytest.mark.parametrize("text", ["größe µ ℵ e\u0301", "two\nlines\r\n\ttab", "a\u00a0b", "נתונים"])
def test_texts_of_all_languages_and_line_ends_are_fine(text: str) -> None:
    assert not has_controls(text)


@pytest.mark.parametrize("text", ["\x1b[31m", "a\rb", "\x9b2J", "\x07", "a\u202eb", "\u2028"])
@pytest.mark.parametrize("key", ["name", "description", "time_unit"])
def test_texts_of_a_problem_file_have_no_control_characters(
    tmp_path: Path, key: str, text: str
) -> None:
    (tmp_path / "data.csv").write_text("t,x\n0,1\n1,0.5\n", encoding="utf-8")
    written = f"{key} = {json.dumps('x' + text)}\n{DECAY}"
    (tmp_path / "problem.toml").write_text(written, encoding="utf-8")
    with pytest.raises(odefit.InputError, match=f"{key}: .* has the control character") as caught:
        odefit.load(tmp_path / "problem.toml")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("place", ["message", "name", "experiment"])
def test_texts_of_a_result_have_no_halves_of_characters(tmp_path: Path, place: str) -> None:
    tree = json.loads(RESULT.read_text(encoding="utf-8"))
    definition = tree["problem_definition"]
    where = {"message": tree, "name": definition, "experiment": definition["experiment"][0]}[place]
    where["name" if place == "experiment" else place] = "half \ud83d"
    (tmp_path / "result.json").write_text(json.dumps(tree), encoding="utf-8")
    with pytest.raises(odefit.InputError, match="half a character") as caught:
        odefit.load_result(tmp_path / "result.json")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("place", ["message", "method", "warnings", "versions"])
def test_texts_of_a_result_have_no_control_characters(tmp_path: Path, place: str) -> None:
    tree = json.loads(RESULT.read_text(encoding="utf-8"))
    text: Any = "\x1b[31m"
    tree[place] = {"warnings": [text], "versions": {text: "1"}}.get(place, text)
    (tmp_path / "result.json").write_text(json.dumps(tree), encoding="utf-8")
    with pytest.raises(odefit.InputError, match="control character"):
        odefit.load_result(tmp_path / "result.json")


def test_the_place_of_each_is_reported() -> None:
    issues = Issues()
    refuse_controls({"a": [{"b": "\x00"}, "\x01"], "c\x02": 1}, issues)
    places = sorted(error.split(":")[0] for error in issues.errors)
    assert places == ["a[0].b", "a[1]", "c\\x02"]


def test_a_message_that_quotes_a_file_is_one_line_of_limited_length() -> None:
    error = odefit.InputError(f"file.xml: \x1b[31m\n{'x' * 200_000}")
    assert str(error).startswith("file.xml: \\x1b[31m\\nxxx")
    assert len(str(error)) < 2000


@pytest.mark.parametrize("table", ["t,x,\x1b[31m\n0,1,2\n1,0.5,3\n", "\x9b2J,t,x\n,0,1\n,1,0.5\n"])
def test_names_of_columns_have_no_control_characters(tmp_path: Path, table: str) -> None:
    (tmp_path / "data.csv").write_text(table, encoding="utf-8")
    (tmp_path / "problem.toml").write_text(DECAY, encoding="utf-8")
    with pytest.raises(odefit.InputError, match=r"data\.csv, row 1: the name .* control character"):
        odefit.load(tmp_path / "problem.toml")
    with pytest.raises(odefit.InputError, match="control character"):
        draft(tmp_path / "data.csv", tmp_path, "problem")
