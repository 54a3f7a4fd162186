"""Problems written out in plain formulas."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.certificates.statement import fingerprint_of, statement_of
from odefit.common.errors import InputError
from tests.certificates.problems import TIMES, quadratic, ten


def test_formulas_have_unknowns_states_and_numbers_alone() -> None:
    statement = statement_of(quadratic())
    assert statement["unknowns"][0]["symbol"] == "k"
    condition = statement["conditions"][0]
    assert condition["segments"] == [{"begin": 0.5, "set": [], "ode": {"x": "((-k)*(x^2))"}}]
    assert [m["value"] for m in condition["data"]] == [0.72, 0.45, 0.37, 0.18]
    assert {m["formula"] for m in condition["data"]} == {"x"}


def test_an_event_begins_a_segment_and_is_seen_by_later_measurements_alone() -> None:
    condition = statement_of(ten()["event"])["conditions"][0]
    assert [s["begin"] for s in condition["segments"]] == [0.5, 2.0]
    assert condition["segments"][1]["set"] == [{"x": "(x + 1)"}]


def test_an_input_is_written_out_between_its_knots() -> None:
    values = [0.0, 1.0, 1.0, 3.0]
    problem = Problem(
        Model(ode={"x": "u - k*x"}, inputs={"u": "linear"}),
        {"t": [0.0, 1.0, 2.0, 3.0], "x": [0.5, 0.6, 0.8, 1.2], "u": values},
        {"k": {"lower": 0.0, "upper": 1.0}},
        {"x": 0.5},
    )
    segments = statement_of(problem)["conditions"][0]["segments"]
    assert [s["begin"] for s in segments] == [0.0, 1.0, 2.0, 3.0]
    for segment, at in zip(segments[:3], (0.5, 1.5, 2.25), strict=True):
        rate = segment["ode"]["x"].replace("^", "**")
        known = {"t": at, "x": 0.0, "k": 0.3}
        assert eval(rate, {}, known) == pytest.approx(np.interp(at, range(4), values))


def test_problems_are_equal_if_their_fingerprints_are() -> None:
    again = quadratic()
    assert fingerprint_of(statement_of(again)) == fingerprint_of(statement_of(quadratic()))
    other = statement_of(ten()["decay"])
    assert fingerprint_of(other) != fingerprint_of(statement_of(ten()["prior"]))


def test_a_function_with_a_kink_is_refused_by_its_name() -> None:
    problem = Problem(
        Model(ode={"x": "-k*abs(x)"}),
        {"t": TIMES, "x": np.exp(-TIMES)},
        {"k": {"lower": 0.0, "upper": 1.0}},
        {"x": 1.0},
    )
    with pytest.raises(InputError, match="'abs', which has a kink"):
        statement_of(problem)
