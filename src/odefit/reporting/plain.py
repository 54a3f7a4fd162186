"""A problem in lines of plain text: equations, noise, what is special about an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odefit.problem.expressions import Expression, as_expression
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.reporting.numbers import significant
from odefit.reporting.sentences import some

INTERPOLATION = {
    "linear": "interpolated linearly",
    "constant": "held from the left",
    "cubic": "interpolated by a cubic spline",
}


def ode_lines(problem: Problem) -> Iterator[str]:
    """Equations of motion, and what is zero."""
    for state, expression in problem.model.ode.items():
        yield f"d{state}/dt = {expression.text}"
    for expression in problem.model.algebraic.values():
        yield f"0 = {expression.text}"


def initial_lines(problem: Problem) -> Iterator[str]:
    """Initial values as the problem gives them, before what single experiments override."""
    for state in problem.model.states:
        value = problem.initial.get(state)
        if isinstance(value, Parameter):
            text = "estimated" if value.fixed is None else significant(value.fixed, 8)
            each = ", in each experiment" if value.per_experiment and value.fixed is None else ""
            yield f"{state}(t0) = {text}{each}"
        elif value is not None:
            yield f"{state}(t0) = {_value(value)}"


def constant_lines(problem: Problem) -> Iterator[str]:
    """Known numbers, and inputs."""
    for name, number in problem.model.constants.items():
        yield f"{name} = {significant(number, 8)}"
    for name, kind in problem.model.inputs.items():
        yield f"{name}: column of the data, {INTERPOLATION[kind]}"


def noise_text(problem: Problem, name: str) -> str:
    """How the measurements of observable `name` scatter."""
    noise = problem.noise.get(name, Noise())
    measured = [c for c in problem.conditions if name in c.series]
    own = [c.name for c in measured if c.series[name].sds is not None]
    if own and len(own) == len(measured):
        words = "sd with each value"
    elif noise.relative is not None:
        words = f"sd {significant(100 * noise.relative)} % of the value"
    elif noise.sd == "estimate":
        words = "sd estimated"
    elif isinstance(noise.sd, Expression):
        words = f"sd {noise.sd.text}"
    elif noise.sd is not None:
        words = f"sd {significant(noise.sd)}"
    else:
        words = "not given"
    if own and len(own) < len(measured):
        words += f", or with the value ({some(own)})"
    return f"{words}, of the {noise.transform}" if noise.transform else words


def special_lines(problem: Problem, index: int) -> Iterator[str]:
    """What differs from the problem's own in experiment number `index`, and its events."""
    experiment = problem.experiments[index]
    for name, value in experiment.constants.items():
        yield f"{name} = {_value(value)}"
    for state, given in experiment.initial.items():
        yield f"{state}(t0) = {_value(given)}"
    for event in experiment.events:
        assigned = ", ".join(f"{name} becomes {_value(v)}" for name, v in event.assign.items())
        yield f"at t = {some([significant(t) for t in event.times])}: {assigned}"


def _value(value: object) -> str:
    """A number, an expression, or an unknown with what it is held at."""
    if isinstance(value, Parameter | Mapping):
        fixed = value.fixed if isinstance(value, Parameter) else value.get("fixed")
        return "estimated" if fixed is None else significant(float(fixed), 8)
    if isinstance(value, Expression | str | int | float):
        expression = as_expression(value)
        constant = expression.constant
        return expression.text if constant is None else significant(constant, 8)
    return str(value)
