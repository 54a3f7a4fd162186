"""Units that are given are checked; whatever has none is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odefit
from odefit.common import packages
from odefit.problem import InputError, Model, Problem, problem_from_mapping, problem_to_mapping
from odefit.problem.unit_check import UnitReport
from odefit.problem.units import unit_of

pytest.importorskip("pint", reason="units need Pint, an extra")


def problem(
    ode: dict[str, str],
    units: dict[str, str],
    parameters: dict[str, str] | None = None,
    time_unit: str = "h",
    **sections: Any,
) -> Problem:
    named = {name: {"unit": unit} for name, unit in (parameters or {}).items()}
    initial = sections.pop("initial", {})
    given: dict[str, Any] = {k: sections.pop(k) for k in ("noise", "experiments") if k in sections}
    if "experiments" not in given:
        given["data"] = {"t": [0.0, 1.0], "seen": [1.0, 2.0]}
    sections.setdefault("observables", {"seen": next(iter(ode))})
    return Problem(
        Model(ode=ode, **sections),
        parameters=named,
        initial={**dict.fromkeys(ode, 1.0), **initial},
        units=units,
        time_unit=time_unit,
        **given,
    )


def report(*args: Any, **sections: Any) -> Any:
    return odefit.check_units(problem(*args, **sections))


ENZYME = {"S": "-vmax*S/(km + S) + feed", "P": "vmax*S/(km + S)"}
ENZYME_UNITS = {"S": "mmol/l", "P": "mmol/l", "seen": "mmol/l"}
OF_ENZYME = {"vmax": "mmol/l/h", "km": "mM", "feed": "mmol/(l*h)"}


def test_consistent_equations_count_as_checked() -> None:
    found = report(ENZYME, ENZYME_UNITS, OF_ENZYME)
    assert found.problems == ()
    assert found.checked == ("[ode] S", "[ode] P", "[observables] seen")
    assert found.lines() == ["3 of 3 expressions were checked as a whole, and they fit."]


@pytest.mark.parametrize(
    ("ode", "units", "parameters", "message"),
    [
        (
            {"x": "-k*x"},
            {"x": "mmol/l"},
            {"k": "1/min"},
            (
                "[ode] x: the two sides differ: 'dx/dt' in mmol/(l*h) and '-k*x' in mmol/(l*min), "
                "which differ by a factor of 60"
            ),
        ),
        (
            {"x": "-k*x + c"},
            {"x": "mg"},
            {"k": "1/h", "c": "mg"},
            "[ode] x: a sum of '-k*x' in mg/h and 'c' in mg",
        ),
        (
            {"x": "-k*x*y", "y": "0"},
            {"x": "mM", "y": "mM"},
            {"k": "1/h"},
            "[ode] x: the two sides differ: 'dx/dt' in mM/h and '-k*x*y' in mM^2/h",
        ),
        (
            {"x": "k*(1 - x)"},
            {"x": "mM"},
            {"k": "mM/h"},
            (
                "[ode] x: a difference of '1' in no unit (a number) and 'x' in mM; give the "
                "number a "
                "name in [constants], and a unit"
            ),
        ),
        (
            {"x": "-k*exp(x)"},
            {"x": "mM"},
            {"k": "mM/h"},
            (
                "[ode] x: exp of 'x' in mM, where a number without a unit is expected; divide by a "
                "reference value"
            ),
        ),
        (
            {"x": "v*x^n/(k^n + x^n)"},
            {"x": "mM"},
            {"k": "uM", "v": "mM/h", "n": "1"},
            "[ode] x: a sum of 'k^n' in (µM)^n and 'x^n' in (mM)^n",
        ),
        (
            {"x": "piecewise(k, t < lag, 0)"},
            {"x": "mM"},
            {"k": "mM/h", "lag": "min"},
            "[ode] x: '<' compares 't' in h and 'lag' in min, which differ by a factor of 60",
        ),
        (
            {"x": "-k*2^x"},
            {"x": "mM"},
            {"k": "mM/h"},
            (
                "[ode] x: the exponent is 'x' in mM, where a number without a unit is "
                "expected; divide "
                "by a reference value"
            ),
        ),
        (
            {"x": "max(k, x)"},
            {"x": "mM"},
            {"k": "mM/h"},
            "[ode] x: max of 'k' in mM/h and 'x' in mM",
        ),
    ],
)
def test_an_inconsistency_has_its_place_and_both_units(
    ode: dict[str, str], units: dict[str, str], parameters: dict[str, str], message: str
) -> None:
    found = report(ode, units, parameters)
    assert found.problems == (message,)
    assert found.lines()[0] == message


@pytest.mark.parametrize(
    ("ode", "units", "parameters"),
    [
        ({"x": "v*x^n/(k^n + x^n)"}, {"x": "mM"}, {"k": "mmol/l", "v": "mM/h", "n": "1"}),
        ({"x": "-k*x^2"}, {"x": "mM"}, {"k": "1/(mM*h)"}),
        ({"x": "-k*sqrt(x)"}, {"x": "mM"}, {"k": "mM^0.5/h"}),
        (
            {"x": "-k*exp(-e/(r*a))*x"},
            {"x": "g"},
            {"k": "1/h", "e": "J/mol", "r": "J/mol/K", "a": "K"},
        ),
        ({"x": "-k*max(x, 0)"}, {"x": "mM"}, {"k": "1/h"}),
        ({"x": "k*x*(1 - x/c)"}, {"x": "g"}, {"k": "1/h", "c": "kg"}),
        ({"x": "-x/tau"}, {"x": "V"}, {"tau": "3600 s"}),
    ],
)
def test_equations_of_textbooks_fit(
    ode: dict[str, str], units: dict[str, str], parameters: dict[str, str]
) -> None:
    found = report(ode, units, parameters).problems
    # Kilograms for grams, and a number before a unit, are what this test is about as well.
    if "c" in parameters:
        assert found == (
            (
                "[ode] x: a difference of '1' in no unit (a number) and 'x/c' in g/kg, which "
                "differ by "
                "a factor of 1000"
            ),
        )
    else:
        assert found == ()


def test_nothing_is_checked_where_units_are_missing() -> None:
    found = report(
        {"x": "-k*x + c*y", "y": "-0.5*y"},
        {"x": "mM", "y": "mM"},
        {"k": "1/h"},
        constants={"c": 2.0},
    )
    assert found.problems == found.checked == ()
    assert found.unchecked == ("[ode] x", "[ode] y", "[observables] seen")
    assert found.missing == ("c", "seen")
    assert found.lines() == [
        "Nothing could be checked as a whole.",
        "Checked in part, or not at all: [ode] x, [ode] y, [observables] seen.",
        "Without a unit: c, seen.",
    ]


def test_labels_that_are_not_units_are_allowed() -> None:
    found = report({"x": "-k*x"}, {"x": "cells/ml"}, {"k": "a.u."})
    assert found.problems == ()
    assert found.labels == (
        "The unit 'a.u.' of 'k' is a label that Pint does not know.",
        "The unit 'cells/ml' of 'x' is a label that Pint does not know.",
    )


def test_observables_noise_events_and_initial_values_are_checked() -> None:
    experiment = odefit.Experiment(
        "a",
        {"t": [0.0, 1.0], "y": [1.0, 2.0]},
        events=[
            odefit.Event(("lag",), {"x": "x + dose"}),
            odefit.Event((), {"x": "0"}, "x > dose"),
        ],
    )
    found = report(
        {"x": "-k*x"},
        {"x": "mg", "y": "mg/l"},
        {"k": "1/h", "dose": "g", "lag": "min", "start": "h", "s": "mg/l"},
        observables={"y": "x"},
        initial={"x": "start"},
        noise={"y": {"sd": "s + 2*x"}},
        experiments=[experiment],
    )
    assert found.problems == (
        "[observables] y: the two sides differ: 'y' in mg/l and 'x' in mg",
        "[noise] y.sd: a sum of 's' in mg/l and '2*x' in mg",
        "[initial] x: the two sides differ: 'x' in mg and 'start' in h",
        (
            "[[experiment]] \"a\" event 1 assign.x: a sum of 'x' in mg and 'dose' in g, "
            "which differ "
            "by a factor of 1000"
        ),
        (
            "[[experiment]] \"a\" event 1 time: the two sides differ: 't' in h and 'lag' in "
            "min, which "
            "differ by a factor of 60"
        ),
        (
            "[[experiment]] \"a\" event 2 when: '>' compares 'x' in mg and 'dose' in g, "
            "which differ by "
            "a factor of 1000"
        ),
    )


MAPPING = {
    "format": 1,
    "time_unit": "h",
    "ode": {"x[1:2]": "-k*x[i]"},
    "parameters": {"k": {"unit": "1/h"}},
    "initial": {"x[1]": 1.0, "x[2]": {"unit": "g"}},
    "units": {"x[1:2]": "mg"},
    "experiment": [{"data": {"t": [0.0, 1.0], "x_1": [1.0, 0.5]}}],
}


def test_files_have_a_section_of_units_with_arrays() -> None:
    made = problem_from_mapping(MAPPING)
    assert made.units == {"x_1": "mg", "x_2": "mg"}
    assert problem_to_mapping(made)["units"] == made.units
    assert problem_from_mapping(problem_to_mapping(made)).units == made.units
    assert made.with_parameters(k={"guess": 1.0}).units == made.units


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"z": "mg"}, "[units] z: there is no quantity 'z'"),
        ({"x[1:2]": 3}, '[units] x[1:2]: expected a text such as "mmol/l", got 3'),
        ({"x[1:m]": "g"}, "[units] x[1:m]: the index 'm' in 'x[1:m]' is not known"),
    ],
)
def test_a_mistake_in_units_is_named(units: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        problem_from_mapping({**MAPPING, "units": units})
    assert message in str(caught.value)


@given(st.text(max_size=20) | st.text("mgl/*^()1-9. ", max_size=12))
@settings(max_examples=100, deadline=None)
def test_any_label_is_a_unit_or_is_ignored(label: str) -> None:
    found = unit_of(label)
    assert found is None or found.same(found * found / found)


@pytest.mark.parametrize(
    "label", ["9^9^9^9", "m^99999", "degC", "mg*", "10 mg", "-", "__import__('os')"]
)
def test_dangerous_or_odd_labels_are_labels(label: str) -> None:
    assert unit_of(label) is None


def test_a_missing_pint_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from odefit.problem import units

    units.registry.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "pint", None)
    with pytest.raises(InputError, match="pip install odefit\\[units\\]"):
        odefit.check_units(problem(ENZYME, ENZYME_UNITS, OF_ENZYME))
    monkeypatch.undo()
    units.registry.cache_clear()
    assert packages.PURPOSES["pint"]


def test_a_long_list_of_names_is_cut_and_counted() -> None:
    names = tuple(f"k{i}" for i in range(15))
    (*_, said) = UnitReport((), ("x",), (), names, ()).lines()
    assert said == f"Without a unit: {', '.join(names[:12])} and 3 more."
    (*_, all_of_them) = UnitReport((), ("x",), (), names[:12], ()).lines()
    assert all_of_them == f"Without a unit: {', '.join(names[:12])}."
