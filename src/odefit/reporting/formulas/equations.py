"""A problem in plain text and typeset: equations, noise, special experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from odefit.common.errors import some
from odefit.expressions.expressions import Expression, as_expression
from odefit.expressions.formulas import text_of
from odefit.problem.experiment import Experiment
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.problem.unknown_functions.specification import UnknownFunction
from odefit.reporting.formulas.mathml import MATHML, Symbols, derivative, element, equation, row
from odefit.reporting.numbers import significant
from odefit.structure.conserved_sums import conserved_sums, in_words

INTERPOLATION = {
    "linear": "interpolated linearly",
    "constant": "held from the left",
    "cubic": "interpolated by a cubic spline",
}
"""The interpolation of an input between its data, in words."""

FUNCTION_KINDS = {
    "spline": "a cubic spline",
    "linear": "straight pieces",
    "constant": "steps",
}
"""The kinds of estimated functions, in words."""

LOGARITHM = {"log": "natural logarithm", "log10": "decimal logarithm"}
"""The transforms of measurements, in words."""


def symbols_of(problem: Problem) -> Symbols:
    """Return all names of `problem`, typeset."""
    model = problem.given
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


# Sentences in plain text or typeset --------------------------------------------------------------


@dataclass(frozen=True)
class Writer:
    """The way in which sentences about a problem are written.

    ``text`` is the type of the sentences: plain text, or markup in which all else is escaped. The
    functions write a name and an expression.
    """

    text: type[str]
    name: Callable[[str], str]
    expression: Callable[[Expression], str]

    def value(self, value: object) -> str:
        """Return a number, an expression, or an unknown with the value at which it is held."""
        if isinstance(value, Parameter | Mapping):
            fixed = value.fixed if isinstance(value, Parameter) else value.get("fixed")
            return "estimated" if fixed is None else significant(float(fixed), 8)
        if isinstance(value, Expression) and value.is_condition:
            return self.expression(value)
        assert isinstance(value, Expression | str | int | float)
        expression = as_expression(value)
        constant = expression.constant
        return self.expression(expression) if constant is None else significant(constant, 8)


PLAIN = Writer(str, lambda name: name, lambda expression: expression.text)
"""Sentences in plain text."""


def typeset_writer(symbols: Symbols) -> Writer:
    """Return the writer of sentences in HTML, with formulas in MathML."""
    return Writer(
        Markup,
        lambda name: inline(symbols, name),
        lambda e: element("math", row(symbols.formula(e).markup), alttext=e.text),
    )


def inline(symbols: Symbols, name: str) -> Markup:
    """Return a name within a sentence or a table."""
    return element("math", symbols[name].markup, alttext=name)


def noise_words(problem: Problem, name: str, write: Writer, sd: str) -> str:
    """Return the scatter of measurements of `name`; `sd` names standard deviations."""
    noise = problem.noise.get(name, Noise())
    measured = [c for c in problem.conditions if name in c.series]
    with_sds = [c.name for c in measured if c.series[name].sds is not None]
    if not noise.law.located:
        words: str = write.text(noise.law.words)
        return words + _spread_words(noise, write) if noise.law.has_spread else words
    if with_sds and len(with_sds) == len(measured):
        words = write.text(f"{sd} with each value")
    elif noise.relative is not None:
        words = write.text(f"{sd} {significant(100 * noise.relative)} % of the value")
    elif noise.sd is None:
        words = write.text("not given, plain least squares")
    else:
        size = "estimated" if noise.sd == "estimate" else write.value(noise.sd)
        words = write.text(f"{sd} {{}}").format(size)
    if with_sds and len(with_sds) < len(measured):
        words += f", or with the value ({some(with_sds)})"
    if noise.transform is not None:
        words += f", on the scale of the {LOGARITHM[noise.transform]}"
    if noise.law.words:
        words += f", {noise.law.words}"
    if noise.correlation is not None:
        estimated = noise.correlation_time == "estimate"
        time = "estimated" if estimated else write.value(noise.correlation_time)
        words += write.text(
            ", correlated in time (Ornstein-Uhlenbeck), correlation time {}"
        ).format(time)
    limits = [("below", noise.lower_limit), ("above", noise.upper_limit)]
    words += "".join(f", censored {s} {significant(x)}" for s, x in limits if x is not None)
    return words


def _spread_words(noise: Noise, write: Writer) -> str:
    size = "estimated" if noise.spread == "estimate" else write.value(noise.spread)
    words: str = write.text(f", {noise.law.spread_words} {{}}")
    return words.format(size)


def special_words(problem: Problem, experiment: Experiment, write: Writer) -> list[str]:
    """Return how an experiment differs from the problem, and its events."""
    differences = []
    functions = problem.given.unknown_functions.values()
    hidden = {name for f in functions for name in (*f.ends, *f.constants)}
    constants = {n: v for n, v in experiment.constants.items() if n not in hidden}
    for where, values in (("", constants), ("(t0)", experiment.initial)):
        for name, value in values.items():
            template = write.text("{}{} = {}").format(write.name(name), where, write.value(value))
            differences.append(template)
    if experiment.steady_state:
        differences.append(str(write.text("begins at the steady state")))
    for event in experiment.events:
        assigned = write.text(", ").join(
            write.text("{} becomes {}").format(write.name(name), write.value(value))
            for name, value in event.assign.items()
        )
        if event.when is not None:
            waits = write.text("{} after " if event.delay != 0.0 else "").format(
                write.value(event.delay)
            )
            template = write.text("{}when {} becomes true: {}")
            differences.append(template.format(waits, write.value(event.when), assigned))
            continue
        known = [significant(t) if isinstance(t, float) else str(t) for t in event.times]
        differences.append(write.text("at t = {}: {}").format(some(known), assigned))
    return differences


def input_lines(problem: Problem) -> list[str]:
    """Return a line for each known input."""
    return [
        f"{name}: column of the data, {INTERPOLATION[kind]}"
        for name, kind in problem.given.inputs.items()
    ]


def ode_lines(problem: Problem) -> Iterator[str]:
    """Yield the differential and the algebraic equations in plain text."""
    for state, expression in problem.given.ode.items():
        yield f"d{state}/dt = {_by_function(problem, expression.text)}"
    for expression in problem.given.algebraic.values():
        yield f"0 = {_by_function(problem, expression.text)}"


def _by_function(problem: Problem, text: str) -> str:
    """Return an equation in which unknown functions appear by name."""
    for name in problem.given.unknown_functions:
        whole = text_of(problem.given.observables[name].program)
        text = text.replace(f"({whole})", name).replace(whole, name)
    return text


def written_lines(problem: Problem) -> Iterator[str]:
    """Yield the given forms, such as reactions, from which the equations were written out."""
    functions = problem.given.unknown_functions
    for section, table in problem.given.notation.written.items():
        sign = " =" if section in ("functions", "definitions") else ":"
        for name, text in table.items():
            function = functions.get(name)
            yield f"{name}{sign} {text if function is None else function_words(function.function)}"


def function_words(function: UnknownFunction) -> str:
    """Return the known properties of an estimated function."""
    of = "t" if function.of is None else function.of.text
    kind = FUNCTION_KINDS[function.kind]
    if function.changes:
        places = f"{function.changes} change points at unknown times"
    else:
        places = f"{len(function.places)} knots"
    log = ", on a logarithmic scale" if function.log else ""
    shape = f", {function.shape}" if function.shape else ""
    return f"an unknown function of {of}: {kind} with {places}{log}{shape}"


def conserved_lines(problem: Problem) -> Iterator[str]:
    """Yield the sums of states that reactions, or differential equations, conserve."""
    stated = problem.given.notation.conserved
    sums = [(t.text, t.names) for t in stated] or [
        (in_words(w), frozenset(w)) for w in conserved_sums(problem.given)
    ]
    changed = {name for c in problem.conditions for assign in c.assignments for name in assign}
    for text, names in sums:
        between = ", but for events" if names & changed else ""
        yield f"{text} keeps its value at t0{between}"


def initial_lines(problem: Problem) -> Iterator[str]:
    """Yield the problem's initial values, which single experiments may override."""
    for state in problem.given.states:
        value = problem.initial.get(state)
        if value is not None:
            separate = isinstance(value, Parameter) and value.per_experiment and value.fixed is None
            each = ", in each experiment" if separate else ""
            yield f"{state}(t0) = {PLAIN.value(value)}{each}"


# Typeset equations -------------------------------------------------------------------------------


def ode_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Yield one equation for each state."""
    for state, expression in problem.given.ode.items():
        left = derivative(symbols[state])
        plain = f"d{state}/dt = {expression.text}"
        yield equation(left, symbols.formula(expression).markup, plain)


def algebraic_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Yield one equation for each algebraic variable."""
    for expression in problem.given.algebraic.values():
        left = symbols.formula(expression).markup
        yield equation(left, element("mn", "0"), f"{expression.text} = 0")


def observable_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Yield the observables; a state observed directly needs no equation."""
    for name, expression in problem.given.observables.items():
        if expression.name != name:
            plain = f"{name} = {expression.text}"
            yield equation(symbols[name].markup, symbols.formula(expression).markup, plain)


def initial_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Yield the known initial values that all experiments share."""
    for state, value in problem.initial.items():
        known = value.fixed if isinstance(value, Parameter) else value
        if known is not None:
            expression = as_expression(known)
            left = Markup("").join([symbols[state].markup, AT_START])
            plain = f"{state}(t0) = {expression.text}"
            yield equation(row(left), symbols.formula(expression).markup, plain)


AT_START = Markup(
    '<mo stretchy="false">(</mo><msub><mi>t</mi><mn>0</mn></msub><mo stretchy="false">)</mo>'
)
"""The argument of an initial value."""


def constant_equations(problem: Problem, symbols: Symbols) -> Iterator[Markup]:
    """Yield the known values."""
    for name, value in problem.given.constants.items():
        number = MATHML.number(significant(abs(value), 8))
        formula = -number if value < 0 else number
        yield equation(symbols[name].markup, formula.markup, f"{name} = {value:g}")
