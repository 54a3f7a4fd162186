"""The equations of a problem, typeset."""

from __future__ import annotations

from collections.abc import Iterator

from odefit.problem.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.reporting.markup import Markup, element, join
from odefit.reporting.mathml import MATHML, Symbols, derivative, equation, row
from odefit.reporting.numbers import significant


def symbols_of(problem: Problem) -> Symbols:
    """All names of `problem`, typeset."""
    model = problem.model
    constants = {name for e in problem.experiments for name in e.constants}
    return Symbols(
        [
            *model.ode,
            *model.algebraic,
            *model.observables,
            *model.inputs,
            *model.constants,
            *sorted(constants),
            *problem.parameters,
        ]
    )


def inline(symbols: Symbols, name: str) -> Markup:
    """A name within a sentence or a table."""
    return element("math", symbols[name].markup, alttext=name)


def quantity(symbols: Symbols, expression: Expression) -> Markup:
    """An expression within a sentence or a table."""
    return element("math", row(symbols.formula(expression).markup), alttext=expression.text)


def ode_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """One equation for each state."""
    for state, expression in problem.model.ode.items():
        left = derivative(symbols[state])
        plain = f"d{state}/dt = {expression.text}"
        yield equation(left, symbols.formula(expression).markup, plain)


def algebraic_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """One equation for each algebraic variable."""
    for expression in problem.model.algebraic.values():
        left = symbols.formula(expression).markup
        yield equation(left, element("mn", "0"), f"{expression.text} = 0")


def observable_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """What is measured; a state that is observed as it is needs no equation."""
    for name, expression in problem.model.observables.items():
        if expression.name != name:
            plain = f"{name} = {expression.text}"
            yield equation(symbols[name].markup, symbols.formula(expression).markup, plain)


def initial_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Initial values that the problem knows, of all experiments that have no others."""
    for state, value in problem.initial.items():
        given: Expression | None = None
        if isinstance(value, Expression):
            given = value
        elif isinstance(value, Parameter) and value.fixed is not None:
            from odefit.problem.expressions import as_expression

            given = as_expression(value.fixed)
        if given is not None:
            plain = f"{state}(t0) = {given.text}"
            right = symbols.formula(given).markup
            yield equation(_at_start(symbols, state), right, plain)


def unknown_initial(problem: Problem) -> list[str]:
    """States whose initial value is estimated."""
    return [
        state
        for state in problem.model.states
        if any(u.kind == "initial" and u.name == state for u in problem.unknowns)
    ]


def _at_start(symbols: Symbols, state: str) -> Markup:
    start = element("msub", element("mi", "t"), element("mn", "0"))
    bracket = element("mo", "(", stretchy="false"), element("mo", ")", stretchy="false")
    return row(join(symbols[state].markup, bracket[0], start, bracket[1]))


def constant_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Known numbers."""
    for name, value in problem.model.constants.items():
        number = MATHML.number(significant(abs(value), 8))
        formula = -number if value < 0 else number
        yield equation(symbols[name].markup, formula.markup, f"{name} = {value:g}")


def noise_words(problem: Problem, symbols: Symbols, name: str) -> Markup:
    """How the measurements of an observable scatter, in words."""
    noise = problem.noise.get(name, Noise())
    with_column = [
        c.name for c in problem.conditions if name in c.series and c.series[name].sds is not None
    ]
    measured = [c.name for c in problem.conditions if name in c.series]
    words: Markup
    if with_column and len(with_column) == len(measured):
        words = join("standard deviation given with each value")
    elif noise.relative is not None:
        words = join(f"standard deviation {significant(100 * noise.relative)} % of the value")
    elif noise.sd == "estimate":
        words = join("standard deviation estimated")
    elif isinstance(noise.sd, Expression):
        words = join("standard deviation ", quantity(symbols, noise.sd))
    elif noise.sd is not None:
        words = join(f"standard deviation {significant(float(noise.sd))}")
    else:
        words = join("not given, plain least squares")
    if with_column and len(with_column) < len(measured):
        words = join(words, f", or with the value ({', '.join(with_column)})")
    if noise.transform is not None:
        scale = "natural logarithm" if noise.transform == "log" else "decimal logarithm"
        words = join(words, f", on the scale of the {scale}")
    return words
