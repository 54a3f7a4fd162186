"""Quantities that have a profile besides the unknowns: expressions, and values at a time.

``"CL = k*V"`` is an expression in the parameters, constants and initial values (by the names of
their states), with an optional name. ``"x1@5"`` is a state or an observable at time 5. In a problem
with several experiments, brackets select one, as in ``"k*V in [run 2]"`` and ``"x1[run 2]@5"``; the
default is the first. Functionals of curves over time, such as ``"AUC = integral(C)"``, are those of
:mod:`odefit.assessment.functionals.over_time`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from odefit.assessment.functionals.over_time import OverTime, contains_functionals, over_time
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import Expression, ExpressionError, parse
from odefit.problem.binding import bound_value, unknowns_of
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice

_LABEL = re.compile(r"\s*(?P<label>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<rest>.*)", re.DOTALL)
_PREDICTION = re.compile(
    r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*(?:\[(?P<experiment>.*)\])?\s*@\s*(?P<time>\S+)\s*"
)
_EXPERIMENT = re.compile(r"\s*(?P<rest>.*?)\s+in\s+\[(?P<experiment>.*)\]\s*", re.DOTALL)


@dataclass(frozen=True)
class Quantity:
    """A function of the unknowns: an expression, or a state or observable at a `time`.

    `text` is the user's text, `experiment` the one whose values are used.
    """

    key: str
    text: str
    experiment: str
    expression: Expression
    time: float | None = None

    @classmethod
    def of(cls, problem: Problem, text: str) -> Quantity:
        """Return the quantity given by a text; raises InputError for unknown names."""
        match = _LABEL.fullmatch(text)
        label, rest = (match["label"], match["rest"]) if match else ("", text)
        if "@" in rest:
            return _prediction(problem, text, label, rest)
        within = _EXPERIMENT.fullmatch(rest)
        experiment = _experiment(problem, text, within["experiment"] if within else None)
        rest = within["rest"] if within else rest.strip()
        try:
            expression = parse(rest)
        except ExpressionError as error:
            raise InputError(f"expression '{text}': {error}") from error
        condition = problem.condition(experiment)
        known = [*condition.scalars, *condition.initial]
        for name in sorted(expression.names):
            if name not in known:
                raise InputError(f"expression '{text}': unknown name '{name}'{one_of(name, known)}")
        quantity = cls(label or rest, text, experiment, expression)
        if not quantity.unknowns(problem):
            raise InputError(f"expression '{text}': it contains no unknown")
        return quantity

    def unknowns(self, problem: Problem) -> set[int]:
        """Return the unknowns that occur in an expression."""
        condition = problem.condition(self.experiment)
        bounds = {**condition.initial, **condition.scalars}
        return {k for n in self.expression.names for k in unknowns_of(bounds[n], condition.scalars)}

    def at(self, forward: ForwardMap, vector: Array, choice: EngineChoice) -> tuple[float, Array]:
        """Return its value and its derivatives by the unknowns, shape (n,); NaN if undefined."""
        n = len(vector)
        condition = forward.problem.condition(self.experiment)
        if self.time is not None:
            times = np.array([self.time])
            trajectory = forward.trajectory(vector, self.experiment, times, choice=choice)
            if isinstance(trajectory, Failure):
                return float("nan"), np.zeros(n)
            name = self.expression.text
            with np.errstate(all="ignore"):
                if name in forward.problem.model.observables:
                    value = forward.predictions(condition, vector, trajectory)[name].take(
                        np.array([0]), 1
                    )
                    gradient = value.gradient(n, 1)[0]
                    return float(np.asarray(value.value)[0]), np.asarray(gradient)
            row = forward.field.states.index(name)
            gradient = np.zeros(n)
            gradient[list(trajectory.unknowns)] = trajectory.sensitivities[0, row]
            return float(trajectory.states[0, row]), gradient
        scalars = condition.scalars
        bounds = {**condition.initial, **scalars}
        unknowns = {
            k: Dual(np.float64(vector[k]), {k: 1.0}) for k in self.unknowns(forward.problem)
        }
        values = {n: bound_value(bounds[n], scalars, unknowns, DUAL) for n in self.expression.names}
        with np.errstate(all="ignore"):
            dual: Dual = self.expression.evaluate(values, DUAL)
        return float(np.asarray(dual.value)), dual.gradient(n)


AnyQuantity = Quantity | OverTime
"""A quantity that has a profile: an expression, or one with functionals over time."""


def quantity_of(problem: Problem, text: str | AnyQuantity) -> AnyQuantity:
    """Return the quantity given by a text, see :meth:`Quantity.of` and :func:`over_time`."""
    if not isinstance(text, str):
        return text
    within = _EXPERIMENT.fullmatch(text)
    rest = within["rest"] if within else text
    if not contains_functionals(rest):
        return Quantity.of(problem, text)
    experiment = _experiment(problem, text, within["experiment"] if within else None)
    return replace(over_time(problem, rest, experiment), text=text)


def _experiment(problem: Problem, text: str, name: str | None) -> str:
    names = [c.name for c in problem.conditions]
    if name is None:
        return names[0]
    if name not in names:
        raise InputError(f"expression '{text}': unknown experiment '{name}'{one_of(name, names)}")
    return name


def _prediction(problem: Problem, text: str, label: str, rest: str) -> Quantity:
    match = _PREDICTION.fullmatch(rest)
    if match is None:
        raise InputError(
            f"expression '{text}': expected a name, '@' and a time, such as x1@5 or "
            "x1[experiment]@5"
        )
    name = match["name"]
    known = [*problem.model.states, *problem.model.observables]
    if name not in known:
        raise InputError(f"expression '{text}': unknown name '{name}'{one_of(name, known)}")
    experiment = _experiment(problem, text, match["experiment"])
    try:
        time = float(match["time"])
    except ValueError:
        raise InputError(
            f"expression '{text}': expected a number after '@', got '{match['time']}'"
        ) from None
    t0 = problem.condition(experiment).t0
    if not time >= t0:
        raise InputError(f"expression '{text}': the time is before t0 = {t0:g}")
    return Quantity(label or rest.strip(), text, experiment, parse(name), time)
