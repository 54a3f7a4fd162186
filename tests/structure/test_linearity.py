"""Which unknowns enter linearly: against SymPy's second derivatives, and by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sympy  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import BoolArray
from odefit.expressions.expressions import TIME
from odefit.problem.binding import bound_value
from odefit.problem.vector_field import VectorField
from odefit.structure.linearity import independent_set, interactions, linear_unknowns
from tests.structure.models import TIMES, problem


class SymPy:
    """Expressions of SymPy as an algebra."""

    def number(self, text: str) -> Any:
        return sympy.Rational(text)

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        names = {"min": "Min", "max": "Max", "abs": "Abs"}
        return getattr(sympy, names.get(function, function))(*arguments)


def right_hand_sides(of: Problem, number: int) -> list[tuple[Any, Any]]:
    """Initial value and rate of every state, the unknowns positive symbols u0, u1, ..."""
    condition, algebra = of.conditions[number], SymPy()
    unknowns = symbols(of)
    field = VectorField.of(of.model, of.conditions)
    names = [TIME, *of.model.states, *of.model.inputs]
    values = {name: sympy.Symbol(f"v_{name}", positive=True) for name in names}
    for name, bound in condition.scalars.items():
        values[name] = bound_value(bound, condition.scalars, unknowns, algebra)
    starts = [
        bound_value(condition.initial[s], condition.scalars, unknowns, algebra)
        for s in of.model.states
    ]
    return list(zip(starts, field.rhs(values, algebra), strict=True))


def symbols(of: Problem) -> list[Any]:
    return [sympy.Symbol(f"u{k}", positive=True) for k in range(len(of.unknowns))]


def by_sympy(of: Problem) -> tuple[BoolArray, BoolArray]:
    """What :func:`interactions` finds, exactly."""
    unknowns, n = symbols(of), len(of.unknowns)
    acts = np.zeros((len(of.conditions), len(of.model.states), n), dtype=bool)
    together = np.zeros((n, n), dtype=bool)
    for number in range(len(of.conditions)):
        for state, pair in enumerate(right_hand_sides(of, number)):
            for f in pair:
                inside = [k for k, u in enumerate(unknowns) if u in sympy.sympify(f).free_symbols]
                for k in inside:
                    first = sympy.diff(f, unknowns[k])
                    acts[number, state, k] |= not is_zero(first)
                    for j in inside:
                        if j <= k and not together[k, j]:
                            second = sympy.diff(first, unknowns[j])
                            together[k, j] = together[j, k] = not is_zero(second)
    return acts, together


def is_zero(f: Any) -> bool:
    """Thirty digits at one point show what is not; the rest is algebra."""
    at = {
        s: sympy.Rational(7 + 3 * i, 11 + i) for i, s in enumerate(sorted(f.free_symbols, key=str))
    }
    value = f.subs(at).evalf(30, maxn=60) if at else f
    if value.is_number and abs(value) > 1e-20:
        return False
    return bool(sympy.simplify(f) == 0)


def checked(of: Problem) -> None:
    acts, together = interactions(of)
    exact_acts, exact_together = by_sympy(of)
    assert np.array_equal(acts, exact_acts)
    assert np.array_equal(together, exact_together)


def names(of: Problem) -> str:
    return " ".join(of.keys[k] for k in linear_unknowns(of))


# The library ------------------------------------------------------------------------------------

LARGE = {"hiv-proteinase"}
"""SymPy takes long."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n in {"fitzhugh-nagumo-v", "gma"} else ())
        for n in sorted(library.names())
        if n not in LARGE
    ],
)
def test_second_derivatives_of_the_library_are_those_of_sympy(name: str) -> None:
    checked(library.load(name))


@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("seasonal-lotka-volterra", "alpha beta gamma delta"),
        ("gma", "gamma11 gamma12 gamma13 gamma22 gamma32"),
        ("fitzhugh-nagumo-separable", "a b"),
    ],
)
def test_the_papers_linear_parameters_are_found(name: str, linear: str) -> None:
    """Sections 3.1.2 to 3.1.4."""
    assert sorted(names(library.load(name)).split()) == sorted(linear.split())


def test_the_rate_and_the_initial_value_of_sir_are_linear_in_its_equations() -> None:
    """Section 3.1.1: beta is; S(0) is no longer where S has to be recovered from I."""
    assert names(library.load("sir")) == "beta S"


@pytest.mark.parametrize("name", sorted(library.names()))
def test_no_larger_set_is_linear(name: str) -> None:
    of = library.load(name)
    together = interactions(of)[1]
    able = [
        k
        for k, u in enumerate(of.unknowns)
        if u.kind != "noise" and u.parameter.scale != "log10" and not together[k, k]
    ]
    assert len(linear_unknowns(of)) == largest(able, together)


def largest(candidates: Sequence[int], together: BoolArray) -> int:
    """Size of a largest independent set, tried from the largest; those that are free are in."""
    free = [k for k in candidates if not together[k, list(candidates)].any()]
    rest = [k for k in candidates if k not in free]
    for size in range(len(rest), 0, -1):
        for chosen in itertools.combinations(rest, size):
            if not together[np.ix_(chosen, chosen)].any():
                return len(free) + size
    return len(free)


@given(st.integers(1, 9), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_independent_sets_are_largest(size: int, random: Any) -> None:
    together = np.zeros((size, size), dtype=bool)
    for i, j in itertools.combinations(range(size), 2):
        together[i, j] = together[j, i] = random.random() < 0.4
    found = independent_set(range(size), together)
    assert not together[np.ix_(found, found)].any()
    assert len(found) == largest(range(size), together)


def test_a_greedy_choice_among_many_unknowns_is_independent() -> None:
    """A cycle of 41: a largest set has 20."""
    together = np.zeros((41, 41), dtype=bool)
    for k in range(41):
        together[k, (k + 1) % 41] = together[(k + 1) % 41, k] = True
    found = independent_set(range(41), together)
    assert not together[np.ix_(found, found)].any()
    assert len(found) == 20


# Generated models -------------------------------------------------------------------------------

ATOMS = ("a", "b", "c", "x", "y", "2", "a^2", "exp(-b)", "1/(c + x)", "x^b", "y^2", "(a - c)", "0")

terms = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3).map("*".join)
rates = st.lists(terms, min_size=1, max_size=3).map(" + ".join)


@pytest.mark.slow
@given(rates, rates, st.sampled_from(["1", "a", "a*b", "c^2", "2*a + b"]))
@settings(max_examples=25, deadline=None)
def test_generated_models_are_seen_as_sympy_sees_them(x: str, y: str, start: str) -> None:
    model = Model(ode={"x": x, "y": y})
    data = {"t": TIMES, "x": np.cos(TIMES), "y": np.cos(TIMES)}
    used = model.parameters | ({"a", "b", "c"} & sympy_names(start))
    checked(Problem(model, data, {p: {} for p in used}, {"x": start, "y": {}}))


def sympy_names(text: str) -> frozenset[str]:
    return frozenset(str(s) for s in sympy.sympify(text).free_symbols)


# Where unknowns are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "linear"),
    [
        ("a*x + b", "a b x"),
        ("a*b*x", "a x"),
        ("a*x^b", "a x"),
        ("a*x/(b + x)", "a x"),
        ("(a - b)*x", "a b x"),
        ("(a - b)^2*x", "x"),
        ("a*x - a*x + b", "a b x"),
        ("log(exp(a))*x", "a x"),
        ("a*b*x + c*b", "a c x"),
    ],
)
def test_linear_parameters_of_small_models_are_found(rate: str, linear: str) -> None:
    parameters = [p for p in "abc" if p in rate.replace("exp", "").replace("log", "")]
    assert names(problem({"x": rate}, {"x": "x"}, parameters)) == linear


@pytest.mark.parametrize(
    "kink", ["abs(a)*x", "max(a*x - 50, 0)", "min(a, 7)*x", "max(x, a)", "piecewise(x, a < 50, 0)"]
)
def test_kinks_are_never_linear_however_far_away_they_are(kink: str) -> None:
    """Nothing at random points near one shows where abs(a) turns, or that max(.) is not zero."""
    of = problem({"x": f"{kink} + b"}, {"x": "x"}, ["a", "b"])
    assert names(of) == "b x"
    assert interactions(of)[0][0, 0].all()


def test_a_factor_of_a_kink_acts_although_nothing_shows_it() -> None:
    of = problem({"x": "b*max(a*x - 50, 0)"}, {"x": "x"}, ["a", "b"])
    acts, together = interactions(of)
    assert acts.all()
    assert together[of.keys.index("a"), of.keys.index("b")]


@pytest.mark.parametrize("rate", ["a*sqrt(x - 2)", "a*log(x - 1.6)", "a*sqrt(-x)", "a*asin(x)"])
def test_domains_of_functions_are_checked(rate: str) -> None:
    assert names(problem({"x": rate}, {"x": "x"}, ["a"])) == "a x"


def test_an_expression_defined_nowhere_counts_as_acting_and_nonlinear() -> None:
    of = problem({"x": "a*sqrt(-1 - x^2) + b", "y": "c*y"}, {"x": "x", "y": "y"}, ["a", "b", "c"])
    assert names(of) == "c x y"
    assert interactions(of)[0][0, 0, [of.keys.index("a"), of.keys.index("b")]].all()


def test_parameters_may_act_through_algebraic_variables() -> None:
    """z = k x is eliminated: a and k act on each other."""
    of = problem({"x": "-a*z + b"}, {"x": "x"}, ["a", "b", "k"], algebraic={"z": "2*z - k*x - 1"})
    checked(of)
    assert len(linear_unknowns(of)) == 3


def test_expressions_in_constants_and_initial_values_count() -> None:
    model = Model(ode={"x": "-rate*x + feed"}, constants={"rate": 1.0, "feed": 0.0})
    data = {"t": TIMES, "x": np.cos(TIMES)}
    experiments = [
        Experiment("A", data, constants={"rate": "a*b"}),
        Experiment("B", data, constants={"rate": "b", "feed": "c"}, initial={"x": "2*c"}),
    ]
    parameters: Mapping[str, Any] = {p: {} for p in "abc"}
    of = Problem(model, None, parameters, {"x": {}}, experiments=experiments)
    checked(of)
    assert "c" in names(of).split()
    assert len(names(of).split()) == 3


def test_parameters_of_an_experiment_act_there_alone() -> None:
    data = {"t": TIMES, "x": np.cos(TIMES)}
    of = Problem(
        Model(ode={"x": "-k*x*j"}),
        None,
        {"k": {"per_experiment": True}, "j": {}},
        {"x": {}},
        experiments=[Experiment("A", data), Experiment("B", data)],
    )
    checked(of)
    assert names(of) == "k[A] k[B] x"


def test_amounts_that_events_give_to_constants_count() -> None:
    """After the event the rate is k times the unknown dose."""
    model = Model(ode={"x": "-k*x*u"}, constants={"u": 1.0})
    data = {"t": TIMES, "x": np.cos(TIMES)}
    experiments = [Experiment("A", data, events=[Event((0.5,), {"u": "dose"})])]
    of = Problem(model, None, {"k": {}, "dose": {}}, {"x": {}}, experiments=experiments)
    acts, together = interactions(of)
    assert acts[0, 0].all()
    assert together[of.keys.index("k"), of.keys.index("dose")]
    assert len(linear_unknowns(of)) == 2


def test_interactions_are_cached_by_model() -> None:
    """Interactions are remembered by what they depend on."""
    one, other = (problem({"x": r}, {"x": "x"}, ["a", "b"]) for r in ("a*x + b", "a*b*x"))
    assert interactions(one)[0] is interactions(one)[0]
    assert names(one) == "a b x"
    assert len(names(other).split()) == 2


def test_the_user_s_log_scale_keeps_an_unknown_out() -> None:
    of = problem({"x": "a*x + b"}, {"x": "x"}, {"a": {"scale": "log10"}, "b": {}})
    assert names(of) == "b x"


def pairs(of: Problem) -> Iterator[tuple[str, str]]:
    """Unknowns that act on each other."""
    together = interactions(of)[1]
    yield from ((of.keys[i], of.keys[j]) for i, j in np.argwhere(np.triu(together)))


def test_inputs_and_time_are_not_unknowns() -> None:
    of = problem({"x": "a*u*sin(b*t) - c*x"}, {"x": "x"}, ["a", "b", "c"], inputs=["u"])
    checked(of)
    assert set(pairs(of)) == {("a", "b"), ("b", "b")}
