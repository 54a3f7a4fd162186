"""Models without the algebraic variables that their equations give explicitly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from odefit.expressions.expressions import Expression
from odefit.expressions.formulas import Part, linear_in, substituted
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.problem.vector_field import with_equations

GROWTH = 4
"""Largest length of all equations after a substitution, relative to that before the first."""


def substitutions(problem: Problem) -> list[tuple[str, str]]:
    """Return which algebraic equations give which variables explicitly, in the order of use.

    An equation gives a variable in which it is linear with a constant coefficient, as
    ``v - vmax*s/(km + s)`` and ``free + bound - total`` are. A variable that a noise model
    contains is not replaced, nor one whose expression would make the equations much longer. Events
    contain no algebraic variables.
    """
    models = [problem.model] if problem.given is problem.model else [problem.model, problem.given]
    fixed = {n for noise in problem.noise.values() for e in noise.expressions for n in e.names}
    longest = [GROWTH * _length(model) for model in models]
    pairs: list[tuple[str, str]] = []
    while True:
        for pair in _explicit(models[0], fixed):
            others = [
                replaced(model, [pair]) for model in models if pair in _explicit(model, fixed)
            ]
            short = (_length(m) <= n for m, n in zip(others, longest, strict=False))
            if len(others) == len(models) and all(map(_determined, others)) and all(short):
                pairs.append(pair)
                models = others
                break
        else:
            return pairs


def replaced(model: Model, pairs: Sequence[tuple[str, str]]) -> Model:
    """Return a model with expressions in place of variables, as :func:`substitutions` has them."""
    for place, variable in pairs:
        solved = _solved(model.algebraic[place], variable)
        assert solved is not None
        value = {variable: solved}
        ode, algebraic, observables = (
            {name: substituted(e, value) if variable in e.names else e for name, e in table.items()}
            for table in (model.ode, model.algebraic, model.observables)
        )
        # The key of an equation is a variable; the remaining equations keep remaining keys.
        left = [e for key, e in algebraic.items() if key != place]
        keys = [key for key in algebraic if key != variable]
        remaining = dict(zip(keys, left, strict=True))
        model = with_equations(model, ode, remaining, observables=observables)
    return model


def _explicit(model: Model, fixed: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Yield each equation, by key, with each variable that it gives explicitly."""
    for place, equation in model.algebraic.items():
        variables = [place, *sorted(model.algebraic.keys() - {place})]
        for variable in variables:
            if variable in equation.names - fixed and _solved(equation, variable) is not None:
                yield place, variable


def _solved(equation: Expression, variable: str) -> Expression | None:
    """Return the variable's value, None unless its coefficient is a number other than zero."""
    linear = linear_in(Part(equation.program), variable)
    return linear.zero().expression() if linear is not None and linear.slope.number else None


def _determined(model: Model) -> bool:
    """Return whether each equation has a variable and each variable an equation."""
    variables = model.algebraic.keys()
    used = [e.names & variables for e in model.algebraic.values()]
    return all(used) and set().union(*used) == set(variables)


def _length(model: Model) -> int:
    """Return the length of all equations in instructions."""
    tables: tuple[Mapping[str, Expression], ...] = (model.ode, model.algebraic, model.observables)
    return sum(len(e.program) for table in tables for e in table.values())
