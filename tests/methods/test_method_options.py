"""The options of every method, and their values in text."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from odefit import InputError, MultiStart, SingleShooting
from odefit.methods.method_options import (
    configured,
    method_class,
    method_options,
    settings,
    summary_of,
)
from odefit.methods.registry import METHODS, make_method


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_every_method_is_listed_with_its_meaning(name: str) -> None:
    options = method_options(name)
    assert [o.name for o in options] == [f.name for f in fields(method_class(METHODS[name]))]
    assert all(o.meaning and o.takes and o.default for o in options)
    assert summary_of(name).endswith(".")


@pytest.mark.parametrize("name", METHODS)
def test_the_default_of_every_option_in_text_is_its_default(name: str) -> None:
    """A method whose options are given as they are told is the method itself."""
    method = make_method(name)
    for option in method_options(name):
        value = getattr(method, option.name)
        if value is None or isinstance(value, (bool, int, float, str)):
            given = settings(name, [f"{option.name}={option.default}"])
            assert replace(method, **given) == method  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("multiple-shooting", "nodes=20", 20),
        ("multiple-shooting", "nodes=[0, 1.5]", (0.0, 1.5)),
        ("multiple-shooting", "nodes={ one = [0, 1.5] }", {"one": (0.0, 1.5)}),
        ("multiple-shooting", 'constraints=["k1 + k2 = 1"]', ("k1 + k2 = 1",)),
        ("multi-start", "screening=64,8", (64, 8)),
        ("multi-start", "starts=none", None),
        ("multi-start", "design=sobol", "sobol"),
        ("multi-start", 'design="sobol"', "sobol"),
        ("multi-start", "method=single-shooting", SingleShooting()),
        ("single-shooting", "to-the-last-digit=true", True),
        ("single-shooting", "tolerance=1e-6", 1e-6),
        ("integral-matching", "linear=k1, k2", ("k1", "k2")),
        ("outer-approximation", "bounds={ k = [0, 1] }", {"k": (0.0, 1.0)}),
        ("outer-approximation", "cuts=[[1, 2], [3]]", ((1, 2), (3,))),
    ],
)
def test_texts_are_values_of_the_right_type(name: str, text: str, value: object) -> None:
    (found,) = settings(name, [text]).values()
    assert found == value
    assert type(found) is type(value)


def test_parts_of_methods_are_named_by_their_class() -> None:
    found = settings("integral-matching", ["smoother=smoothing-spline"])["smoother"]
    assert type(found).__name__ == "SmoothingSpline"
    found = settings("transcription", ["formulation=soft-cons"])["formulation"]
    assert type(found).__name__ == "SoftCons"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes=3", "--set: multi-start has no option 'nodes'. Its options are: method, starts"),
        ("hit=3", "no option 'hit'; did you mean 'hits'? Its options are: method, starts"),
        ("hits=many", "--set hits: expected a whole number, got 'many'"),
        ("hits=2.5", "--set hits: expected a whole number, got '2.5'"),
        ("design=grid", "--set design: expected latin or sobol, got 'grid'"),
        ("hits", "--set: expected OPTION=VALUE such as method=10, got 'hits'"),
    ],
)
def test_mistakes_are_reported_with_the_valid_choices(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        settings("multi-start", [text])
    assert words in str(caught.value)


def test_an_option_is_given_once() -> None:
    with pytest.raises(InputError, match="hits is given twice"):
        settings("multi-start", ["hits=2", "hits=3"])
    with pytest.raises(InputError, match="starts is also given as --starts"):
        configured("multi-start", {"starts": 3}, ["starts=4"])


def test_a_method_is_made_of_both_kinds_of_options() -> None:
    assert configured("multi-start", {"starts": 3}, ["hits=2"]) == MultiStart(starts=3, hits=2)
