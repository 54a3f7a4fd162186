"""Derivatives of recorded quantities, which are recorded quantities again.

So each is written down once, what is known in it is computed at once, and a search evaluates values
and derivatives alike.
"""

from __future__ import annotations

from odefit.expressions.expressions import CONDITIONS
from odefit.methods.integral_matching.operations import INTEGRAL, SCALED
from odefit.methods.integral_matching.separated import Node, Recorder


def derivative(recorder: Recorder, node: Node, unknown: int) -> Node:
    """Return the derivative of a quantity by an unknown; ``recorder.zero`` if there is none."""
    if not node.unknowns >> unknown & 1:
        return recorder.zero
    key = node, unknown
    if key not in recorder.derivatives:
        recorder.derivatives[key] = _derivative(recorder, node, unknown)
    return recorder.derivatives[key]


def _derivative(recorder: Recorder, node: Node, unknown: int) -> Node:
    apply, operation = recorder.apply, node.operation
    if operation == "unknown":
        return recorder.one
    if operation in CONDITIONS:
        return recorder.zero
    inner = [derivative(recorder, a, unknown) for a in node.arguments]
    a, b = node.arguments[0], node.arguments[-1]
    if operation in (INTEGRAL, "negate"):
        return apply(operation, inner[0])
    if operation in ("+", "-"):
        return apply(operation, *inner)
    if operation in ("if", "if not"):
        return apply(operation, a, inner[1])
    if operation in ("min", "max"):
        first = apply(f"first is {operation}", a, b)
        return apply("+", apply("if", first, inner[0]), apply("if not", first, inner[1]))
    total = recorder.zero
    for number, own in enumerate(inner):
        if own is not recorder.zero:
            factor = _factor(recorder, node, number)
            total = apply("+", total, factor if own is recorder.one else apply(SCALED, factor, own))
    return total


def _factor(recorder: Recorder, node: Node, number: int) -> Node:
    """Return the derivative of an operation by one of its arguments."""
    apply, operation = recorder.apply, node.operation
    a, b = node.arguments[0], node.arguments[-1]
    if operation == "*":
        return a if number else b
    if operation == "/":
        inverse = apply("/", recorder.one, b)
        return apply("negate", apply("*", node, inverse)) if number else inverse
    if operation == "^":
        return apply("^ by exponent", a, node) if number else apply("slope of ^", a, b)
    return apply(f"slope of {operation}", a, node)
