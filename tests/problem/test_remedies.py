"""What is often written otherwise: it is taken, or the message says what to write."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Model, Problem
from odefit.problem.parameters import MEANT_FIELDS, PARAMETER_FIELDS

DATA = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]}
MODEL = Model(ode={"x": "-k*x"})

FILE = """format = 1
{top}
[ode]
x = "-k*x"
[parameters]
{parameters}
[initial]
{initial}
[[experiment]]
data = "data.csv"
"""


def of_file(
    folder: Path, top: str = "", parameters: str = "k = {}", initial: str = "x = 1.0"
) -> Any:
    path = folder / "problem.toml"
    path.write_text(FILE.format(top=top, parameters=parameters, initial=initial), encoding="utf-8")
    (folder / "data.csv").write_text("t,x\n0,1.0\n1,0.6\n2,0.4\n", encoding="utf-8")
    return odefit.load(path)


def message(**changes: Any) -> str:
    given: dict[str, Any] = {"parameters": {"k": {}}, "initial": {"x": 1.0}, **changes}
    with pytest.raises(InputError) as caught:
        Problem(MODEL, DATA, **given)
    return str(caught.value)


@pytest.mark.parametrize("pair", [(0.0, 5.0), [0, 5], np.array([0.0, 5.0])])
def test_a_pair_stands_for_bounds(pair: Any) -> None:
    problem = Problem(MODEL, DATA, {"k": pair}, {"x": pair})
    assert problem.keys == ("k", "x")
    assert problem.lower.tolist() == [0.0, 0.0]
    assert problem.upper.tolist() == [5.0, 5.0]


def test_a_bound_that_is_none_is_ignored() -> None:
    problem = Problem(MODEL, DATA, {"k": (0.0, None)}, {"x": 1.0})
    assert problem.upper.tolist() == [math.inf]


def test_a_pair_stands_for_bounds_in_a_file_too(tmp_path: Path) -> None:
    problem = of_file(tmp_path, parameters="k = [0.0, 5.0]", initial="x = [0.5, inf]")
    assert problem.keys == ("k", "x")
    assert problem.upper.tolist() == [5.0, math.inf]


def test_three_values_are_refused_as_bounds() -> None:
    assert message(parameters={"k": [0.0, 0.5, 1.0]}) == (
        "[parameters] k: expected two bounds such as [0.0, 1.0], got 3 values; a guess belongs in "
        "a table: { lower = 0.0, upper = 1.0, guess = 0.5 }"
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("init", "guess"),
        ("initial_guess", "guess"),
        ("value", "guess"),
        ("min", "lower"),
        ("max", "upper"),
        ("upper-bound", "upper"),
        ("bounds", "lower and upper"),
        ("vary", "fixed = VALUE"),
    ],
)
def test_words_of_other_programs_are_distinguished(key: str, meant: str) -> None:
    assert message(parameters={"k": {key: 1.0}}) == (
        f"[parameters] k.{key}: unknown field; write {meant}"
    )


def test_no_word_of_another_program_is_a_field() -> None:
    assert not set(MEANT_FIELDS) & set(PARAMETER_FIELDS)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ("poisson", """got 'poisson'; write noise={"x": {"distribution": "poisson"}}"""),
        ("huber", """got 'huber'; write noise={"x": {"loss": "huber"}}"""),
        (0.1, """got 0.1; write noise={"x": {"sd": 0.1}}"""),
        ({"x": "poisson"}, """expected a table such as { distribution = "poisson" }"""),
        ({"x": "lognormal"}, """expected a table such as { distribution = "log-normal" }"""),
        ({"x": "estimate"}, """expected a table such as { sd = "estimate" }"""),
        ({"x": 0.2}, "expected a table such as { sd = 0.2 }, got 0.2"),
    ],
)
def test_noise_in_one_word_is_reported_at_its_place(noise: Any, words: str) -> None:
    assert words in message(noise=noise)


def test_noise_in_one_word_is_reported_for_files(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        of_file(tmp_path, top='noise = "poisson"')
    assert (
        "noise: expected a table by observable, got 'poisson'; write [noise] and below it "
        'x = { distribution = "poisson" }'
    ) in str(caught.value)
