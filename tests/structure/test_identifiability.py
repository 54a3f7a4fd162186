"""What is said of the unknowns of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, Model, Problem
from odefit.structure.structural_identifiability import (
    StructuralIdentifiability,
    UnknownIdentifiability,
)
from tests.structure.models import TIMES, problem


def statuses(found: StructuralIdentifiability) -> dict[str, str]:
    return {u.key: str(u) for u in found.unknowns}


@pytest.fixture(scope="module")
def biohydrogenation() -> StructuralIdentifiability:
    return odefit.identifiability(odefit.library.load("rational-biohydrogenation"))


def test_global_local_and_lost_are_told_apart(
    biohydrogenation: StructuralIdentifiability,
) -> None:
    found = biohydrogenation
    assert found.named("globally") == ("k5", "k6", "k7", "x4", "x5")
    assert found.named("locally") == ("k8", "k9", "k10", "x6")
    assert found.named("no effect") == ("x7",)
    assert found["k10"] == UnknownIdentifiability("k10", "locally", 2)
    assert (found.solutions, found.given) == (2, ())
    assert found.orders == {"run 1": {"y1": 2, "y2": 5}}
    assert 0 < found.error < 1e-10
    assert 0 < found.doubt < 1e-6


def test_it_is_told_in_words(biohydrogenation: StructuralIdentifiability) -> None:
    assert biohydrogenation.sentence == (
        "Of 10 unknowns, 5 are identifiable globally, 4 are identifiable locally and 1 is not "
        "identifiable. 2 solutions give the same outputs."
    )
    text = str(biohydrogenation)
    assert "x7   no: changes no output" in text
    assert "k10  locally, 2 values" in text
    assert "Derivatives needed, up to order: y1 2, y2 5." in text


def test_it_is_a_table(biohydrogenation: StructuralIdentifiability) -> None:
    table = biohydrogenation.table
    assert table.index.name == "unknown"
    assert table.loc["k10", "values"] == 2
    assert bool(table.loc["k5", "identifiable"])
    assert not table.loc["x7", "identifiable"]
    with pytest.raises(KeyError):
        biohydrogenation["x8"]


def test_without_the_count_nothing_is_called_global() -> None:
    found = odefit.identifiability(odefit.library.load("rational-seir"), count=False)
    assert set(statuses(found).values()) == {"locally, number not counted"}
    assert "was not counted" in found.sentence


def test_a_count_that_is_cut_says_so() -> None:
    found = odefit.identifiability(odefit.library.load("rational-crauste"), time_limit=0.0)
    assert found.solutions is None
    assert found.named("locally") == tuple(u.key for u in found.unknowns)
    assert "not counted to the end: 1 was found" in found.sentence


def test_a_product_with_what_has_to_be_given() -> None:
    found = odefit.identifiability(problem({"x": "-a*b*x"}, {"y": "c*x"}, ["a", "b", "c"]))
    assert statuses(found) == dict.fromkeys("abcx", "no, only in combination")
    assert set(found.combinations) == {"a*b", "c*x"}
    assert len(found.given) == 2
    assert "None of the 4 unknowns is identifiable" in found.sentence


def test_fixed_and_known_values_count() -> None:
    fixed = {"a": {}, "b": {"fixed": 2.0}, "c": {}}
    found = odefit.identifiability(problem({"x": "-a*b*x"}, {"y": "c*x"}, fixed, {"x": 1.5}))
    assert statuses(found) == {"a": "globally", "c": "globally"}


def test_noise_and_later_events_are_outside() -> None:
    data = {"t": TIMES, "y": np.cos(TIMES)}
    found = odefit.identifiability(
        Problem(
            Model(ode={"x": "-k*x"}, observables={"y": "x"}),
            parameters={"k": {}, "dose": {}, "s": {}},
            initial={"x": 1.0},
            noise={"y": {"sd": "s*y"}},
            experiments=[Experiment("r", data, t0=0.0, events=[Event((0.5,), {"x": "x + dose"})])],
        )
    )
    assert statuses(found) == {
        "k": "globally",
        "dose": "not examined: acts after the first event alone",
        "s": "not examined: acts on the noise alone",
    }
    assert found["s"].identifiable is None
    assert any("before the first event" in r for r in found.remarks)
    assert found.sentence.startswith("The one unknown is identifiable globally.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "parameters", "expected"),
    [
        ("a*sqrt(x)", "a", {"a": "globally"}),
        ("a^2*sqrt(x)", "a", {"a": "locally, 2 values"}),
        ("a*x^n", "a n", {"a": "globally", "n": "globally"}),
        ("a*exp(-b*t)", "a b", {"a": "globally", "b": "globally"}),
        ("a*exp(-b^2*t)", "a b", {"a": "locally, number not counted", "b": "locally, 2 values"}),
        ("exp(a)*x", "a", {"a": "globally"}),
        ("a*sin(b*t)", "a b", {"b": "locally, 2 values"}),
        ("sin(w + t)*x", "w", {"w": "globally (up to the period)"}),
        (
            "a*sin(w + t)*x",
            "a w",
            {"a": "locally, 2 values", "w": "locally, 2 values (up to the period)"},
        ),
        (
            "exp(a^2)*x",
            "a",
            {"a": "locally, number not counted (acts through functions that are not rational)"},
        ),
    ],
)
def test_functions_that_are_not_rational(
    rate: str, parameters: str, expected: dict[str, str]
) -> None:
    model = problem({"x": f"-({rate})"}, {"y": "x"}, parameters.split())
    found = statuses(odefit.identifiability(model))
    for key, words in expected.items():
        assert found[key].startswith(words)


def test_an_algebraic_equation_that_has_two_branches() -> None:
    """``z^2 = x``: the other branch has the other sign of c, and is another solution."""
    model = problem({"x": "-c*z"}, {"y": "x"}, ["c"], algebraic={"z": "z^2 - x"})
    found = odefit.identifiability(model)
    assert statuses(found) == {"c": "locally, 2 values", "x": "globally"}
    # With z observed too there is one.
    model = problem({"x": "-c*z"}, {"y": "x", "w": "z"}, ["c"], algebraic={"z": "z^2 - x"})
    assert statuses(odefit.identifiability(model))["c"] == "globally"


def test_inputs_are_known() -> None:
    model = problem({"x": "-(a + b)*x + b*u"}, {"y": "x"}, ["a", "b"], inputs=["u"])
    found = odefit.identifiability(model)
    assert statuses(found) == {"a": "globally", "b": "globally", "x": "globally"}
    assert any("Inputs count as known" in r for r in found.remarks)


def test_several_experiments() -> None:
    data = {"t": TIMES, "y": np.cos(TIMES)}
    found = odefit.identifiability(
        Problem(
            Model(ode={"x": "-(a + d*b)*x"}, observables={"y": "c*x"}, constants={"d": 1.0}),
            parameters={"a": {}, "b": {}, "c": {"per_experiment": True}},
            initial={"x": 1.0},
            experiments=[
                Experiment("one", data),
                Experiment("two", data, constants={"d": 2.0}),
                Experiment("three", data, constants={"d": 0.0}),
            ],
        )
    )
    assert statuses(found) == dict.fromkeys(("a", "b", "c[one]", "c[two]", "c[three]"), "globally")
    assert set(found.orders) == {"one", "two", "three"}


def test_a_kink_is_the_reason_why_there_is_nothing() -> None:
    found = odefit.identifiability(problem({"x": "-k*abs(x)"}, {"y": "x"}, ["k"]))
    assert found.sentence.startswith("No structural analysis: abs(...) has a kink")
    assert str(found).count("\n") == 1
    assert len(found.table) == 0


def test_nothing_unknown() -> None:
    found = odefit.identifiability(problem({"x": "-2*x"}, {"y": "x"}, [], {"x": 1.0}))
    assert found.sentence == "The outputs depend on no unknown."


LIBRARY: dict[str, Any] = {
    "alpha-pinene": 1,
    "bbg": 1,
    "bock": 1,
    "fitzhugh-nagumo": 1,
    "henon-heiles": 1,
    "rikitake": 1,
    "seasonal-lotka-volterra": 2,
    "sir": 1,
    "rational-mammillary-4": 2,
    "rational-hiv": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_problems_of_the_library(name: str) -> None:
    found = odefit.identifiability(odefit.library.load(name))
    assert found.solutions == LIBRARY[name]
    assert not found.named("in combination", "no effect")


def test_a_seed_repeats_it() -> None:
    model = odefit.library.load("rational-lotka-volterra")
    first, second = (odefit.identifiability(model, seed=7) for _ in range(2))
    assert (first.unknowns, first.doubt) == (second.unknowns, second.doubt)
