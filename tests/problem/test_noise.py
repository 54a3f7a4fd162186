"""Noise is given in one way, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from odefit.expressions.expressions import parse
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise import Noise, as_noise


def read(value: Any) -> tuple[Noise, list[str]]:
    issues = Issues()
    return as_noise(value, "[noise] y", issues), issues.errors


@pytest.mark.parametrize(
    ("table", "noise"),
    [
        ({"sd": 0.5}, Noise(0.5)),
        ({"sd": 2}, Noise(2.0)),
        ({"sd": "0.5"}, Noise(0.5)),
        ({"sd": "estimate"}, Noise("estimate")),
        ({"sd": "a + b*y"}, Noise(parse("a + b*y"))),
        ({"relative": 0.05}, Noise(relative=0.05)),
        ({"sd": 0.1, "transform": "log10"}, Noise(0.1, transform="log10")),
        ({"transform": "log"}, Noise(transform="log")),
        ({}, Noise()),
        (Noise("a*y"), Noise(parse("a*y"))),  # type: ignore[arg-type] # kindly parsed
    ],
    ids=range(10),
)
def test_noise_is_read(table: Any, noise: Noise) -> None:
    assert read(table) == (noise, [])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sd": 0}, "y.sd: must be positive, got 0"),
        ({"sd": "-1"}, "y.sd: must be positive, got -1"),
        ({"sd": True}, 'y.sd: got true; write y = { sd = "estimate" }'),
        ({"sd": "a +"}, "y.sd: 'a +' ends"),
        ({"sd": [1]}, "y.sd: expected a number, got a list"),
        ({"relative": -0.1}, "y.relative: must be positive"),
        ({"relative": "5%"}, "y.relative: got '5%'; write y = { relative = 0.05 }"),
        (
            {"relative": "estimate"},
            'write sd = "f*y" instead, with f = {',
        ),
        ({"sd": 1, "relative": 0.1}, "sd and relative contradict each other"),
        ({"relative": 0.1, "transform": "log"}, "contradict each other"),
        ({"transform": "ln"}, 'y.transform: expected "log" or "log10", got \'ln\''),
        ({"transform": 1}, "y.transform"),
        ({"std": 1}, "y.std: unknown field; write y = { sd = 1 }"),
        (0.5, "y: expected a table such as { sd = 0.5 }, got 0.5"),
        (None, "y: expected a table"),
    ],
    ids=range(15),
)
def test_a_mistake_gives_one_message(table: Any, message: str) -> None:
    _, errors = read(table)
    assert len(errors) == 1
    assert message in errors[0]


def test_an_integer_beyond_all_floats_is_refused_as_a_table() -> None:
    issues = Issues()
    value: Any = 10**400
    as_noise(value, "[noise] y", issues)
    (message,) = issues.errors
    assert message.startswith("[noise] y: expected a table such as { sd = 0.5 }, got a very large")
