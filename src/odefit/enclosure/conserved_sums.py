"""Sums of states that the differential equations leave as they are, in words for the user.

Equations count by their form alone: parameters and constants are symbols, so that a sum holds for
all of their values, and functions are symbols of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from odefit.enclosure.invariants import coefficients
from odefit.expressions.expressions import TIME
from odefit.problem.model import Model
from odefit.problem.notation.network import conserved_weights
from odefit.structure.series.tape import NotRationalError, Recording, Tape, Term

MOST_STATES = 200
"""Number of states above which no sums are looked for."""


def conserved_sums(model: Model) -> list[dict[str, Fraction]]:
    """Return the weights of independent sums of two states or more that stay as they are.

    Parameters
    ----------
    model
        The equations.
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
    except (NotRationalError, ZeroDivisionError):  # a quotient by zero is told elsewhere
        return []
    products = coefficients(rates)
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
