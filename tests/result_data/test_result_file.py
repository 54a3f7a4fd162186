"""Result files are strict JSON, come back as they were, and are refused with a reason."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from odefit.assessment.continuity import assess_continuity
from odefit.assessment.parts import Assessment
from odefit.common.errors import InputError
from odefit.methods.estimate import Agreement, Certificate
from odefit.reporting.documents.html import report_html
from odefit.reporting.sentences import findings
from odefit.result.result import Result, load_result
from odefit.result_data import values_at
from odefit.result_data.notices import Notice, NoticeKind
from odefit.result_data.result_file import from_mapping, save_result, to_mapping
from odefit.simulation.nodes import Nodes
from tests.reporting import examples

RESULTS = [examples.alpha_pinene(), examples.troubled(), examples.failed()]

KEYS = [
    "format", "problem", "method", "status", "message", "objective", "log_likelihood",
    "parameters", "initial", "noise", "solutions", "assessment", "uncertainty", "warnings",
    "seconds", "seed", "versions", "unknowns", "starts", "problem_definition",
]  # fmt: skip


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not strict JSON")


@pytest.mark.parametrize("result", RESULTS)
def test_the_file_is_strict_json_with_the_documented_keys(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    result.save(path)
    data = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    likely = ["measure", "values"] if result.log_likelihood is not None else []
    assert list(data) == [*KEYS[:7], *likely, *KEYS[7:]]
    assert data["format"] == 1
    assert data["problem"] == result.problem.name
    assert list(data["assessment"]) == [
        "local", "complete", "global", "discretisation", "continuity",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_has_the_number_that_compares_solutions() -> None:
    """With an estimated noise the weighted squares of all are the number of measurements."""
    result = examples.troubled()
    other = replace(result.best, log_likelihood=-121.0)
    data = to_mapping(replace(result, solutions=(result.best, other)))
    assert data["measure"] == "-2 log L + priors"
    first, second = data["values"]
    assert second - first == pytest.approx(2 * (12.5 + 121.0))


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_comes_back_as_it_was(result: Result, tmp_path: Path) -> None:
    save_result(result, tmp_path / "result.json")
    back = load_result(tmp_path / "result.json")
    assert to_mapping(back) == to_mapping(result)
    assert back.status is result.status
    assert back.problem.keys == result.problem.keys
    for solution, read in zip(result.solutions, back.solutions, strict=True):
        assert np.array_equal(solution.vector, read.vector)
    for start, again in zip(result.starts, back.starts, strict=True):
        assert start.objective == again.objective  # infinite ones too
    if result.uncertainty is not None:
        assert back.uncertainty is not None
        np.testing.assert_array_equal(back.uncertainty.covariance, result.uncertainty.covariance)
        assert back.uncertainty.degrees_of_freedom == result.uncertainty.degrees_of_freedom


@pytest.mark.parametrize("name", ["algebraic", "multiple-shooting", "outer-approximation"])
def test_files_of_the_first_version_are_read_and_written_as_they_are(
    name: str, tmp_path: Path
) -> None:
    """With completeness, with nodes, and with bounds, their history and a discretisation."""
    path = Path(__file__).parents[1] / "results-format-1" / f"{name}.json"
    load_result(path).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("value", ["[" * 700 + "]" * 700, '{"a":' * 700 + "1" + "}" * 700])
@pytest.mark.parametrize("key", ["message", "solutions", "problem_definition", "unknowns"])
def test_deep_nesting_is_refused(key: str, value: str, tmp_path: Path) -> None:
    text = json.dumps(to_mapping(examples.failed()) | {key: "@"}).replace('"@"', value)
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=key):
        load_result(tmp_path / "result.json")


@pytest.mark.slow
@pytest.mark.parametrize("result", RESULTS[1:])
def test_a_loaded_result_reports_the_same(result: Result, tmp_path: Path) -> None:
    save_result(result, tmp_path / "result.json")
    assert report_html(load_result(tmp_path / "result.json")) == report_html(result)


@pytest.mark.parametrize("value", ["9" * 301, "-" + "1" * 4000])
def test_a_whole_number_that_no_float_can_hold_is_refused(value: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    save_result(examples.alpha_pinene(), path)
    text = path.read_text(encoding="utf-8").replace('"seed": ', f'"rank": {value}, "seed": ', 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"not valid JSON: a whole number has \d+ digits; .* --json"
    ):
        load_result(path)


def test_a_certificate_is_the_global_part_with_its_gap() -> None:
    bounds = Certificate(18.0, 20.0, "discretised (Radau, 20 intervals)", "No better than 18.")
    result = replace(examples.alpha_pinene(), assessment=Assessment(bounds=bounds))
    data = to_mapping(result)
    assert data["assessment"]["global"]["gap"] == pytest.approx(0.1)
    assert from_mapping(data).assessment.bounds == bounds


@pytest.mark.parametrize("error", [0.02, math.inf])
def test_bounds_and_discretisation_come_back_and_are_reported(error: float, tmp_path: Path) -> None:
    """Though the discretised answer may have no true trajectories."""
    bounds = Certificate(18.0, 20.0, "discretised (trapezoid, M = 11)", "No better than 18.", True)
    mesh = Agreement("trapezoid", 11, 20.7, error, error, 0.03, "The mesh is coarse.")
    assessment = Assessment(bounds=bounds, discretisation=mesh)
    result = replace(examples.alpha_pinene(), assessment=assessment)
    save_result(result, tmp_path / "result.json")
    back = load_result(tmp_path / "result.json")
    assert back.assessment == assessment
    told = [finding.sentence for finding in findings(back)]
    assert bounds.sentence in told
    assert mesh.sentence in told


def on_nodes() -> Result:
    """Two nodes and one, a constraint, numbers that are no short decimals."""
    result = examples.alpha_pinene()
    random = np.random.default_rng(0)
    nodes = Nodes(
        (np.array([0.0, 1 / 3]), np.array([0.0])),
        (random.normal(size=(2, 5)), random.normal(size=(1, 5))),
        ("p1 = 2*p2", "x1@0 = 100"),
        ("run 1", "run 1"),
    )
    best = replace(result.solutions[0], nodes=nodes)
    starts = [replace(s, nodes=nodes) for s in result.starts]
    assessment = replace(result.assessment, continuity=assess_continuity(nodes, 1e-13))
    return replace(
        result,
        solutions=(best, *result.solutions[1:]),
        starts=tuple(starts),
        assessment=assessment,
    )


def test_an_answer_on_nodes_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    result = on_nodes()
    save_result(result, tmp_path / "result.json")
    back = load_result(tmp_path / "result.json")
    assert to_mapping(back) == to_mapping(result)
    assert back.assessment.continuity == result.assessment.continuity
    mine, read = result.best.nodes, back.best.nodes
    assert mine is not None
    assert read is not None
    for one, other in zip((*mine.times, *mine.values), (*read.times, *read.values), strict=True):
        assert np.array_equal(one, other)
        assert one.shape == other.shape
    assert tuple(read.constraints) == mine.constraints
    assert tuple(read.experiments) == mine.experiments
    assert read.count == 3


def test_files_from_before_there_were_nodes_are_still_read() -> None:
    data = to_mapping(examples.alpha_pinene())
    del data["assessment"]["continuity"]
    for entry in (*data["solutions"], *data["starts"]):
        del entry["nodes"]
    back = from_mapping(data)
    assert back.best.nodes is None
    assert back.assessment.continuity is None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"times": 3}, "nodes.times"),
        ({"values": [[1.0, "a"]]}, "nodes.values"),
        ({"constraints": [1]}, "nodes.constraints"),
    ],
)
def test_damaged_nodes_are_refused_with_their_place(change: dict[str, Any], place: str) -> None:
    data = to_mapping(on_nodes())
    data["solutions"][0]["nodes"] |= change
    with pytest.raises(InputError, match=place):
        from_mapping(data)


def test_facts_come_back_with_their_numbers_and_stand_beside_the_sentences() -> None:
    failed = Notice(NoticeKind.STARTS_FAILED, {"failed": 2.0, "starts": 5.0}, text="x = inf")
    limit = Notice(NoticeKind.ENDED_EARLY, names=("time limit",))
    result = examples.alpha_pinene()
    result = replace(result, warnings=("2 failed",), notices=(failed,), reasons=(limit,))
    plain = to_mapping(result)
    assert plain["notices"] == [
        {"kind": "starts failed", "numbers": {"failed": 2.0, "starts": 5.0}, "text": "x = inf"}
    ]
    assert plain["reasons"] == [{"kind": "ended early", "names": ["time limit"]}]
    back = from_mapping(plain)
    assert list(back.notices) == [failed]
    assert list(back.reasons) == [limit]


def test_warnings_of_files_without_facts_are_unchanged() -> None:
    several = (
        "2 different solutions fit equally well; they differ in k1, k[a, b]. The estimates shown "
        "are those of one of them; all are in the list of solutions"
    )
    result = replace(examples.alpha_pinene(), warnings=("Something else", several))
    plain = to_mapping(result)
    assert "notices" not in plain
    back = from_mapping(plain)
    assert back.ambiguous
    assert [n.kind for n in back.notices] == [NoticeKind.OTHER, NoticeKind.EQUAL_SOLUTIONS]


def test_standard_errors_and_intervals_are_found_by_key() -> None:
    data = to_mapping(examples.troubled())
    assert data["uncertainty"]["standard_errors"]["k2"] is None
    assert data["uncertainty"]["standard_errors"]["k_a"] == pytest.approx(0.0612)
    assert data["uncertainty"]["degrees_of_freedom"] == "inf"
    assert len(data["uncertainty"]["intervals"]["k_a"]) == 2
    assert data["noise"] == {"y_gut_sd": 0.08}
    assert data["parameters"]["delta_E"] == 0.3


def test_an_existing_file_stays_whole_if_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    path.write_text("before", encoding="utf-8")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left on device; choose another place"):
        save_result(examples.failed(), path)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    save_result(examples.failed(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert load_result(tmp_path / "real.json").message == "every start failed"


def changed(path: list[str | int], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], 2, "format: expected 1, got 2"),
        (["format"], True, "format: expected 1, got True"),
        (["status"], "done", "status: expected one of 'converged'"),
        (["seed"], 1.5, "seed: expected a whole number, got 1.5"),
        (["method"], None, "method: expected a text, got None"),
        (["seconds"], "long", "seconds: expected a number, got 'long'"),
        (["solutions"], {}, "solutions: expected a list"),
        (["solutions", 0, "vector"], [1.0], r"solutions\[0\]\.vector: expected the shape \(5,\)"),
        (["solutions", 0, "objective"], True, r"solutions\[0\]\.objective: expected a number"),
        (["starts", 3, "evaluations"], "x", r"starts\[3\]\.evaluations: expected a whole"),
        (["unknowns"], ["k"], "unknowns: are not those of problem_definition"),
        (["uncertainty", "keys"], ["a"], "uncertainty.standard_errors: expected a value for"),
        (["uncertainty", "covariance"], [[1.0]], "uncertainty.covariance: expected the shape"),
        (["uncertainty", "correlation"], [[1.0], []], "correlation: expected rows of equal"),
        (["uncertainty", "trouble"], {"p1": "lost"}, "trouble.p1: expected one of 'no effect'"),
        (["starts", 0, "costs"], 1.0, r"starts\[0\]: unknown key costs"),
        (["assessment", "proof"], {}, "assessment: unknown key proof"),
        (["paths"], [], "unknown key paths"),
        (["assessment", "local"], 3, "assessment.local: expected an object, got 3"),
        (["problem_definition"], "x", "problem_definition: expected an object"),
        (["problem_definition", "ode", "x1"], "-(p1", "problem_definition: .*x1"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place_and_a_remedy(
    path: list[str | int], value: Any, message: str, tmp_path: Path
) -> None:
    data = json.loads(json.dumps(to_mapping(examples.alpha_pinene())))
    changed(path, value)(data)
    file = tmp_path / "result.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_result(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named(key: str) -> None:
    data = to_mapping(examples.alpha_pinene())
    required = {"problem", "objective", "log_likelihood", "parameters", "initial", "noise"}
    if key in required:  # they repeat what solutions and problem_definition say
        del data[key]
        assert from_mapping(data).objective == pytest.approx(19.872166934)
        return
    del data[key]
    with pytest.raises(InputError, match=key):
        from_mapping(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b'{"format": NaN}', "NaN is not a JSON number"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[1]", "expected an object"),
        (b"{}", "format: expected 1, got None"),
        (b"[" * 100_000, "is not valid JSON"),
    ],
)
def test_a_file_that_is_not_a_result_is_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_result(file)


def test_a_file_that_is_not_there_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file in"):
        load_result(tmp_path / "nothing.json")


def test_numbers_come_back_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    result = examples.alpha_pinene()
    vector = rng.uniform(size=5) * 10.0 ** rng.integers(-300, 300, size=5)
    parameters, initial = values_at(result.problem, vector)
    best = replace(
        result.best,
        vector=vector,
        parameters=parameters,
        initial=initial,
        objective=float(np.nextafter(1.0, 2.0)),
    )
    text = json.dumps(to_mapping(replace(result, solutions=(best,))), allow_nan=False)
    back = from_mapping(json.loads(text))
    assert np.array_equal(back.best.vector, vector)
    assert back.objective == best.objective
    assert not math.isnan(back.objective)
