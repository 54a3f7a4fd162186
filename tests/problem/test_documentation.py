"""The examples of docs/problem-file.md are problem files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from odefit.expressions.expressions import FUNCTIONS
from odefit.problem import Problem, load
from odefit.problem.parameters import PARAMETER_FIELDS
from odefit.problem.toml.reading import EVENT_KEYS, EXPERIMENT_KEYS, SECTION_NAMES, TEXT_KEYS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "problem-file.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))


def example(folder: Path, name: str) -> Problem:
    for file, text in FILES.items():
        (folder / file).write_text(text, encoding="utf-8")
    return load(folder / name)


def test_the_examples_load_without_a_warning(tmp_path: Path) -> None:
    names = [name for name in FILES if name.endswith(".toml")]
    assert len(names) == 2
    assert [example(tmp_path, name).warnings for name in names] == [(), ()]


def test_the_unknowns_of_the_large_example_are_those_named_below_it(tmp_path: Path) -> None:
    text = re.search(r"Its unknowns are (.*?)\. The row", PAGE, re.DOTALL)
    assert text is not None
    assert tuple(re.findall(r"`([^`]+)`", text[1])) == example(tmp_path, "doses.toml").keys


def test_every_piece_of_toml_is_toml() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        tomllib.loads(block)


@pytest.mark.parametrize(
    "key",
    [
        *(*SECTION_NAMES, *TEXT_KEYS, *EXPERIMENT_KEYS, *EVENT_KEYS, *PARAMETER_FIELDS),
        *("relative", "transform"),
    ],
)
def test_every_key_is_described(key: str) -> None:
    assert re.search(rf"`{key}`|`\[{key}\]`|`{key} = |\.{key}\]\]`", PAGE), key


def test_every_function_is_named() -> None:
    assert all(re.search(rf"\b{function}\b", PAGE) for function in FUNCTIONS)


def test_the_problems_built_in_python_are_accepted() -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1:]:
        exec(block.replace("import odefit\n", "import odefit.problem as odefit\n"), names)
    problem = names["problem"]
    assert isinstance(problem, Problem)
    assert [c.name for c in problem.conditions] == ["run 1", "run 2"]


@pytest.mark.parametrize(
    "word",
    ["Excel", "parity", "forecast", "SDE", "delay", "random effects", "mixed effects", "PDE",
     "Bayesian", "censored", "cross-validation", "Sobol", "optimal control"],
)  # fmt: skip
def test_search_words_lead_to_a_feature_or_to_a_program_that_has_it(word: str) -> None:
    page = (DOCS / "not-here.md").read_text(encoding="utf-8")
    (row, *_) = [line for line in page.splitlines() if word in line and line.startswith("| ")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert all(cells)


def test_the_page_of_what_is_not_here_links_to_headings_that_are_there() -> None:
    page = (DOCS / "not-here.md").read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\(([\w/-]+\.md)(?:#([\w-]+))?\)", page):
        text = (DOCS / name).read_text(encoding="utf-8")
        heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        ids = {re.sub(r"[^\w]+", "-", head.lower()).strip("-") for head in heads}
        assert not anchor or anchor in ids, f"{name}#{anchor}"
