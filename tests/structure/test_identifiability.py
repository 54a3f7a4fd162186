"""What is said of the unknowns of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, Model, Problem
from odefit.structure.same_outputs import same_outputs
from odefit.structure.series.deadline import Deadline
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.structural_identifiability import (
    StructuralIdentifiability,
    UnknownIdentifiability,
)
from tests.structure.models import TIMES, problem
from tests.structure.random_models import random_problem


def statuses(found: StructuralIdentifiability) -> dict[str, str]:
    return {u.key: str(u) for u in found.unknowns}


@pytest.fixture(scope="module")
def biohydrogenation() -> StructuralIdentifiability:
    return odefit.identifiability(odefit.library.load("rational-biohydrogenation"))


def test_global_local_and_lost_are_distinguished(
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
    assert found.exact
    assert not found.unfinished


def test_the_finding_is_put_into_words(biohydrogenation: StructuralIdentifiability) -> None:
    assert biohydrogenation.sentence == (
        "Of 10 unknowns, 5 are identifiable globally, 4 are identifiable locally and 1 is not "
        "identifiable. 2 solutions give the same outputs."
    )
    text = str(biohydrogenation)
    assert "x7   no: changes no output" in text
    assert "k10  locally, 2 values" in text
    assert "Derivatives needed, up to order: y1 2, y2 5." in text


def test_the_findings_are_a_table(biohydrogenation: StructuralIdentifiability) -> None:
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


def cascade(stages: int) -> Problem:
    """A cascade of activations by complexes, which an input that decays sets going."""
    ode: dict[str, str] = {}
    initial: dict[str, float] = {}
    rates: list[str] = []
    for i in range(1, stages + 1):
        before = f"b{i - 1}" if i > 1 else "exp(-0.1*t)"
        ode[f"a{i}"] = f"-kon{i}*a{i}*{before} + koff{i}*c{i} + kd{i}*b{i}"
        ode[f"c{i}"] = f"kon{i}*a{i}*{before} - koff{i}*c{i} - kcat{i}*c{i}"
        ode[f"b{i}"] = f"kcat{i}*c{i} - kd{i}*b{i}"
        if i > 1:
            ode[f"b{i - 1}"] += f" - kon{i}*a{i}*b{i - 1} + koff{i}*c{i} + kcat{i}*c{i}"
        initial |= {f"a{i}": 1.0, f"b{i}": 0.0, f"c{i}": 0.0}
        rates += [f"{name}{i}" for name in ("kon", "koff", "kcat", "kd")]
    return problem(ode, {f"y{i}": f"b{i}" for i in range(1, stages + 1)}, rates, initial)


def interrupted(monkeypatch: pytest.MonkeyPatch, checks: int) -> None:
    """Let every analysis run out of time after so many looks at the clock."""
    looks = iter(range(checks))
    late = Deadline(stop=lambda: next(looks, None) is None)
    monkeypatch.setattr("odefit.structure.identifiability.Deadline", lambda seconds: late)


def test_a_truncated_count_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, 2000)
    found = odefit.identifiability(cascade(10))
    assert (found.solutions, found.unfinished) == (None, True)
    assert found.sentence == (
        "All 40 unknowns are identifiable locally. Whether other values give the same outputs "
        "was not decided within the limit."
    )
    assert (
        found.sureness
        == "Local identifiability of all unknowns is proved (full rank modulo a prime)."
    )


def test_without_any_time_there_is_no_remark_on_the_unknowns() -> None:
    found = odefit.identifiability(cascade(10), time_limit=0.0)
    assert set(statuses(found).values()) == {"not decided within the limit"}
    assert list(found.lines()) == ["Nothing was decided within the limit."]
    assert found["kon1"].identifiable is None
    assert found.table["identifiable"].isna().all()


def test_findings_of_low_derivatives_are_reported_without_time_for_higher_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for checks in range(100, 1000, 20):
        interrupted(monkeypatch, checks)
        found = odefit.identifiability(cascade(10))
        if found.named("locally") and found.named("undecided"):
            break
    known, left = len(found.named("locally")), len(found.named("undecided"))
    assert known + left == 40
    assert found.sentence == (
        f"Of 40 unknowns, {known} are identifiable locally and {left} are not decided within the "
        "limit: higher derivatives may determine them."
    )
    assert "is proved (ranks modulo a prime)" in found.sureness


@pytest.mark.parametrize(
    "checks",
    [
        *(3, 100, 3000),
        *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 10, 30, 300, 1000, 10000)),
    ],
)
@pytest.mark.parametrize(
    ("ode", "observables"),
    [
        ({"x": "-a*b*x + c*y^2", "y": "-c*y + d"}, {"o": "x"}),
        ({"x": "-a^2*x/(b + x)*exp(-0.1*t)", "y": "a^2*x/(b + x) - c*d*y"}, {"o": "y"}),
    ],
)
def test_a_time_limit_at_any_moment_gives_no_wrong_verdict(
    ode: dict[str, str],
    observables: dict[str, str],
    checks: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = problem(ode, observables, ["a", "b", "c", "d"])
    full = odefit.identifiability(model)
    interrupted(monkeypatch, checks)
    found = odefit.identifiability(model)
    for unknown in found.unknowns:
        if unknown.status == "locally" and unknown.values is None:
            assert full[unknown.key].identifiable
        elif unknown.status != "undecided":
            assert unknown == full[unknown.key]


@pytest.mark.slow
def test_unknowns_in_very_high_derivatives_are_not_called_undetermined() -> None:
    """Around zeros the signal arrives late: the rank rises up to derivative 88 of 40 unknowns."""
    ode = {"x1": "k1*exp(-0.1*t)*(1 - x1) - 0.3*x1"}
    rates = ["k1"]
    for i in range(2, 31):
        half = "0.5"
        if i % 3 == 2:
            half = f"K{i}"
            rates.append(half)
        ode[f"x{i}"] = f"k{i}*x{i - 1}*(1 - x{i})/({half} + 1 - x{i}) - 0.3*x{i}"
        rates.append(f"k{i}")
    outputs = {f"y{i}": f"x{i}" for i in (1, 5, 10, 15, 20, 25, 30)}
    chain = problem(ode, outputs, rates, dict.fromkeys(ode, 0.0))
    found = odefit.identifiability(chain, count=False, time_limit=None)
    assert found.finding == "All 40 unknowns are identifiable locally."
    assert found.orders["data"]["y30"] > 72


FIVE_STATES = {
    "N": "-1.5*mN*N - 0.036*dNE*P*N",
    "E": "58.2*dNE*P*N - 1.18*dEL*E - 0.000432*mEE*E^2 + 2.56*rE*P*E",
    "S": "1.18*dEL*E - 0.05*dLM*S - 7.2e-7*mLE*E*S - 0.00015*mLL*S^2",
    "M": "0.05*dLM*S",
    "P": "0.6*rP*P^2 - 0.11*mP*P - 3.6e-6*mPE*E*P - 0.00036*mPL*S*P",
}
"""A model of immune cells whose coefficients spread over ten decades."""


@pytest.mark.parametrize("initial", [{}, {"E": 0.0, "S": 0.0, "M": 0.0}, dict.fromkeys("NESMP", 1)])
def test_coefficients_over_ten_decades_do_not_hide_that_there_is_one_solution(
    initial: dict[str, float],
) -> None:
    rates = "mN dNE dEL mEE rE dLM mLE mLL rP mP mPE mPL".split()
    outputs = {"n": "16180*N", "e": "10*E", "l": "10*S + 10*M", "p": "2*P"}
    found = odefit.identifiability(problem(FIVE_STATES, outputs, rates, initial))
    count = 12 + 5 - len(initial)
    assert found.sentence == (
        f"All {count} unknowns are identifiable globally. No other values give the same outputs."
    )
    assert "The count is exact, by a Groebner basis" in found.sureness


def test_a_product_is_reported_with_the_unknowns_to_fix() -> None:
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
        "dose": "not examined: acts only after the first event",
        "s": "not examined: acts only on the noise",
    }
    assert found["s"].identifiable is None
    assert any("before the first event" in r for r in found.remarks)
    assert found.sentence.startswith("The one unknown is identifiable globally.")


def test_an_event_may_determine_unknowns_that_earlier_data_do_not() -> None:
    """Only the product of a and b acts before the event, which tells a."""
    data = {"t": TIMES, "y": np.cos(TIMES)}
    found = odefit.identifiability(
        Problem(
            Model(ode={"x": "-a*b*x"}, observables={"y": "x"}),
            parameters={"a": {}, "b": {}},
            initial={"x": {}},
            experiments=[Experiment("r", data, t0=0.0, events=[Event((0.5,), {"x": "a*x"})])],
        )
    )
    assert statuses(found) == {
        "a": "not examined: not determined before the first event",
        "b": "not examined: not determined before the first event",
        "x": "globally",
    }
    assert found["a"].identifiable is None
    assert found.combinations == ("a*b",)


def test_an_experiment_that_repeats_another_is_examined_once() -> None:
    data = {"t": TIMES, "y": np.cos(TIMES)}
    doses = (1.0, 2.0, 1.0, 1.0)
    experiments = [
        Experiment(f"r{i}", data, t0=0.0, initial={"x": dose}) for i, dose in enumerate(doses)
    ]
    model = Model(ode={"x": "-V*x/(K + x)*exp(-0.1*t)"}, observables={"y": "x"})
    repeated = Problem(model, parameters={"V": {}, "K": {}}, experiments=experiments)
    system = DifferentiatedSystem(repeated, free_states=False, replicates=False)
    assert [e.condition.name for e in system.expansions] == ["r0", "r1"]
    found = odefit.identifiability(repeated)
    assert statuses(found) == {"V": "globally", "K": "globally"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "parameters", "expected"),
    [
        ("a*sqrt(x)", "a", {"a": "globally"}),
        ("a^2*sqrt(x)", "a", {"a": "locally, 2 values"}),
        ("a*x^n", "a n", {"a": "globally", "n": "globally"}),
        ("a*exp(-b*t)", "a b", {"a": "globally", "b": "globally"}),
        ("a*exp(-b^2*t)", "a b", {"a": "globally", "b": "locally, 2 values"}),
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
def test_functions_that_are_not_rational_have_a_status(
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


def test_several_experiments_are_analysed_together() -> None:
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


def test_a_kink_is_the_reason_for_a_missing_analysis() -> None:
    found = odefit.identifiability(problem({"x": "-k*abs(x)"}, {"y": "x"}, ["k"]))
    assert found.sentence.startswith("No structural analysis: abs(...) has a kink")
    assert str(found).count("\n") == 1
    assert len(found.table) == 0


def test_outputs_without_unknowns_have_a_sentence() -> None:
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
def test_solutions_of_library_problems_are_counted(name: str) -> None:
    found = odefit.identifiability(odefit.library.load(name))
    assert found.solutions == LIBRARY[name]
    assert not found.named("in combination", "no effect")


def test_a_seed_repeats_it() -> None:
    model = odefit.library.load("rational-lotka-volterra")
    first, second = (odefit.identifiability(model, seed=7) for _ in range(2))
    assert (first.unknowns, first.doubt) == (second.unknowns, second.doubt)


def test_equations_alone_are_examined_as_if_all_else_were_unknown() -> None:
    model = odefit.Model(
        ode={"x": "-k*x + u", "y": "k*x - (a + b)*y"},
        observables={"z": "s*y"},
        inputs={"u": "linear"},
    )
    found = odefit.identifiability(model)
    assert {u.key for u in found.unknowns} == {"k", "a", "b", "s", "x", "y"}
    assert {k: found[k].status for k in ("k", "a", "b")} == {
        "k": "locally",  # it can change places with a + b
        "a": "in combination",
        "b": "in combination",
    }


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["exp(x)", "sin(x)", "-tanh(x)", "sqrt(x)", "x/(1 + x)"])
@pytest.mark.parametrize("other", [False, True])
def test_a_parameter_that_is_not_used_has_no_effect(rate: str, other: bool) -> None:
    more, names = (" + a*x", ["k", "a"]) if other else ("", ["k"])
    found = odefit.identifiability(problem({"x": rate + more}, {"y": "x"}, names, {"x": 2.0}))
    assert found["k"].status == "no effect"
    assert not other or found["a"].status == "globally"
    assert "Those that are not identifiable are in no equation of the outputs." in found.sureness
    assert ("Local identifiability of the others is proved" in found.sureness) == other
    assert "Local identifiability of all" not in found.sureness


@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=() if s < 20 else pytest.mark.slow) for s in range(40)],
)
def test_random_right_models_are_examined_without_an_exception(seed: int) -> None:
    model = random_problem(seed)
    found = odefit.identifiability(model, time_limit=2.0)
    assert len(found.unknowns) == (0 if found.reason else len(model.unknowns))
    assert str(found)
    same_outputs(model, np.full(len(model.unknowns), 0.7), 2.5e7)


@pytest.mark.slow
@pytest.mark.parametrize("right_hand_side", ["exp(x)", "sin(x)", "tanh(x) + p", "-p*x + k*0"])
def test_an_unused_parameter_has_no_effect_whatever_the_equations(right_hand_side: str) -> None:
    """The case check-unused-parameter."""
    names = ["k", "p"] if "p" in right_hand_side.replace("exp", "") else ["k"]
    problem = odefit.Problem(
        odefit.Model(ode={"x": right_hand_side}),
        {"t": [0.0, 1.0, 2.0, 4.0], "x": [10.1, 6.0, 3.7, 1.3]},
        dict.fromkeys(names, (0.0, 10.0)),
        {"x": 10.0},
    )
    found = {u.key: u.status for u in odefit.identifiability(problem).unknowns}
    assert found.pop("k") == "no effect"
    assert set(found.values()) <= {"globally", "locally"}
