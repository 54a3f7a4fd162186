"""A result whose numbers contradict each other is refused with the place of the contradiction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import odefit
from odefit.result_data.result_file import from_mapping

FOLDER = Path(__file__).parents[1] / "results-format-1"
FILES = [FOLDER / f"{n}.json" for n in ("algebraic", "multiple-shooting", "outer-approximation")]


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def tree(request: pytest.FixtureRequest) -> Any:
    return json.loads(request.param.read_text(encoding="utf-8"))


def refusal(tree: Any) -> str:
    with pytest.raises(odefit.InputError) as caught:
        from_mapping(tree, "result.json")
    assert str(caught.value).startswith("result.json")
    return str(caught.value)


def test_another_objective_than_that_of_the_best_solution_is_refused(tree: Any) -> None:
    tree["solutions"][0]["objective"] -= 0.1
    assert "objective: contradicts the other parts of the file" in refusal(tree)


@pytest.mark.parametrize("place", ["parameters", "initial"])
def test_other_values_than_those_of_the_best_solution_are_refused(tree: Any, place: str) -> None:
    key = next(iter(tree[place]))
    tree[place][key] += 1
    assert f"{place}: contradicts the other parts" in refusal(tree)


def test_values_that_the_unknowns_do_not_give_are_refused(tree: Any) -> None:
    tree["solutions"][0]["vector"][0] += 1.0
    assert "solutions[0].parameters." in refusal(tree)


def test_values_for_other_names_are_refused(tree: Any) -> None:
    tree["solutions"][0]["parameters"]["surprise"] = 1.0
    assert "solutions[0].parameters: expected values of" in refusal(tree)


def test_a_solution_that_is_not_a_number_is_refused(tree: Any) -> None:
    tree["solutions"][0]["vector"][0] = None
    assert "solutions[0].vector: expected finite numbers" in refusal(tree)


def test_integers_beyond_all_floats_are_not_numbers(tree: Any) -> None:
    tree["solutions"][0]["objective"] = 10**400
    assert "expected a number, got a very large integer" in refusal(tree)


def test_a_result_names_no_file(tree: Any) -> None:
    tree["problem_definition"]["experiment"][0]["data"] = "/etc/passwd"
    assert "problem_definition: names the file '/etc/passwd', where a result" in refusal(tree)


def test_an_unknown_key_is_reported_with_its_file(tree: Any) -> None:
    tree["surprise"] = 1
    assert "result.json: unknown key surprise" in refusal(tree)


def test_nodes_have_a_row_of_values_for_each_time() -> None:
    path = next(path for path in FILES if path.stem == "multiple-shooting")
    tree = json.loads(path.read_text(encoding="utf-8"))
    row = [0.1, 0.2, 0.3, 0.4]
    nodes = {"times": [[0.0, 1.0]], "values": [[row]], "constraints": [], "experiments": []}
    tree["solutions"][0]["nodes"] = nodes
    assert "solutions[0].nodes: expected a row of values for each time" in refusal(tree)


def test_a_file_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odefit.result_data.result_file.MAX_SIZE", 1000)
    with pytest.raises(odefit.InputError, match="are read at most"):
        odefit.load_result(FILES[0])
