"""Constraints on parameters and states (section 2.1), as users write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import Expression, ExpressionError, parse
from odefit.methods.shooting.linear_problem import LinearisedConstraints, UserConstraints
from odefit.methods.shooting.shooting_problem import Linearisation, ShootingProblem
from odefit.problem.binding import scalar_value
from odefit.problem.problem import Problem

_AT = re.compile(r"([A-Za-z_]\w*)\s*@\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
_RELATION = re.compile(r"<=|>=|==|=|<|>")


@dataclass(frozen=True)
class Constraint:
    """A constraint on parameters and on states at given times.

    Attributes
    ----------
    text
        Two expressions and ``=``, ``<=`` or ``>=`` between them; a state at a time is
        ``state@time``: ``"k1 + k2 = 1"``, ``"x@0 = x@10"`` (periodic), ``"T@5 <= 350"``.
    experiment
        Name of the experiment of the states and constants; None for the first.

    Examples
    --------
    >>> Constraint("x@0 = x@10")
    Constraint(text='x@0 = x@10', experiment=None)
    """

    text: str
    experiment: str | None = None


@dataclass(frozen=True, eq=False)
class ParsedConstraint:
    """A parsed constraint: `expression` must be zero, or not negative."""

    source: Constraint  # constraint as it was written
    kind: Literal["equation", "inequality"]  # whether it is an equation or an inequality
    condition: int  # number of the experiment
    expression: Expression  # difference of both sides
    # state's number and the time that each name in the expression stands for
    states: dict[str, tuple[int, float]]


def parse_constraints(
    problem: Problem, constraints: Sequence[Constraint | str]
) -> list[ParsedConstraint]:
    """Parse constraints; raises InputError with all mistakes of all of them."""
    parsed, wrong = [], []
    for item in constraints:
        constraint = Constraint(item) if isinstance(item, str) else item
        try:
            parsed.append(_parse(problem, constraint))
        except InputError as error:
            wrong += [f"constraint {constraint.text!r}: {m}" for m in error.messages]
    if wrong:
        raise InputError(wrong)
    return parsed


def _parse(problem: Problem, constraint: Constraint) -> ParsedConstraint:
    condition = problem.condition(constraint.experiment)
    number = problem.conditions.index(condition)
    relations = _RELATION.findall(constraint.text)
    if len(relations) != 1:
        raise InputError("expected two expressions and one of =, <=, >= between them")
    left, right = _RELATION.split(constraint.text)
    states: dict[str, tuple[int, float]] = {}
    names = problem.model.states
    taken = set(condition.scalars)

    def placed(match: re.Match[str]) -> str:
        state, time = match[1], float(match[2])
        if state not in names:
            raise InputError(f"there is no state {state!r}{did_you_mean(state, names)}")
        last = float(condition.times[-1])
        if not condition.t0 <= time <= last:
            raise InputError(
                f"t = {time:g} is outside the data of {condition.name!r}, "
                f"from {condition.t0:g} to {last:g}"
            )
        name = f"{state}_at_{len(states)}"
        while name in taken:
            name += "_"
        states[name] = (names.index(state), time)
        return name

    texts = [f"({_AT.sub(placed, side)})" for side in (left, right)]
    low, high = reversed(texts) if relations[0] in ("<=", "<") else texts
    try:
        expression = parse(f"{low} - {high}")
    except ExpressionError as error:
        raise InputError(str(error)) from error
    for name in expression.names - states.keys() - condition.scalars.keys():
        if name in names:
            raise InputError(
                f"give the time: {name}@{condition.t0:g} is {name} at t = {condition.t0:g}"
            )
        raise InputError(f"unknown name {name!r}{did_you_mean(name, condition.scalars)}")
    kind: Literal["equation", "inequality"] = (
        "equation" if relations[0] in ("=", "==") else "inequality"
    )
    return ParsedConstraint(constraint, kind, number, expression, states)


def node_times(constraints: Sequence[ParsedConstraint], condition: int) -> list[float]:
    """Return the times at which one condition needs a node."""
    return sorted(
        {t for c in constraints if c.condition == condition for _, t in c.states.values()}
    )


def user_constraints(
    shooting: ShootingProblem, at: Linearisation, constraints: Sequence[ParsedConstraint]
) -> UserConstraints:
    """Return the equations and inequalities among constraints, linearised at a point."""
    return UserConstraints(
        linearise_constraints(shooting, at, [c for c in constraints if c.kind == "equation"]),
        linearise_constraints(shooting, at, [c for c in constraints if c.kind == "inequality"]),
    )


def linearise_constraints(
    shooting: ShootingProblem, at: Linearisation, constraints: Sequence[ParsedConstraint]
) -> LinearisedConstraints:
    """Return values and derivatives of constraints at a point."""
    n, size = len(at.point.coordinates), len(shooting.names)
    vector = shooting.scaling.natural(at.point.coordinates)
    slope = shooting.scaling.derivative(vector)
    values = np.zeros(len(constraints))
    by_unknown = np.zeros((len(constraints), n))
    by_node: dict[int, np.ndarray] = {}
    for row, constraint in enumerate(constraints):
        condition = shooting.problem.conditions[constraint.condition]
        names: dict[str, Dual] = {
            name: scalar_value(name, condition.scalars, vector)
            for name in constraint.expression.names & condition.scalars.keys()
        }
        places = {}
        for k, (name, (state, time)) in enumerate(constraint.states.items()):
            node = shooting.node_at(constraint.condition, time)
            places[n + k] = (node, state)
            names[name] = Dual(at.point.nodes[node, state], {n + k: 1.0})
        with np.errstate(all="ignore"):
            value: Dual = constraint.expression.evaluate(names, DUAL)
        gradient = value.gradient(n + len(places))
        values[row] = value.value
        by_unknown[row] = gradient[:n] * slope
        for k, (node, state) in places.items():
            by_node.setdefault(node, np.zeros((len(constraints), size)))[row, state] += gradient[k]
    return LinearisedConstraints(values, by_unknown, by_node)
