"""Arithmetic of Taylor models against exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram, TaylorEvaluation
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.structure.series.tape import NotRationalError, Tape, Term
from tests.enclosure.containment import exact

VARIABLES = 3
"""Of the tape: the first two depend on time."""

BOXES = 3


def random_model(
    rng: np.random.Generator, monomials: Monomials, length: int, kind: str
) -> TaylorModel:
    """Coefficients of several sizes; a remainder or none; small supports now and then."""
    c = rng.normal(size=(len(monomials), length, BOXES))
    c *= 10.0 ** rng.integers(-4, 1, c.shape)
    c[0, 0] += rng.choice([-3.0, -1.0, 0.1, 1.0, 2.0, 5.0], size=BOXES)
    support = None
    if kind != "dense":
        chosen = {0, *rng.integers(0, len(monomials), 2).tolist()}
        support = frozenset(chosen)
        c[[k for k in range(len(c)) if k not in chosen]] = 0.0
    remainder = np.zeros(BOXES) if kind == "exact" else np.abs(rng.normal(size=BOXES)) * 1e-3
    return TaylorModel(monomials, c, support, remainder)


def swept(
    tape: Tape, term: Term, monomials: Monomials, length: int, known: dict[int, TaylorModel]
) -> TaylorModel:
    """Evaluated over a step."""
    program = TapeProgram(tape, [term], [0, 1])
    values = {**program.constants(monomials, {2: known[2]}, BOXES), 0: known[0], 1: known[1]}
    evaluation = TaylorEvaluation(program, monomials, length, values)
    with np.errstate(all="ignore"):
        for k in range(length):
            evaluation.compute_order(k)
        evaluation.bound()
    return evaluation.values[term.index]


def value(monomials: Monomials, c: Array, d: list[Fraction], s: Fraction) -> Fraction:
    """Of coefficients of shape (M, k)."""
    return sum(
        (exact(monomials, c[:, k], d) * s**k for k in range(c.shape[1])),
        Fraction(0),
    )


def evaluated(tape: Tape, index: int, variables: list[Fraction]) -> Fraction | None:
    """An entry at exact numbers; None where something is divided by zero."""
    if index in tape.numbers:
        return tape.numbers[index]
    if index in tape.names:
        return variables[index]
    operation, i, j = tape.entries[index]
    a, b = evaluated(tape, i, variables), evaluated(tape, j, variables)
    if a is None or b is None or (operation == "/" and b == 0):
        return None
    return {"+": a + b, "-": a - b, "*": a * b}[operation] if operation != "/" else a / b


def expressions() -> st.SearchStrategy[Callable[[Tape], Term]]:
    """Expressions over the variables, as functions of the tape."""
    leaves = st.one_of(
        st.integers(0, VARIABLES - 1).map(lambda i: lambda tape: tape.variable(f"x{i}")),
        st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(1, 10), Fraction(-7, 5)]).map(
            lambda q: lambda tape: tape.number(q)
        ),
    )

    def joined(
        parts: st.SearchStrategy[Callable[[Tape], Term]],
    ) -> st.SearchStrategy[Callable[[Tape], Term]]:
        return st.tuples(st.sampled_from("+-**/"), parts, parts).map(
            lambda given: lambda tape: tape.apply(given[0], given[1](tape), given[2](tape))
        )

    return st.recursive(leaves, joined, max_leaves=6)


anything = given(
    expressions(),
    st.integers(0, 3),
    st.integers(1, 4),
    st.sampled_from(["dense", "sparse", "exact"]),
    st.integers(0, 10**6),
)


@pytest.mark.slow
@settings(max_examples=70, deadline=None)
@anything
def test_every_true_value_is_inside(
    build: Callable[[Tape], Term], degree: int, length: int, kind: str, seed: int
) -> None:
    holds(build, degree, length, kind, seed)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@anything
def test_every_true_value_of_many_is_inside(
    build: Callable[[Tape], Term], degree: int, length: int, kind: str, seed: int
) -> None:
    holds(build, degree, length, kind, seed)


def holds(build: Callable[[Tape], Term], degree: int, length: int, kind: str, seed: int) -> None:
    tape = Tape()
    for i in range(VARIABLES):
        tape.variable(f"x{i}")
    try:
        term = build(tape)
    except NotRationalError:
        return
    rng = np.random.default_rng(seed)
    monomials = Monomials.of(2, degree)
    known = {i: random_model(rng, monomials, length if i < 2 else 1, kind) for i in range(3)}
    found = swept(tape, term, monomials, length, known)
    assert not np.isnan(found.remainder).any()
    assert np.isfinite(found.c).all()
    if found.support is not None:
        outside = [k for k in range(len(monomials)) if k not in found.support]
        assert not found.c[outside].any()
    corners = [Fraction(-1), Fraction(0), Fraction(1), Fraction(-3, 8), Fraction(5, 16)]
    for box in range(BOXES):
        if np.isinf(found.remainder[box]):
            continue
        for _ in range(4):
            d = [corners[k] for k in rng.integers(0, 5, 2)]
            s = abs(corners[rng.integers(0, 5)])
            variables = []
            for i in range(3):
                off = Fraction(float(known[i].remainder[box])) * corners[rng.integers(0, 5)]
                variables.append(value(monomials, known[i].c[:, :, box], d, s) + off)
            true = evaluated(tape, term.index, variables)
            assert true is not None, "a finite bound although a divisor may be zero"
            claimed = value(monomials, found.c[:, :, box], d, s)
            assert abs(true - claimed) <= Fraction(float(found.remainder[box]))
            assert abs(true) <= Fraction(float(found.magnitude()[box]))


def still(
    build: Callable[[Term, Term], Term], a: TaylorModel, b: TaylorModel, degree: int = 2
) -> TaylorModel:
    tape = Tape()
    term = build(tape.variable("a"), tape.variable("b"))
    monomials = Monomials.of(1, degree)
    with np.errstate(all="ignore"):
        return TapeProgram(tape, [term]).constants(monomials, {0: a, 1: b}, len(a.remainder))[
            term.index
        ]


def model(*c: float, remainder: float = 0.0) -> TaylorModel:
    """In one variable, of degree 2, in one box."""
    array = np.zeros((3, 1, 1))
    array[: len(c), 0, 0] = c
    return TaylorModel(Monomials.of(1, 2), array, None, np.array([remainder]))


def test_a_square_encloses_the_terms_that_it_drops() -> None:
    found = still(lambda a, _: a * a, model(0.0, 1.0, 1.0), model())
    assert found.c[:, 0, 0].tolist() == [0.0, 0.0, 1.0]
    assert 3.0 <= found.remainder[0] <= 3.0 * (1 + 1e-9)


def test_products_of_exact_numbers_are_rounded_at_most() -> None:
    found = still(lambda a, b: a * b, model(0.1), model(0.3))
    assert 0.0 < found.remainder[0] <= 1e-15


def test_a_divisor_that_may_be_zero() -> None:
    found = still(lambda a, b: a / b, model(1.0), model(0.5, 0.5))
    assert np.isinf(found.remainder[0])


def test_a_divisor_that_its_remainder_makes_zero() -> None:
    found = still(lambda a, b: a / b, model(1.0), model(0.5, remainder=0.5))
    assert np.isinf(found.remainder[0])


def test_a_divisor_just_off_zero() -> None:
    found = still(lambda a, b: a / b, model(1.0), model(0.5, 0.49))
    assert np.isfinite(found.remainder[0])
    d = np.linspace(-1, 1, 101)
    polynomial = found.c[0, 0, 0] + found.c[1, 0, 0] * d + found.c[2, 0, 0] * d**2
    assert (np.abs(1 / (0.5 + 0.49 * d) - polynomial) <= found.remainder[0]).all()


@pytest.mark.parametrize("what", ["+", "-", "*", "/"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_operands_give_infinite_bounds(what: str, bad: float) -> None:
    def build(a: Term, b: Term) -> Term:
        return a.tape.apply(what, a, b)  # type: ignore[arg-type]

    for pair in [(model(bad), model(2.0)), (model(2.0), model(1.0, bad))]:
        found = still(build, *pair)
        assert np.isinf(found.remainder[0])
        assert np.isfinite(found.c).all()
    if bad > 0:
        pairs = [(model(1.0, remainder=bad), model(2.0)), (model(2.0), model(1.0, remainder=bad))]
        assert all(np.isinf(still(build, *pair).remainder[0]) for pair in pairs)


def test_an_overflow_has_infinite_bounds() -> None:
    for build in (
        lambda a, b: a * b,
        lambda a, b: a * b - a * b * b,
        lambda a, b: a * a / (b * b),
    ):
        found = still(build, model(1e200, 1e200), model(1e200))
        assert np.isinf(found.remainder[0])
        assert np.isfinite(found.c).all()


def test_underflow_is_counted() -> None:
    found = still(lambda a, b: a * b, model(1e-200), model(1e-200))
    assert Fraction(1e-200) ** 2 <= Fraction(float(found.remainder[0]))
    loose = still(lambda a, b: a * b, model(0.0, remainder=1e-200), model(0.0, remainder=1e-200))
    assert loose.remainder[0] > 0
    quotient = still(lambda a, b: a / b, model(1e-200), model(1e200))
    assert quotient.remainder[0] > 0


def test_zero_times_an_unknown_is_zero() -> None:
    found = still(lambda a, b: a * b, model(0.0), model(1.0, remainder=np.inf))
    assert found.remainder[0] == 0.0


def test_a_small_number_times_an_unknown_is_unknown() -> None:
    found = still(lambda a, b: a * b, model(0.0, remainder=1e-300), model(1.0, remainder=np.inf))
    assert np.isinf(found.remainder[0])


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(10) ** -400, Fraction(10) ** 400])
def test_numbers_that_are_not_floats_are_read(exact: Fraction) -> None:
    found = TaylorModel.number(Monomials.of(1, 1), exact, 2)
    assert found.remainder[0] > 0
    if np.isfinite(found.remainder[0]):
        assert abs(exact - Fraction(float(found.c[0, 0, 0]))) <= Fraction(float(found.remainder[0]))


def test_numbers_of_binary_digits_are_exact() -> None:
    assert not TaylorModel.number(Monomials.of(1, 1), Fraction(1, 4), 2).remainder.any()


def test_boxes_do_not_mix() -> None:
    rng = np.random.default_rng(1)
    tape = Tape()
    x = [tape.variable(f"x{i}") for i in range(3)]
    term = (x[0] * x[1] + x[2]) / (x[2] * x[2] + tape.number(9)) - x[0]
    monomials = Monomials.of(2, 2)
    known = {i: random_model(rng, monomials, 3 if i < 2 else 1, "dense") for i in range(3)}
    together = swept(tape, term, monomials, 3, known)
    for box in range(BOXES):
        own = {i: m.take(np.full(BOXES, box)) for i, m in known.items()}
        alone = swept(tape, term, monomials, 3, own)
        np.testing.assert_array_equal(alone.c[:, :, 0], together.c[:, :, box])
        assert alone.remainder[0] == together.remainder[box]
