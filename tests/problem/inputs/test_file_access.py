"""A file of a stranger names no files outside its folder, and is read up to a size."""

from __future__ import annotations

from pathlib import Path

import pytest

import odefit
from odefit.problem.inputs import file_access
from odefit.problem.inputs.file_access import NamedFiles, checked_within, read_content, read_text
from odefit.problem.inputs.issues import Issues
from tests.problem.texts import DECAY

TABLE = "t,x\n0,1\n1,0.5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a problem, in one with a table of the same name."""
    inner = tmp_path / "project" / "models"
    (inner / "below").mkdir(parents=True)
    for place in (inner, inner / "below", inner.parent, tmp_path):
        (place / "data.csv").write_text(TABLE, encoding="utf-8")
    return inner


def read(folder: Path, data: str, within: Path | None = None) -> odefit.Problem:
    text = DECAY.replace('"data.csv"', f"'{data}'")
    (folder / "problem.toml").write_text(text, encoding="utf-8")
    return odefit.load(folder / "problem.toml", within=within)


def refusal(folder: Path, data: str, within: Path | None = None) -> str:
    with pytest.raises(odefit.InputError) as caught:
        read(folder, data, within)
    assert len(caught.value.messages) == 1
    return str(caught.value)


@pytest.mark.parametrize("name", ["data.csv", "./data.csv", "below/data.csv", "below/../data.csv"])
def test_tables_in_the_folder_of_the_problem_are_read(folder: Path, name: str) -> None:
    assert read(folder, name).size == 2


@pytest.mark.parametrize(
    "name", ["../data.csv", "../../data.csv", "below/../../data.csv", "/dev/zero"]
)
def test_tables_elsewhere_are_refused_with_the_option_that_allows_them(
    folder: Path, name: str
) -> None:
    message = refusal(folder, name)
    assert f"data: '{name}' leads out of the folder of this file" in message
    assert "--within FOLDER" in message


def test_an_absolute_name_within_the_folder_is_one_of_its_files(folder: Path) -> None:
    assert read(folder, str(folder / "data.csv")).size == 2
    assert "leads out" in refusal(folder, str(folder.parent / "data.csv"))


def test_the_user_can_allow_another_folder(folder: Path) -> None:
    assert read(folder, "../data.csv", within=folder.parent).size == 2
    assert "leads out of the folder" in refusal(folder, "../../data.csv", within=folder.parent)
    assert "is not a folder" in refusal(folder, "data.csv", within=folder / "nowhere")


def test_a_link_counts_as_what_it_leads_to(folder: Path) -> None:
    (folder / "in.csv").symlink_to(folder / "below" / "data.csv")
    (folder / "out.csv").symlink_to(folder.parent / "data.csv")
    assert read(folder, "in.csv").size == 2
    assert "leads out" in refusal(folder, "out.csv")
    assert read(folder, "out.csv", within=folder.parent).size == 2


def test_a_problem_that_is_a_link_has_its_tables_beside_the_link(folder: Path) -> None:
    read(folder, "data.csv")
    link = folder.parent / "problem.toml"
    link.symlink_to(folder / "problem.toml")
    (folder / "data.csv").unlink()
    assert odefit.load(link).size == 2


@pytest.mark.parametrize("name", ["http://localhost/x.csv", "file:///etc/passwd", "s3://b/x.csv"])
def test_addresses_are_refused_before_anything_is_opened(folder: Path, name: str) -> None:
    assert "is an address; odefit reads only local files" in refusal(folder, name)


def test_formats_with_shared_tables_may_have_them_one_folder_above_and_no_further(
    folder: Path,
) -> None:
    files, issues = NamedFiles(folder, above=True), Issues()
    assert files.path("../data.csv", "model", issues) is not None
    assert not issues.errors
    (folder.parent / "sibling").mkdir()
    for name in ("../../data.csv", "../sibling/data.csv"):
        assert files.path(name, "model", issues) is None
    assert len(issues.errors) == 2


def test_a_file_above_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2_000_001)
    issues = Issues()
    assert read_text(tmp_path / "large", "large", issues, 2_000_000) is None
    (message,) = issues.errors
    assert message.startswith("large: has 2 MB, and 2 MB are read at most; leave out unneeded")
    assert read_content(tmp_path / "large", "large", Issues(), 2_000_001) is not None


def test_problem_files_and_tables_have_such_limits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odefit.problem.toml.files.MAX_PROBLEM_SIZE", 20)
    assert "problem.toml: has 9.9e-05 MB, and 2e-05 MB are read at most" in refusal(
        folder, "data.csv"
    )
    assert file_access.MAX_PROBLEM_SIZE < file_access.MAX_TABLE_SIZE


def test_without_a_folder_the_default_is_used() -> None:
    assert checked_within(None) is None
