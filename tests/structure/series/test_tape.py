"""What is recorded on a tape: values, sharing, derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.expressions.expressions import parse
from odefit.structure.series.tape import (
    MAX_POWER,
    NotRationalError,
    Recording,
    Tape,
    Term,
    needed,
)

POINT = {"a": Fraction(2, 3), "b": Fraction(-5, 7), "c": Fraction(11, 4)}


def recorded(text: str) -> Term:
    tape = Tape()
    values = {name: tape.variable(name) for name in POINT}
    result: Term = parse(text).evaluate(values, Recording(tape))
    return result


def exact(term: Term, point: Mapping[str, Fraction] = POINT) -> Fraction:
    """The value of a term over the rational numbers."""
    tape, found = term.tape, dict[int, Fraction]()
    for i in needed(tape, [term]):
        operation, a, b = tape.entries[i]
        if operation == "number":
            found[i] = tape.numbers[i]
        elif operation == "variable":
            found[i] = point[tape.names[i]]
        elif operation == "+":
            found[i] = found[a] + found[b]
        elif operation == "-":
            found[i] = found[a] - found[b]
        elif operation == "*":
            found[i] = found[a] * found[b]
        else:
            found[i] = found[a] / found[b]
    return found[term.index]


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "c", "2", "0.5", "1", "0"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda e: f"({e})/(7 + c^2)"),
        st.tuples(inner, st.integers(0, 4)).map(lambda t: f"({t[0]})^{t[1]}"),
    ),
    max_leaves=8,
)


def python(text: str) -> Fraction:
    """The value by Python's own arithmetic of fractions."""
    exact_text = text.replace("^", "**").replace("0.5", "F(1, 2)")
    return Fraction(eval(exact_text, {}, {**POINT, "F": Fraction}))


@given(EXPRESSIONS)
def test_a_recorded_expression_has_its_value(text: str) -> None:
    assert exact(recorded(text)) == python(text)


@given(EXPRESSIONS, st.sampled_from(sorted(POINT)))
def test_a_derivative_is_the_limit_of_differences(text: str, name: str) -> None:
    term = recorded(text)
    derivative = exact(term.tape.derivative(term, term.tape.variable(name)))
    steps = [Fraction(1, 10**9), Fraction(1, 10**10)]
    # One step of Richardson's extrapolation of central differences, in exact arithmetic.
    first, second = (
        (
            exact(term, {**POINT, name: POINT[name] + h})
            - exact(term, {**POINT, name: POINT[name] - h})
        )
        / (2 * h)
        for h in steps
    )
    limit = (100 * second - first) / 99
    assert abs(limit - derivative) <= Fraction(1, 10**20) * (1 + abs(derivative))


def test_equal_operations_are_recorded_once() -> None:
    tape = Tape()
    a, b = tape.variable("a"), tape.variable("b")
    first = (a + b) * (b + a)
    count = len(tape.entries)
    assert ((b + a) * (a + b)).index == first.index
    assert len(tape.entries) == count


def test_numbers_are_folded_exactly() -> None:
    assert recorded("0.1 + 0.2").value == Fraction(3, 10)
    assert recorded("a*0 + 1*b - b").value == 0
    assert recorded("a - a").value == 0


def test_a_variable_can_be_replaced_by_a_term() -> None:
    term = recorded("a*b + c/(a + 1)")
    tape = term.tape
    new = tape.substitute(term, {tape.variable("a").index: tape.variable("c") * tape.number(2)})
    assert exact(new) == exact(term, {**POINT, "a": 2 * POINT["c"]})
    assert tape.substitute(new, {tape.variable("a").index: tape.number(1)}).index == new.index


def test_a_term_does_not_depend_on_names_that_cancel() -> None:
    term = recorded("a*b - b*a + c")
    assert {term.tape.names[i] for i in term.tape.depends(term)} == {"c"}


@pytest.mark.parametrize("text", ["a/(b - b)", f"a^{MAX_POWER + 1}", "exp(a)", "a^b"])
def test_an_irrational_model_is_refused(text: str) -> None:
    with pytest.raises(NotRationalError):
        recorded(text)


@given(
    st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(0, 9), st.integers(0, 9)), max_size=30)
)
def test_the_reverse_mode_has_the_gradient_of_the_forward_mode(
    steps: list[tuple[str, int, int]],
) -> None:
    tape = Tape()
    variables = [tape.variable(name) for name in POINT]
    terms = [*variables, tape.number(3)]
    operations: Mapping[str, Callable[[Term, Term], Term]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    }  # fmt: skip
    for operation, a, b in steps:
        with suppress(NotRationalError):
            terms.append(
                operations[operation](terms[-1 - a % len(terms)], terms[-1 - b % len(terms)])
            )
    forward = [tape.derivative(terms[-1], variable) for variable in variables]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("odefit.structure.series.tape.REVERSED_FROM", 0)
        backward = tape.gradient(terms[-1], variables)
    with suppress(ZeroDivisionError):
        assert [exact(t) for t in backward] == [exact(t) for t in forward]


@pytest.mark.parametrize("operation", ["+", "*"])
def test_the_gradient_of_many_terms_takes_steps_in_proportion_to_them(operation: str) -> None:
    counts = []
    for number in (400, 800):
        tape = Tape()
        variables = [tape.variable(f"k{i}") for i in range(number)]
        total = variables[0]
        for variable in variables[1:]:
            total = total + variable if operation == "+" else total * variable
        gradient = tape.gradient(total, variables)
        values = {f"k{i}": Fraction(1 + i % 3) for i in range(number)}
        product = exact(total, values)
        for i in (0, 1, number - 1):
            right = 1 if operation == "+" else product / values[f"k{i}"]
            assert exact(gradient[i], values) == right
        counts.append(tape.differentiated)
    assert counts[1] <= 2 * counts[0] + 1


@pytest.mark.parametrize("count", [3, 200])
def test_the_variables_of_a_large_term_are_known(count: int) -> None:
    tape = Tape()
    variables = [tape.variable(f"k{i}") for i in range(2 * count)]
    total = tape.total(variables[::2])
    assert tape.depends(total) == {v.index for v in variables[::2]}


def test_a_released_number_is_a_variable_on_which_its_terms_depend() -> None:
    tape = Tape()
    x, three = tape.variable("x"), tape.number(3)
    product = (x + tape.number(1)) * three
    tape.release(three.index, "dose")
    assert three.value is None
    assert tape.names[three.index] == "dose"
    assert tape.depends(product) == {x.index, three.index}
    assert tape.derivative(product, three).index == (x + tape.number(1)).index
    assert tape.number(3).index != three.index
