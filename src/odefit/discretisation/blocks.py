"""The model's expressions at many points of a mesh, over any algebra.

A block is a list of expressions that is evaluated at many points: the right-hand sides at all
points of a segment, say. The solver of the problem chooses the algebra (floats, CasADi, SCIP,
Pyomo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, Algebra, Expression
from odefit.problem.binding import Bound, bound_value, unknowns_of
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.problem.priors import Prior
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField

Evaluate = Callable[[Mapping[str, Any], Sequence[Any], Mapping[str, Any], Algebra[Any]], list[Any]]
"""A function that returns the outputs at one point from the variables there by name, all unknowns,
known data by name, and the algebra."""


@dataclass(frozen=True, eq=False)
class Block:
    """A list of expressions, evaluated at many points.

    `points` are the numbers of the points, shape (instances,); None for expressions in unknowns
    alone, which have one instance. `variables` names the variables at a point, in order; `unknowns`
    are the increasing numbers of the unknowns that occur. `data` are known numbers at each
    instance, shape (instances, columns). `evaluate` has as many `outputs` at one point, over any
    algebra.
    """

    points: IntArray | None
    variables: tuple[str, ...]
    unknowns: IntArray
    columns: tuple[str, ...]
    data: Array
    outputs: int
    evaluate: Evaluate

    @property
    def instances(self) -> int:
        """Number of points, or 1."""
        return 1 if self.points is None else len(self.points)

    @staticmethod
    def priors(problem: Problem) -> list[Block]:
        """Return a block for each normal or log-normal prior, on any scale: its residual."""
        return [
            _prior(problem.keys.index(key), prior)
            for key, prior in problem.priors.items()
            if prior.gaussian
        ]


def _prior(index: int, prior: Prior) -> Block:
    assert prior.mean is not None
    assert prior.sd is not None
    # The largest density of a log-normal number is below that of its logarithm.
    mean = prior.mean if prior.distribution == "normal" else prior.mean - prior.sd**2
    sd = prior.sd

    def evaluate(_: Any, unknowns: Any, __: Any, algebra: Algebra[Any]) -> list[Any]:
        value = unknowns[index]
        if prior.on != "linear":
            value = algebra.call(prior.on, [value])
        if prior.distribution == "log-normal":
            value = algebra.call("log", [value])
        return [(value - algebra.number(repr(mean))) / algebra.number(repr(sd))]

    return Block(None, (), np.array([index]), (), np.zeros((1, 0)), 1, evaluate)


class Equations:
    """The expressions of one condition as blocks.

    Constants that events switch are variables at points, like states and algebraic variables.
    """

    def __init__(
        self, field: VectorField, condition: Condition, problem: Problem, switched: tuple[str, ...]
    ) -> None:
        self.field = field
        self.condition = condition
        self.variables = (*field.states, *field.algebraic, *switched)
        self._switched = frozenset(switched)
        self._problem = problem
        self._noise_index = {u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}

    def rhs_block(self, points: IntArray, times: Array, inputs: Array) -> Block:
        """Return the right-hand sides at `points`."""
        return self._field_block(points, times, inputs, self.field.rhs, len(self.field.states))

    def algebraic_block(self, points: IntArray, times: Array, inputs: Array) -> Block:
        """Return the algebraic equations at `points`."""
        outputs = len(self.field.algebraic)
        return self._field_block(points, times, inputs, self.field.constraints, outputs)

    def _field_block(
        self,
        points: IntArray,
        times: Array,
        inputs: Array,
        equations: Callable[[Mapping[str, Any], Algebra[Any]], list[Any]],
        outputs: int,
    ) -> Block:
        def evaluate(
            at: Mapping[str, Any], unknowns: Sequence[Any], data: Mapping[str, Any], algebra: Any
        ) -> list[Any]:
            values = {**data, **self._scalars(self.field.scalars, at, unknowns, algebra), **at}
            return equations(values, algebra)

        scalars = [self.condition.scalars[n] for n in self.field.scalars if n not in self._switched]
        data = np.column_stack([times, inputs])
        columns = (TIME, *self.field.inputs)
        return Block(
            points, self.variables, self._active(scalars), columns, data, outputs, evaluate
        )

    def initial_block(self, bounds: Sequence[Bound]) -> Block:
        """Return initial values that are expressions in unknowns."""

        def evaluate(_: Any, unknowns: Sequence[Any], __: Any, algebra: Any) -> list[Any]:
            return [bound_value(b, self.condition.scalars, unknowns, algebra) for b in bounds]

        data = np.zeros((1, 0))
        return Block(None, (), self._active(bounds), (), data, len(bounds), evaluate)

    def event_block(self, point: int, time: float, expressions: Sequence[Expression]) -> Block:
        """Return the values after an event, from those before it at `point`."""
        names = {n for e in expressions for n in e.names}
        columns = (TIME, *(n for n in self.condition.inputs if n in names))
        inputs = [self.condition.inputs[n](np.array([time]))[0] for n in columns[1:]]

        def evaluate(
            at: Mapping[str, Any], unknowns: Sequence[Any], data: Mapping[str, Any], algebra: Any
        ) -> list[Any]:
            values = self._everything(names, at, unknowns, data, algebra)
            return [e.evaluate(values, algebra) for e in expressions]

        return Block(
            np.array([point]),
            self.variables,
            self._active_names(names - self._switched),
            columns,
            np.array([[time, *inputs]]),
            len(expressions),
            evaluate,
        )

    def residual_block(self, name: str, points: IntArray) -> Block:
        """Return the weighted residuals of observable `name`.

        A second output is the logarithm of the standard deviation, if that depends on unknowns.
        """
        series = self.condition.series[name]
        noise = self._problem.noise.get(name, Noise())
        times = self.condition.times[series.rows]
        model = self._problem.model
        expressions = [model.observables[name]]
        unknown_sd = self._noise_index.get(f"{name}_sd") if noise.sd == "estimate" else None
        sd_expression = noise.sd if isinstance(noise.sd, Expression) else None
        if series.sds is not None:
            sds, unknown_sd, sd_expression = series.sds, None, None
        elif noise.relative is not None:
            sds = noise.relative * np.abs(series.values)
        else:
            sds = np.full(len(times), noise.sd if isinstance(noise.sd, float) else 1.0)
        if sd_expression is not None:
            expressions += [
                model.observables[n] for n in sd_expression.names if n in model.observables
            ]
        measured = transformed(series.values, noise.transform)
        names = {n for e in expressions for n in e.names}
        if sd_expression is not None:
            names |= sd_expression.names - set(model.observables)
        names |= self._hidden(names)
        varies = unknown_sd is not None or (
            sd_expression is not None and self._varies(sd_expression)
        )
        columns = ("measured", "sd", TIME, *(n for n in self.condition.inputs if n in names))
        inputs = [self.condition.inputs[n](times) for n in columns[3:]]

        def evaluate(
            at: Mapping[str, Any], unknowns: Sequence[Any], data: Mapping[str, Any], algebra: Any
        ) -> list[Any]:
            values = self._everything(names, at, unknowns, data, algebra)
            predicted = model.observables[name].evaluate(values, algebra)
            if noise.transform is not None:
                predicted = algebra.call(noise.transform, [predicted])
            sd = data["sd"]
            if unknown_sd is not None:
                sd = unknowns[unknown_sd]
            elif sd_expression is not None:
                seen = {
                    n: model.observables[n].evaluate(values, algebra)
                    for n in sd_expression.names & set(model.observables)
                }
                sd = sd_expression.evaluate({**values, **seen}, algebra)
            difference = predicted - data["measured"]
            if unknown_sd is None and sd_expression is None:
                return [difference if (sds == 1.0).all() else difference / sd]
            return [difference / sd, algebra.call("log", [sd])] if varies else [difference / sd]

        active = set(self._active_names(names - self._switched).tolist())
        if unknown_sd is not None:
            active.add(unknown_sd)
        return Block(
            points[series.rows],
            self.variables,
            np.array(sorted(active), dtype=np.intp),
            columns,
            np.column_stack([measured, sds, times, *inputs]),
            1 + varies,
            evaluate,
        )

    def observe(self, values: Array, unknowns: Sequence[Any]) -> dict[str, Array]:
        """Return the observables at the data times from the variables there, (times, variables)."""
        at = {n: values[:, k] for k, n in enumerate(self.variables)}
        data = {TIME: self.condition.times}
        data |= {n: u(self.condition.times) for n, u in self.condition.inputs.items()}
        model = self._problem.model
        names = {n for e in model.observables.values() for n in e.names}
        names |= self._hidden(names)
        with np.errstate(all="ignore"):
            everything = self._everything(names, at, unknowns, data, NUMPY)
            observed = {
                n: np.array(np.broadcast_to(e.evaluate(everything, NUMPY), len(values)))
                for n, e in model.observables.items()
            }
        return observed

    # Names ------------------------------------------------------------------------------------

    def _scalars(
        self, names: Iterable[str], at: Mapping[str, Any], unknowns: Sequence[Any], algebra: Any
    ) -> dict[str, Any]:
        """Return the scalars among `names` that are not variables at points."""
        scalars = self.condition.scalars
        return {
            n: bound_value(scalars[n], scalars, unknowns, algebra) for n in names if n not in at
        }

    def _everything(
        self,
        names: frozenset[str] | set[str],
        at: Mapping[str, Any],
        unknowns: Sequence[Any],
        data: Mapping[str, Any],
        algebra: Any,
    ) -> dict[str, Any]:
        """Return all values that `names` need, with algebraic variables that were eliminated."""
        scalars = (names | self._hidden(names)) & self.condition.scalars.keys()
        values = {**data, **self._scalars(scalars, at, unknowns, algebra), **at}
        if names & set(self.field.model.algebraic) and self.field.elimination is not None:
            values = self.field.complete(values, algebra)
        return values

    def _hidden(self, names: set[str] | frozenset[str]) -> set[str]:
        """Return the names on which eliminated algebraic variables among `names` depend."""
        model = self.field.model
        if not names & set(model.algebraic) or self.field.elimination is None:
            return set()
        return {n for e in model.algebraic.values() for n in e.names}

    def _varies(self, expression: Expression) -> bool:
        """Return whether an expression in observables and scalars depends on unknowns."""
        seen = self.field.model.observables
        names = {m for n in expression.names for m in (seen[n].names if n in seen else {n})}
        names |= self._hidden(names)
        return bool(names & set(self.variables)) or len(self._active_names(names)) > 0

    def _active(self, bounds: Sequence[Bound]) -> IntArray:
        numbers = {k for b in bounds for k in unknowns_of(b, self.condition.scalars)}
        return np.array(sorted(numbers), dtype=np.intp)

    def _active_names(self, names: set[str] | frozenset[str]) -> IntArray:
        needed = names | self._hidden(names)
        return self._active(
            [self.condition.scalars[n] for n in needed & self.condition.scalars.keys()]
        )
