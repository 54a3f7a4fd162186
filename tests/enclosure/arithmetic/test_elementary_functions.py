"""Elementary functions of Taylor models against fifty digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram, TaylorEvaluation
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.system import FunctionRewriting
from odefit.structure.series.tape import Recording, Tape, Term
from tests.enclosure.containment import exact

DIGITS = 50

Expression = Callable[[Any, Any, Any], Any]
"""Of an algebra and two variables; over terms of a tape and over numbers of many digits."""


class Exact:
    """The algebra of numbers of many digits; None where something is not defined."""

    def call(self, function: str, arguments: list[Any]) -> Any:
        made = {"log10": lambda x: mpmath.log(x) / mpmath.log(10)}.get(function)
        return (made or getattr(mpmath, function))(*arguments)

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def number(self, text: str) -> Any:
        q = Fraction(text)
        return mpmath.mpf(q.numerator) / q.denominator


def single(name: str) -> Expression:
    return lambda a, x, y: a.call(name, [x])


def power(text: str) -> Expression:
    return lambda a, x, y: a.power(x, a.number(text))


FUNCTIONS: dict[str, tuple[Expression, list[float]]] = {
    "exp": (single("exp"), [-40.0, -1.0, 0.0, 2.0, 30.0]),
    "log": (single("log"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "log10": (single("log10"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "sqrt": (single("sqrt"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "sin": (single("sin"), [-3.0, 0.0, 1.6, 22.0, 1e4]),
    "cos": (single("cos"), [-3.0, 0.0, 1.6, 22.0, 1e4]),
    "tan": (single("tan"), [-3.0, 0.0, 1.1, 22.5]),
    "asin": (single("asin"), [-0.9, 0.0, 0.3, 0.99]),
    "acos": (single("acos"), [-0.9, 0.0, 0.3, 0.99]),
    "atan": (single("atan"), [-30.0, -0.9, 0.0, 0.3, 2.0]),
    "sinh": (single("sinh"), [-3.0, 0.0, 1.0, 20.0]),
    "cosh": (single("cosh"), [-3.0, 0.0, 1.0, 20.0]),
    "tanh": (single("tanh"), [-3.0, 0.0, 0.4, 8.0]),
    "x^0.1": (power("0.1"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "x^2.5": (power("2.5"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "x^-0.7": (power("-0.7"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "x^-3.3": (power("-3.3"), [1e-3, 0.4, 1.0, 5.0, 1e6]),
    "x^40.5": (power("40.5"), [0.4, 1.0, 5.0]),
    "x^100.5": (power("100.5"), [0.4, 1.0, 1.5]),
    "x^y": (lambda a, x, y: a.power(x, y), [1e-3, 0.4, 1.0, 5.0]),
    "2^x": (lambda a, x, y: a.power(a.number("2"), x), [-3.0, 0.4, 5.0]),
    "Hill": (
        lambda a, x, y: a.power(x, y) / (a.power(a.number("1.7"), y) + a.power(x, y)),
        [0.4, 1.0, 5.0],
    ),
    "sin cos": (lambda a, x, y: a.call("sin", [x]) * a.call("cos", [x]) + y, [0.0, 1.0]),
    "bell": (lambda a, x, y: a.call("exp", [-(x * x) / y]), [0.0, 0.5]),
    "nested": (lambda a, x, y: a.call("sqrt", [a.call("exp", [a.call("sin", [x])])]), [0.5]),
}
"""Functions and middles of arguments. The other variable is between 0 and 4."""


def recorded(expression: Expression) -> tuple[Tape, Term]:
    tape = Tape()
    x, y = tape.variable("x"), tape.variable("y")
    return tape, expression(Recording(tape, FunctionRewriting(tape)), x, y)


def enclosed(
    expression: Expression, monomials: Monomials, x: TaylorModel, y: TaylorModel, time: bool = True
) -> TaylorModel:
    """With the first variable changing, or at one time."""
    tape, term = recorded(expression)
    boxes, length = len(x.remainder), x.c.shape[1]
    with np.errstate(all="ignore"):
        if not time:
            return TapeProgram(tape, [term]).evaluate(monomials, {0: x, 1: y}, boxes)[term.index]
        program = TapeProgram(tape, [term], [0])
        values = {**program.constants(monomials, {1: y}, boxes), 0: x}
        evaluation = TaylorEvaluation(program, monomials, length, values)
        for k in range(length):
            evaluation.compute_order(k)
        evaluation.bound()
    return evaluation.values[term.index]


def argument(
    rng: np.random.Generator, monomials: Monomials, length: int, middle: Array, widths: Array
) -> TaylorModel:
    """Around a middle, with coefficients that add up to at most a width."""
    c = rng.normal(size=(len(monomials), length, len(middle)))
    c *= 10.0 ** rng.integers(-3, 1, c.shape)
    c[0, 0] = 0.0
    c *= rng.uniform(0.3, 1.0, len(middle)) * widths / (np.abs(c).sum((0, 1)) + 1e-300)
    c[0, 0] = middle
    remainder = np.where(rng.uniform(size=len(middle)) < 0.5, 0.0, 0.2 * widths)
    return TaylorModel(monomials, c, None, remainder)


def digits(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def evaluated(monomials: Monomials, c: Array, d: list[Fraction], s: Fraction) -> Fraction:
    return sum((exact(monomials, c[:, k], d) * s**k for k in range(c.shape[1])), Fraction(0))


def contained(
    expression: Expression,
    monomials: Monomials,
    x: TaylorModel,
    y: TaylorModel,
    found: TaylorModel,
    rng: np.random.Generator,
    points: int = 5,
) -> int:
    """How many true values were compared; each has to be inside."""
    ends = [Fraction(-1), Fraction(0), Fraction(1), Fraction(-3, 8), Fraction(5, 16)]
    compared = 0
    assert np.isfinite(found.c).all()
    assert not np.isnan(found.remainder).any()
    assert not np.isnan(found.truncation).any()
    assert (found.truncation >= 0).all()
    assert (found.truncation <= found.remainder).all()
    with mpmath.workdps(DIGITS):
        for box in np.flatnonzero(np.isfinite(found.remainder)):
            for n in range(points):
                d = [ends[k] for k in rng.integers(0, 5, monomials.variables)]
                if n < 4:  # where most deviates
                    d = [Fraction(v) for v in rng.choice([-1, 1], monomials.variables).tolist()]
                s = Fraction(1) if n % 2 else abs(ends[rng.integers(0, 5)])
                true = []
                for m in (x, y):
                    off = Fraction(float(m.remainder[box])) * ends[rng.integers(0, 5)]
                    true.append(digits(evaluated(monomials, m.c[:, :, box], d, s) + off))
                value = expression(Exact(), *true)
                assert mpmath.im(value) == 0, "a finite bound where nothing is defined"
                claimed = digits(evaluated(monomials, found.c[:, :, box], d, s))
                bound = mpmath.mpf(float(found.remainder[box]))
                assert abs(value - claimed) <= bound, (box, d, s, value, claimed, bound)
                compared += 1
    return compared


WIDTHS = [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 4.0]
"""Of the argument, relative to its middle where that is not small."""


@pytest.mark.parametrize(
    ("degree", "length"), [pytest.param(3, 0, marks=pytest.mark.slow), (0, 3), (2, 4)]
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_true_value_is_inside(name: str, degree: int, length: int) -> None:
    """With a length of 0, at one time."""
    expression, middles = FUNCTIONS[name]
    monomials = Monomials.of(2, degree)
    rng = np.random.default_rng([degree, length, len(name)])
    middle = np.repeat(middles, len(WIDTHS))
    scale = np.where(middle > 0, np.minimum(middle, 2.0), 1.0)
    widths = np.tile(WIDTHS, len(middles)) * scale
    x = argument(rng, monomials, max(length, 1), middle, widths)
    near = rng.choice([2.0, 0.4, 2.7, 1.1], len(middle))
    y = argument(rng, monomials, 1, near, widths * 0.2)
    found = enclosed(expression, monomials, x, y, time=length > 0)
    small = np.tile(WIDTHS, len(middles)) <= 1e-3
    assert np.isfinite(found.remainder[small]).all()
    assert contained(expression, monomials, x, y, found, rng) > 5 * len(middles)


ONE = Monomials.of(1, 3)


OTHER = 2.25


def line(middle: float, width: float, degree: int = 3, remainder: float = 0.0) -> TaylorModel:
    """An argument in one box."""
    found = TaylorModel.variable(Monomials.of(1, degree), 0, np.array([middle]), np.array([width]))
    found.remainder = found.remainder + remainder
    return found


def of(name: str, x: TaylorModel) -> TaylorModel:
    monomials = Monomials.of(1, len(x.c) - 1)
    other = TaylorModel.constant(monomials, np.full(1, OTHER))
    return enclosed(FUNCTIONS[name][0], monomials, x, other, time=False)


LOOSE = {"tan": 4.0, "sinh": 4.0, "cosh": 5.0, "tanh": 30.0, "atan": 9.0, "Hill": 60.0}
"""Largest remainders, over the largest errors; that of others is hardly larger than one."""


@pytest.mark.slow
@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("sin cos", "bell", "nested")])
def test_remainders_are_hardly_larger_than_errors(name: str, degree: int) -> None:
    """So they shrink with the width to the power of degree + 1, as errors do."""
    middle = 0.7
    sizes = []
    for width in (1e-2, 1e-3):
        width *= 0.1 if "0.5" in name else 1.0
        found = of(name, line(middle, width, degree))
        sizes.append(float(found.remainder[0]))
        largest = 0.0
        with mpmath.workdps(30):
            for v in np.linspace(-1, 1, 41).tolist():
                true = FUNCTIONS[name][0](Exact(), middle + mpmath.mpf(v) * width, OTHER)
                powers = enumerate(found.c[:, 0, 0].tolist())
                claimed = sum(c * mpmath.mpf(v) ** k for k, c in powers)
                largest = max(largest, float(abs(true - claimed)))
        rounding = 1e-12 * (1 + abs(found.c[0, 0, 0]))
        assert largest <= sizes[-1] <= LOOSE.get(name, 1.3) * largest + rounding
    assert sizes[1] <= 1.1 * 0.1 ** (degree + 1) * sizes[0] + rounding


DOMAINS = {
    "log": [(1.0, 1.0), (1.0, 2.0), (-1.0, 0.1), (0.0, 0.0)],
    "sqrt": [(1.0, 1.0), (1.0, 2.0), (-1.0, 0.1), (0.0, 0.0)],
    "x^-0.7": [(1.0, 1.0), (-1.0, 0.0)],
    "x^y": [(1.0, 1.0), (-1.0, 0.0), (0.0, 0.0)],
    "asin": [(0.9, 0.11), (-1.5, 0.1), (1.1, 0.0)],
    "acos": [(0.9, 0.11), (-1.5, 0.1), (1.1, 0.0)],
    "tan": [(1.5, 0.2)],
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("degree", [0, 2])
def test_a_function_that_may_be_undefined_has_infinite_bounds(name: str, degree: int) -> None:
    for middle, width in DOMAINS[name]:
        for argument in (line(middle, width, degree), line(middle, 0.0, degree, width)):
            found = of(name, argument)
            assert np.isinf(found.remainder[0])
            assert np.isinf(found.truncation[0])
            assert np.isfinite(found.c).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unbounded_arguments_give_infinite_bounds(name: str) -> None:
    for bad in (np.inf, -np.inf, np.nan):
        for argument in (line(bad, 0.1), line(0.7, bad), line(0.7, 0.1, remainder=abs(bad))):
            found = of(name, argument)
            assert np.isinf(found.remainder[0])
            assert np.isfinite(found.c).all()


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "tanh", "sin", "cos", "atan", "2^x"])
def test_huge_arguments_are_enclosed(name: str) -> None:
    rng = np.random.default_rng(0)
    expression, other = FUNCTIONS[name][0], TaylorModel.constant(ONE, np.full(1, OTHER))
    for middle, width in product([-1e308, -800.0, 800.0, 1e5, 1e308], [0.0, 1e-3, 1.0]):
        x = line(middle, width)
        found = of(name, x)
        if abs(middle) < 1e6:
            contained(expression, ONE, x, other, found, rng, 4)
        if name in ("sin", "cos"):
            assert found.remainder[0] <= 4.0
        if name == "exp" and middle < 0:
            assert 0 < found.remainder[0] < 1e-290


@pytest.mark.parametrize(
    "name", ["exp", "sqrt", "x^2.5", "log", "atan", "tanh", "sin", "cos", "asin"]
)
def test_wide_boxes_are_as_good_as_intervals(name: str) -> None:
    """Polynomials may be of no use there; a range still is."""
    for middle, width in ((3.0, 2.9), (0.0, 8.0), (0.5, 0.45), (0.0, 0.999)):
        domain = (
            {"sqrt": 0.0, "x^2.5": 0.0, "log": 0.0}.get(name, -np.inf),
            (1.0 if name == "asin" else np.inf),
        )
        if not domain[0] < middle - width < middle + width < domain[1]:
            continue
        found = of(name, line(middle, 0.0, remainder=width))
        with mpmath.workdps(20):
            points = [mpmath.mpf(middle) + width * k / 200 for k in range(-200, 201)]
            values = [FUNCTIONS[name][0](Exact(), p, OTHER) for p in points]
            farthest = float(max(abs(v - found.c[0, 0, 0]) for v in values))
        best = 1.0 + abs(found.c[0, 0, 0]) if name in ("sin", "cos") else farthest
        assert farthest <= found.remainder[0] <= best * (1 + 1e-8) + 1e-12


def test_shorter_steps_lower_the_truncation_in_time() -> None:
    """All of it, if nothing depends on the box; nothing, if nothing depends on time."""
    for name in ("exp", "sqrt", "x^2.5", "log", "atan", "tanh", "sin"):
        other = TaylorModel.constant(ONE, np.full(2, OTHER))
        c = np.zeros((4, 3, 2))
        c[0, 0], c[0, 1] = 0.7, (0.02, 0.002)
        x = TaylorModel(ONE, c)
        found = enclosed(FUNCTIONS[name][0], ONE, x, other)
        assert 0.99 * found.remainder[0] < found.truncation[0] <= found.remainder[0]
        assert found.truncation[0] / found.truncation[1] == pytest.approx(1e3, rel=0.7)
        c = np.zeros((4, 3, 2))
        c[0, 0], c[1, 0] = 0.7, 0.2
        found = enclosed(FUNCTIONS[name][0], ONE, TaylorModel(ONE, c), other)
        assert (found.truncation == 0).all()


@pytest.mark.parametrize("name", ["exp", "sqrt", "x^2.5", "log", "atan", "tanh", "sin", "asin"])
def test_truncation_of_the_argument_is_truncation_of_the_value(name: str) -> None:
    """An argument that is known but for truncation in time has a value that is, too."""
    x = line(0.4, 0.0, remainder=0.3)
    found = of(name, TaylorModel(x.monomials, x.c, x.support, x.remainder, x.remainder))
    assert found.truncation[0] == pytest.approx(found.remainder[0], rel=1e-9)


def test_sine_and_cosine_share_their_coefficients() -> None:
    tape = Tape()
    x = tape.variable("x")
    functions = FunctionRewriting(tape)
    terms = [functions(name, [x]) for name in ("sin", "cos")]
    model = line(0.7, 0.1)
    both = TapeProgram(tape, terms).evaluate(ONE, {0: model}, 1)
    for term in terms:
        alone = TapeProgram(tape, [term]).evaluate(ONE, {0: model}, 1)[term.index]
        np.testing.assert_array_equal(alone.c, both[term.index].c)
        np.testing.assert_array_equal(alone.remainder, both[term.index].remainder)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_boxes_do_not_mix(name: str) -> None:
    rng = np.random.default_rng(3)
    monomials = Monomials.of(2, 2)
    middle = np.array([0.5, 0.8, 0.3, 0.9])
    x = argument(rng, monomials, 3, middle, np.array([0.1, 1e-3, 2.0, 0.0]))
    x.c[:, :, 2] = np.nan
    y = argument(rng, monomials, 1, np.array([2.0, -0.3, np.inf, 1.0]), 0.1 * middle)
    together = enclosed(FUNCTIONS[name][0], monomials, x, y)
    assert np.isinf(together.remainder[2])
    for box in (0, 1, 3):
        own = np.array([box])
        alone = enclosed(FUNCTIONS[name][0], monomials, x.take(own), y.take(own))
        np.testing.assert_allclose(alone.c[:, :, 0], together.c[:, :, box], rtol=1e-12, atol=1e-14)
        assert alone.remainder[0] == pytest.approx(together.remainder[box], rel=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_on_the_tape_hold_the_true_values(name: str) -> None:
    """On the tape, against differences of many digits."""
    expression = FUNCTIONS[name][0]
    tape, term = recorded(expression)
    derivatives = [tape.derivative(term, Term(tape, k)) for k in (0, 1)]
    monomials = Monomials.of(1, 0)
    at = (0.6, 1.7)
    known = {k: TaylorModel.constant(monomials, np.full(1, v)) for k, v in enumerate(at)}
    found = TapeProgram(tape, derivatives).evaluate(monomials, known, 1)
    with mpmath.workdps(DIGITS):
        x, y = (mpmath.mpf(v) for v in at)
        h = mpmath.mpf(10) ** -18
        by_x = (expression(Exact(), x + h, y) - expression(Exact(), x - h, y)) / (2 * h)
        by_y = (expression(Exact(), x, y + h) - expression(Exact(), x, y - h)) / (2 * h)
        for derivative, true in zip(derivatives, (by_x, by_y), strict=True):
            model = found[derivative.index]
            assert abs(model.c[0, 0, 0] - true) <= model.remainder[0] + abs(true) * 1e-30
            assert model.remainder[0] <= 1e-12 * (1 + abs(true))


def test_functions_of_zero_and_one_are_exact() -> None:
    tape = Tape()
    functions = FunctionRewriting(tape)
    zero, one = tape.number(0), tape.number(1)
    assert functions("exp", [zero]).value == 1
    assert functions("log", [one]).value == 0
    assert functions("sqrt", [zero]).value == 0
    assert functions("^", [one, tape.variable("x")]).value == 1


def test_constants_are_enclosed_too() -> None:
    tape = Tape()
    functions = FunctionRewriting(tape)
    numbers = {
        functions("log", [tape.number(10)]): mpmath.log(10),
        functions("acos", [tape.number(-1) / tape.number(2)]): 2 * mpmath.pi / 3,
        functions("^", [tape.number(3), tape.number(Fraction(1, 3))]): mpmath.cbrt(3),
    }
    found = TapeProgram(tape, list(numbers)).constants(ONE, {}, 2)
    with mpmath.workdps(DIGITS):
        exactly = [mpmath.log(10), 2 * mpmath.pi / 3, mpmath.cbrt(3)]
        for term, true in zip(numbers, exactly, strict=True):
            model = found[term.index]
            assert abs(model.c[0, 0, 0] - true) <= model.remainder[0] < 1e-12


@pytest.mark.parametrize("degree", [0, 2])
@pytest.mark.parametrize("doubt", [1e-6, 1e-2, 1.0])
def test_roughly_known_exponents_are_enclosed(degree: int, doubt: float) -> None:
    """As those that are no floating-point numbers, only more so."""
    tape = Tape()
    x, p = tape.variable("x"), tape.variable("p")
    term = tape.apply("^", x, p)
    monomials, rng = Monomials.of(1, degree), np.random.default_rng(1)
    middle = np.array([0.02, 0.5, 1.0, 3.0, 40.0] * 2)
    base = argument(rng, monomials, 1, middle, middle * np.repeat([0.0, 0.3], 5))
    exponent = TaylorModel.constant(monomials, np.array([-1.3, 0.4, 2.5, -0.2, 0.7] * 2))
    exponent.remainder = np.full(10, doubt)
    with np.errstate(all="ignore"):
        found = TapeProgram(tape, [term]).evaluate(monomials, {0: base, 1: exponent}, 10)[
            term.index
        ]
    compared = contained(lambda a, x, p: x**p, monomials, base, exponent, found, rng, 30)
    assert compared == 300


@pytest.mark.parametrize("exponent", [-2.0, 2.0, 3.0])
def test_powers_have_positive_bases(exponent: float) -> None:
    """Exponents in the middle of a box may be whole, of all places there."""
    tape = Tape()
    term = tape.apply("^", tape.variable("x"), tape.variable("p"))
    power = TaylorModel.constant(ONE, np.full(1, exponent))
    for x in (line(1.0, 1.1), line(1.0, 0.5, remainder=0.6), line(-2.0, 0.1)):
        with np.errstate(all="ignore"):
            found = TapeProgram(tape, [term]).evaluate(ONE, {0: x, 1: power}, 1)[term.index]
        assert np.isinf(found.remainder[0])


@pytest.mark.parametrize(("name", "middle"), [("log", 1 + 1e-9), ("atan", 1e-9), ("asin", 1e-9)])
def test_rounding_of_coefficients_is_counted(name: str, middle: float) -> None:
    """Next to a zero of the function, its own error is smaller than that of its derivative."""
    rng, other = np.random.default_rng(0), TaylorModel.constant(ONE, np.full(1, OTHER))
    expression = FUNCTIONS[name][0]
    for width in rng.uniform(1e-7, 1e-6, 20).tolist():
        x = line(middle, width)
        found = of(name, x)
        contained(expression, ONE, x, other, found, rng)
        assert found.remainder[0] < 1e-19
