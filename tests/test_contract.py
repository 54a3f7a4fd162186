"""What users and their programs rely on is what is written down in tests/golden.

CONTRIBUTING.md, "Stability", says what may change and how; ``python tools/golden.py`` renews it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

import golden
from docs import reference_pages
from golden_listings import problems, result_schema, stored_results
from golden_listings.differences import differences
from odefit.common.errors import InputError
from odefit.expressions.derived_functions import DERIVED
from odefit.expressions.grammar import COMPARISONS, FUNCTIONS, LOGIC, PIECEWISE, TRUTH
from odefit.methods.registry import METHODS
from odefit.problem import problem_from_mapping, problem_to_mapping
from odefit.problem.experiment import DOSE_FIELDS
from odefit.problem.model import Interpolation
from odefit.problem.noise import NOISE_FIELDS
from odefit.problem.noise_distributions.registry import Distribution, Loss, Transform
from odefit.problem.notation.reactions import LAWS
from odefit.problem.parameters import PARAMETER_FIELDS
from odefit.problem.priors import FAMILIES, PriorScale
from odefit.problem.toml.reading import EVENT_KEYS, EXPERIMENT_KEYS, SECTION_NAMES, TEXT_KEYS
from odefit.reporting.documents.markdown_report import report_markdown
from odefit.result.result import Result, load_result
from odefit.result_data.result_file import to_mapping
from tests.reporting import examples

ROOT = Path(__file__).parents[1]
PROBLEMS = sorted(problems.FOLDER.glob("*.toml"))
RESULTS = sorted((ROOT / "tests/results-format-1").glob("*.json"))


@cache
def raw(path: Path) -> Any:
    return tomllib.loads(path.read_text(encoding="utf-8"))


# Problem files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_a_problem_file_means_what_it_meant(path: Path) -> None:
    """The plain problem, its unknowns and sizes, and the objective at a point to seven digits."""
    written = golden.written(golden.GOLDEN / "problems.json")[path.stem]
    assert not [*map(str, differences(written, problems.meaning(path)))], golden.REMEDY


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_a_problem_of_a_stored_result_means_the_same(path: Path) -> None:
    """Its plain form, as result files hold it, is a problem file as well."""
    plain = golden.written(golden.GOLDEN / "problems.json")[path.stem]["problem"]
    again = problem_to_mapping(problem_from_mapping(plain))
    assert not [*map(str, differences(plain, again))]


def tables(value: Any, key: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every table with the key under which it stands."""
    if isinstance(value, Mapping):
        yield key, value
        for name, inner in value.items():
            yield from tables(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from tables(inner, key)


def test_the_problem_files_use_every_key_and_word_of_the_format() -> None:
    """So that none of them can change its meaning unseen."""
    found = [entry for path in PROBLEMS for entry in tables(raw(path))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in PROBLEMS)
    used = {
        "file": {*TEXT_KEYS, *SECTION_NAMES, "experiment"},
        "experiment": {*EXPERIMENT_KEYS},
        "event": {*EVENT_KEYS},
        "doses": {*DOSE_FIELDS},
        "prior": {"distribution", "on", *(name for names in FAMILIES.values() for name in names)},
    }
    for place, keys in used.items():
        seen = {k for key, table in found if (key or "file") == place for k in table}
        assert keys <= seen, place
    for section, names in (("parameters", PARAMETER_FIELDS), ("noise", NOISE_FIELDS)):
        entries = [table for key, t in found if key == section for table in t.values()]
        assert {*names} <= {k for table in entries if isinstance(table, dict) for k in table}
    words = {*FUNCTIONS, *DERIVED, *LAWS, PIECEWISE, *LOGIC, *TRUTH, "mass_action", "prod", "mean"}
    assert not {word for word in words if not re.search(rf"\b{word}\b", text)}
    assert not {sign for sign in (*COMPARISONS, "&&", "||", "!(", "**", "^") if sign not in text}
    kinds = (Interpolation, Distribution, Loss, Transform, PriorScale)
    values = {*FAMILIES, *(value for kind in kinds for value in get_args(kind))}
    assert not {value for value in values if f'"{value}"' not in text}


def test_the_next_format_is_refused_and_not_guessed_at() -> None:
    with pytest.raises(InputError, match="this version of odefit reads format 1"):
        problem_from_mapping(raw(PROBLEMS[0]) | {"format": 2})


# Results -----------------------------------------------------------------------------------------


@cache
def schema() -> dict[str, Any]:
    """The schema that users have."""
    found: dict[str, Any] = json.loads(result_schema.FILE.read_text(encoding="utf-8"))
    return found


def test_the_schema_of_results_is_that_of_the_classes_that_are_written() -> None:
    Draft202012Validator.check_schema(schema())
    assert not [*map(str, golden.changes(result_schema.FILE))], golden.REMEDY


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_stored_results_are_as_the_schema_says(path: Path) -> None:
    """With no key that it does not name."""
    data = json.loads(path.read_text(encoding="utf-8"))
    validator = Draft202012Validator(result_schema.strict(schema()))
    assert not [f"{e.json_path}: {e.message}" for e in validator.iter_errors(data)]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("objective", "small"),
        ("status", "fine"),
        ("solutions", [{"vector": [1.0]}]),
        ("seed", 1.5),
        ("warnings", "none"),
        ("assessment", {"local": True}),
        ("uncertainty", {"standard_errors": [1.0]}),
        ("format", 2),
    ],
)
def test_the_schema_refuses_files_that_are_not_results(place: str, value: Any) -> None:
    data = json.loads(RESULTS[0].read_text(encoding="utf-8")) | {place: value}
    assert not Draft202012Validator(schema()).is_valid(data)
    del data[place]
    assert not Draft202012Validator(schema()).is_valid(data)


MADE = {"determined": examples.alpha_pinene, "troubled": examples.troubled, "none": examples.failed}
FITTED = {
    name: pytest.param(fit, marks=pytest.mark.slow, id=name)
    for name, fit in stored_results.RESULTS.items()
}


@pytest.mark.parametrize(
    "make", [*(pytest.param(f, id=n) for n, f in MADE.items()), *FITTED.values()]
)
def test_results_of_today_are_as_the_schema_says(make: Callable[[], Result]) -> None:
    """With no key that it does not name."""
    data = json.loads(json.dumps(to_mapping(make())))
    validator = Draft202012Validator(result_schema.strict(schema()))
    assert not [f"{e.json_path}: {e.message}" for e in validator.iter_errors(data)]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_stored_results_are_read_with_all_that_they_hold(path: Path, tmp_path: Path) -> None:
    """Written again, nothing is lost or changed; later versions may add to it."""
    load_result(path).save(tmp_path / "again.json")
    before = json.loads(path.read_text(encoding="utf-8"))
    after = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert not [str(d) for d in differences(before, after) if d.breaking]


def bounded(data: Any) -> bool:
    """Whether a result has a certificate of branch and bound."""
    bounds = data["assessment"]["global"]
    return bounds is not None and bounds["scope"] == "continuous time"


def test_every_method_and_every_part_of_a_result_is_among_the_stored_ones() -> None:
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS]
    named = " ".join(data["method"] for data in stored)
    classes = {entry.class_name for entry in METHODS.values()}
    assert not {name for name in classes - {"BranchAndBound"} if name not in named}
    assert any(bounded(data) for data in stored if data["method"] == "SingleShooting")
    assert set(schema()["properties"]) == {key for data in stored for key in data}
    parts = schema()["$defs"]["Assessment"]["properties"]
    assert set(parts) - {"continuity"} == {
        key for data in stored for key, part in data["assessment"].items() if part is not None
    }
    assert {data["status"] for data in stored} >= {"converged", "failed", "time limit"}


@pytest.mark.slow
@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_stored_results_are_drawn_and_reported(path: Path, tmp_path: Path) -> None:
    result: Result = load_result(path)
    assert result.problem.name in report_markdown(result)
    if result.solutions:
        result.plot_fit().savefig(tmp_path / "fit.png")
        assert (tmp_path / "fit.png").stat().st_size > 1000
        assert list(result.parameters.index)
        assert len(result.residuals) == result.problem.size


# Names and options -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["command_line.json", "python_names.json"])
def test_options_and_public_names_are_unchanged(name: str) -> None:
    assert not [*map(str, golden.changes(golden.GOLDEN / name))], golden.REMEDY


def test_the_page_of_commands_lists_every_option_below_its_command() -> None:
    page = reference_pages.commands_page()
    commands = golden.written(golden.GOLDEN / "command_line.json")["commands"]
    for command, arguments in commands.items():
        section = page.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
        assert f"odefit {command} [options]" in section
        for argument in arguments.values():
            names = [name for name in argument["names"] if name.startswith("-")]
            if names and "--help" not in names:
                heads = re.findall(r"^\| `([^`]*)`", section, re.MULTILINE)
                assert any(set(names) <= set(re.split(r"[, ]+", head)) for head in heads), names


def test_the_page_of_the_command_line_lists_the_exit_statuses() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    statuses = golden.written(golden.GOLDEN / "command_line.json")["exit statuses"]
    assert all(f"| {status} |" in page for status in statuses.values())
