"""Problem files are found, read as TOML, and their data beside them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from odefit.problem import InputError, load

LIBRARY = Path(__file__).parents[3] / "src" / "odefit" / "library" / "problems"
PROBLEMS = sorted(LIBRARY.glob("*/problem.toml"))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.parent.name)
def test_every_library_problem_loads_without_a_warning(path: Path) -> None:
    problem = load(path)
    assert problem.warnings == ()
    assert problem.name == path.parent.name


def test_data_are_looked_for_beside_the_problem_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(LIBRARY / "bbg", tmp_path / "a" / "bbg")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    assert load("../a/bbg/problem.toml").size == 14
    (tmp_path / "link.toml").symlink_to("a/bbg/problem.toml")
    with pytest.raises(InputError, match="there is no such file"):
        load("../link.toml")  # beside the link there are no data


def test_a_byte_order_mark_and_other_line_ends_are_fine(tmp_path: Path) -> None:
    shutil.copytree(LIBRARY / "bbg", tmp_path / "bbg")
    file = tmp_path / "bbg" / "problem.toml"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert load(str(file)).name == "bbg"


def test_without_a_name_the_file_gives_it(folder: object) -> None:
    path: Path = folder.path  # type: ignore[attr-defined] # conftest's Folder
    assert load(path / "problem.toml").name == "problem"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("format = 1\n[ode\n", "(at line 2, column 5)"),
        ("format = 1\nx = \n", "(at line 2, column 5)"),
        ('format = 1\nx = "abc', "(at line 2, column 9)"),
        ("a = 1\na = 2\n", "(at line 2, column 6)"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deeply (at line 1, column 5004)"),
        ("format = 1\nx = " + "9" * 5000, "too many digits (at line 2, column 5)"),
        ("", "the file is empty"),
        ("\n  \n", "the file is empty"),
        (b"\x00\x01\x02", "is a binary file"),
        (b"x = '\xff'", "line 1 is not in UTF-8"),
        (b"\xff\xfex\x00", "is in UTF-16"),
    ],
    ids=range(11),
)
def test_invalid_toml_is_reported_with_its_place(
    errors: Callable[..., tuple[str, ...]], content: str | bytes, message: str
) -> None:
    found = errors(content)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("notes.txt", "of the 3rd", r"is this a problem file \(TOML\)\?"),
        (
            "data.csv",
            "t,x\n0,1\n",
            r"for a table, odefit new .*data\.csv writes a first",
        ),
        ("fit.json", '{"format": 1}', r"is this a result\? Name its problem file, with --start"),
    ],
)
def test_a_file_that_is_not_a_problem_file_is_asked_about(
    tmp_path: Path, name: str, text: str, hint: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=hint):
        load(tmp_path / name)


def test_a_missing_problem_file_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").touch()
    with pytest.raises(InputError, match=r"did you mean 'problem\.toml'"):
        load(tmp_path / "problem.tml")
    with pytest.raises(InputError, match="is a folder"):
        load(tmp_path)
