"""Random right models come through everything, and the tool that says so sees what does not."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from fuzz_grammar import FuzzModel, fuzz_model, toml_text
from fuzz_models import Outcome, main, run_case, shown, table
from odefit.problem import problem_from_mapping

CHUNK = 5
"""Number of models that one test takes through everything."""

FAST = (30,)
"""First models of the tests that every run takes; the others take seconds."""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first in FAST else pytest.mark.slow)
        for first in range(0, 150, CHUNK)
    ],
)
def test_random_right_models_pass_all_stages(first: int) -> None:
    """As `python tools/fuzz_models.py --light --case N` takes them, number by number."""
    found = [run_case(number, light=True) for number in range(first, first + CHUNK)]
    assert not any(o.faults for o in found), "\n".join(map(shown, found))
    refused = {(step, text) for o in found for step, text in o.refusals if step in ("read", "load")}
    assert not refused


def test_a_number_gives_the_same_model_always() -> None:
    assert fuzz_model(17) == fuzz_model(17)
    assert fuzz_model(17).mapping != fuzz_model(18).mapping


@cache
def models() -> tuple[FuzzModel, ...]:
    return tuple(fuzz_model(number) for number in range(120))


@pytest.mark.slow
def test_random_models_have_the_features_of_the_grammar() -> None:
    features = {feature for model in models() for feature in model.features}
    for feature in (
        *("root", "power", "unknown power", "hill", "unknown hill", "exp", "log", "tanh", "min"),
        *("max", "abs", "if", "sine", "step", "initial zero", "initial unknown", "unit"),
        *(
            "initial expression",
            "mixed units",
            "events",
            "several experiments",
            "all fixed but one",
        ),
        *("nothing unknown", "an unused parameter", "a state never measured", "data: exact"),
        *("data: constant", "noise: estimate", "noise: relative", "bounds: none", "bounds: log"),
    ):
        assert feature in features
    values = [abs(v) for model in models() for v in model.truth.values() if v]
    assert min(values) < 1e-15
    assert max(values) > 1e12


@pytest.mark.slow
def test_exact_data_are_those_of_odefit_at_the_truth() -> None:
    """The data come from SciPy, so that the text of a model means the same to both."""
    compared = 0
    for number, model in enumerate(models()):
        if "data: exact" not in model.features or {"unit", "mixed units"} & {*model.features}:
            continue
        problem = problem_from_mapping(model.mapping)
        vector = np.array([model.truth[key] for key in problem.keys if key in model.truth])
        if len(vector) < len(problem.keys):
            continue  # an estimated standard deviation
        found = odefit.simulate(problem, vector)
        assert not isinstance(found, odefit.Failure), number
        compared += 1
        for name, values in found.observables.items():
            data = model.mapping["experiment"][0]["data"][name]
            measured = np.array([math.nan if v is None else v for v in data])
            known = np.isfinite(measured)
            size = np.abs(measured[known]).max() or 1.0
            assert np.abs(values[known] - measured[known]).max() < 1e-5 * size, (number, name)
    assert compared > 5


@pytest.mark.slow
def test_a_model_is_the_same_in_a_file(tmp_path: Path) -> None:
    for number in range(20):
        model = fuzz_model(number)
        path = tmp_path / f"{number}.toml"
        path.write_text(toml_text(model.mapping), encoding="utf-8")
        assert odefit.load(path).keys == problem_from_mapping(model.mapping).keys


# The tool sees what is wrong --------------------------------------------------------------------


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("of ours")


def warns(*_: Any, **__: Any) -> Any:
    return float(np.float64(1.0) / np.float64(0.0))


def logs(*_: Any, **__: Any) -> Any:
    try:
        fails()
    except ZeroDivisionError:
        logging.getLogger("odefit").exception("hidden")


@pytest.mark.parametrize(
    "mistake",
    [fails, *(pytest.param(one, marks=pytest.mark.slow) for one in (warns, logs))],
)
def test_the_tool_sees_exceptions_warnings_and_what_the_log_hides(
    mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odefit.Result, "summary", mistake)
    outcome = run_case(3, light=True)
    assert [step.partition(":")[0] for step, _ in outcome.faults] == ["summary"]
    assert f"FAULT case 3, {outcome.faults[0][0]}:" in shown(outcome)
    assert "1 cases, 1 with faults" in table([outcome])


@pytest.mark.slow
def test_a_campaign_continues_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state.jsonl"
    arguments = ["--from", "3", "--count", "2", "--state", str(state)]
    assert main(arguments) == 0
    assert len(state.read_text(encoding="utf-8").splitlines()) == 2
    first = capsys.readouterr().out
    assert main(arguments) == 0
    assert capsys.readouterr().out == first
    assert len(state.read_text(encoding="utf-8").splitlines()) == 2


def test_an_outcome_without_faults_shows_nothing() -> None:
    assert shown(Outcome(1)) == ""
