"""How a method may be named."""

from __future__ import annotations

from typing import Any

import pytest

import odefit
from odefit import InputError, MultiStart
from odefit.methods.registry import METHODS, as_method, make_method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_named_as_on_the_command_line_or_by_its_class(name: str) -> None:
    entry = METHODS[name]
    for spelling in (name, entry.class_name, name.replace("-", "_"), name.upper()):
        assert as_method(spelling) == make_method(name)


def test_a_class_stands_for_its_defaults() -> None:
    assert as_method(MultiStart) == MultiStart()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("multi-strat", "method: unknown method 'multi-strat'; did you mean 'multi-start'?"),
        ("nelder-mead", "method: unknown method 'nelder-mead'. Methods are: automatic, multi"),
        (3, "method: expected a method such as odefit.MultiStart(starts=20) or the name of one"),
    ],
)
def test_a_value_that_is_not_a_method_is_refused(method: Any, words: str) -> None:
    with pytest.raises(InputError, match="method") as caught:
        odefit.fit(odefit.library.load("harmonic"), method)
    assert words in str(caught.value)
