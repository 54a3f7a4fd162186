"""Messages hint at what was meant, and stay short."""

from __future__ import annotations

import datetime
import pickle
import time

import pytest

from odefit.common.errors import InputError, closest, did_you_mean, one_of, shown


def test_an_input_error_survives_pickling_with_all_its_messages() -> None:
    error = pickle.loads(pickle.dumps(InputError(["one", "two"])))
    assert error.messages == ("one", "two")
    assert str(error) == "one\ntwo"


@pytest.mark.parametrize(
    ("name", "candidates", "meant"),
    [
        ("k2", ["k_2", "x"], "k_2"),
        ("K", ["k", "x"], "k"),
        ("observabls", ["observables", "ode"], "observables"),
        ("zzz", ["k", "x"], None),
        ("", ["k"], None),
    ],
)
def test_the_closest_name_is_found(name: str, candidates: list[str], meant: str | None) -> None:
    assert closest(name, candidates) == meant


def test_without_a_similar_name_all_are_offered() -> None:
    assert one_of("zzz", ("sd", "relative")) == "; expected one of: sd, relative"
    assert one_of("sdd", ("sd", "relative")) == "; did you mean 'sd'?"
    assert did_you_mean("zzz", ("sd", "relative")) == ""


def test_hints_take_no_time_however_many_and_long_the_names_are() -> None:
    start = time.process_time()
    names = [f"x{i}" for i in range(3000)] + ["a" * 50_000]
    for i in range(200):
        did_you_mean(f"y{i}", names)
    did_you_mean("a" * 49_999, names)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "nothing"),
        ({"a": 1}, "a table"),
        ([[[]]], "a list"),
        pytest.param(10**5000, "a very large integer", id="huge"),
        (datetime.date(1979, 5, 27), "the date or time 1979-05-27"),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_in_the_words_of_a_problem_file(value: object, text: str) -> None:
    assert shown(value) == text


def test_long_texts_are_cut() -> None:
    assert len(shown("x" * 10**6)) <= 80
