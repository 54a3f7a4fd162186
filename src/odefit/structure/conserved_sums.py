"""Sums of states that are constant for all values of the unknowns, computed exactly.

Right-hand sides are expanded to polynomials with exact coefficients. The weights with which they
cancel are the null space of a matrix of fractions (the conservation relations of reaction networks;
C. Reder, Metabolic control theory: a structural approach, 1988). Quotients and functions are
treated as separate variables: a sum that is found then always holds, and a missed one only weakens
bounds.

Two other modules solve related problems. Steady states need sums whose weights depend on values of
the scalars, such as volumes, and compute them numerically (`simulation.steady.steady_equations`).
The hidden states of integral matching follow from sums of equations in which measured states may
remain (`structure.invariants`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from odefit.common.exact_linear_algebra import conserved_weights, null_space
from odefit.expressions.expressions import TIME
from odefit.problem.model import Model
from odefit.structure.series.tape import NotRationalError, Recording, Tape, Term, needed

MAX_PRODUCTS = 500
"""Largest number of products in an expansion for which invariants are sought."""

Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients by product of generators. A product lists entries of the tape in order, with
repetitions; the reciprocal of entry i is -1 - i."""

MOST_STATES = 200
"""Number of states above which no sums are sought."""


def conserved_by(terms: Sequence[Term]) -> list[list[Fraction]]:
    """Return independent weights w for which ``sum of w[i] terms[i]`` is identically zero."""
    products = _products(terms)
    rows = [[row.get(i, Fraction(0)) for i in range(len(terms))] for row in products or ()]
    return null_space(rows, len(terms)) if products is not None else []


def conserved_sums(model: Model) -> list[dict[str, Fraction]]:
    """Return the weights of independent constant sums of at least two states.

    Only the form of equations matters: parameters and constants are symbols.
    """
    if not 1 < len(model.ode) <= MOST_STATES:
        return []
    tape = Tape()
    names = {TIME, *model.ode, *model.algebraic, *model.inputs}
    names |= {n for e in model.ode.values() for n in e.names}
    variables = {name: tape.variable(name) for name in sorted(names)}
    calls: dict[tuple[str, tuple[int, ...]], Term] = {}

    def called(function: str, arguments: Sequence[Term]) -> Term:
        key = function, tuple(a.index for a in arguments)
        if key not in calls:
            calls[key] = tape.variable(f"call {len(calls)}")
        return calls[key]

    algebra = Recording(tape, called)
    try:
        rates = [e.evaluate(variables, algebra) for e in model.ode.values()]
    except (NotRationalError, ZeroDivisionError):  # other code reports a division by zero
        return []
    products = _products(rates)
    states = list(model.ode)
    if products is None:
        return []
    columns = [{states[i]: c for i, c in product.items()} for product in products]
    return [w for w in conserved_weights(states, columns) if len(w) > 1]


def in_words(weights: dict[str, Fraction]) -> str:
    """Return a sum as a text, such as ``"E + 2*C - S"``."""
    text = ""
    for name, weight in weights.items():
        size = abs(weight)
        part = name if size == 1 else f"{size}*{name}"
        sign = "-" if weight < 0 else "+"
        text += (f" {sign} " if text else "-" if weight < 0 else "") + part
    return text


def _products(terms: Sequence[Term]) -> list[dict[int, Fraction]] | None:
    """Return for each product in an expansion of `terms` its coefficients, by index of term.

    Returns None if there are no terms, or too many products.
    """
    if not terms:
        return None
    expanded = _expanded(terms[0].tape, terms)
    if expanded is None:
        return None
    rows: dict[tuple[int, ...], dict[int, Fraction]] = {}
    for i, term in enumerate(terms):
        for product, coefficient in expanded[term.index].items():
            rows.setdefault(product, {})[i] = coefficient
    return list(rows.values())


def _expanded(tape: Tape, terms: Sequence[Term]) -> dict[int, Polynomial] | None:
    expansion: dict[int, Polynomial] = {}
    for i in needed(tape, terms):
        operation, a, b = tape.entries[i]
        if i in tape.numbers:
            value = tape.numbers[i]
            expansion[i] = {(): value} if value else {}
        elif operation in ("+", "-"):
            expansion[i] = _sum(expansion[a], expansion[b], 1 if operation == "+" else -1)
        elif operation == "*":
            if len(expansion[a]) * len(expansion[b]) > MAX_PRODUCTS:
                return None
            expansion[i] = _product(expansion[a], expansion[b])
        elif operation == "/":
            divisor = expansion[b]
            if divisor.keys() == {()}:
                inverse: Polynomial = {(): 1 / divisor[()]}
            else:
                inverse = {(-1 - b,): Fraction(1)}
            expansion[i] = _product(expansion[a], inverse)
        else:
            expansion[i] = {(i,): Fraction(1)}
    return expansion


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    total = dict(left)
    for product, coefficient in right.items():
        value = total.get(product, Fraction(0)) + sign * coefficient
        if value:
            total[product] = value
        else:
            del total[product]
    return total


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for p, a in left.items():
        for q, b in right.items():
            total = _sum(total, {tuple(sorted(p + q)): a * b}, 1)
    return total
