"""The forward map of a problem: from unknowns to residuals and their Jacobian."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from odefit.problem.algebras import Array, Dual
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.engines import EngineName, EngineSwitch
from odefit.simulation.failure import Failure
from odefit.simulation.field import VectorField
from odefit.simulation.noise import Block, weigh
from odefit.simulation.observation import observe
from odefit.simulation.trajectory import ConditionMap, Trajectory


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Residuals of a problem at one vector of unknowns.

    Attributes
    ----------
    cost
        What is minimised: half the sum of squared residuals (measurements and priors), plus
        the logarithms of those standard deviations that depend on unknowns.
    residuals, jacobian
        Shapes (r,) and (r, unknowns), with jacobian' residuals the gradient of `cost` and
        jacobian' jacobian its Gauss-Newton (Fisher) matrix. A standard deviation that depends
        on unknowns adds rows of its own to those of its measurements.
    objective
        Weighted sum of squared residuals, measurements and priors.
    log_likelihood
        Of the measurements, where their noise is given or estimated; else None.
    """

    cost: float
    residuals: Array
    jacobian: Array
    objective: float
    log_likelihood: float | None


class ForwardMap:
    """Trajectories, residuals and their derivatives for one problem.

    Models are compiled when they are first needed.

    Parameters
    ----------
    problem
        With its data.
    engine
        ``"auto"`` recognises stiffness; ``"heyoka"`` or ``"casadi"`` forces one engine.
    """

    def __init__(self, problem: Problem, engine: EngineName = "auto") -> None:
        self.problem = problem
        self.field = VectorField.of(problem.model, problem.conditions)
        self.engines = EngineSwitch(engine)
        self._conditions = [
            ConditionMap(self.field, c, self.engines) for c in problem.conditions
        ]
        self._plain: list[ConditionMap] | None = None
        self._noise_index = {
            u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"
        }
        self.given_noise = any(
            series.sds is not None or noise.sd is not None or noise.relative is not None
            for c in problem.conditions
            for name, series in c.series.items()
            for noise in [problem.noise.get(name, Noise())]
        )

    def trajectory(
        self,
        vector: Array,
        experiment: str | None = None,
        times: Array | None = None,
        *,
        sensitivities: bool = True,
    ) -> Trajectory | Failure:
        """States (and sensitivities) of one experiment (the first).

        Parameters
        ----------
        vector
            Unknowns, shape (n,).
        times
            Increasing, not before t0; None for the data times.

        Raises
        ------
        InputError
            Unknown experiment, or times that are not increasing or before t0.
        """
        condition = self.problem.condition(experiment)
        position = self.problem.conditions.index(condition)
        if times is not None:
            times = np.asarray(times, dtype=float)
            if len(times) and (np.any(np.diff(times) <= 0) or times[0] < condition.t0):
                raise InputError(f"times must increase and not be before t0 = {condition.t0:g}")
        if sensitivities:
            return self._conditions[position](vector, times)
        if self._plain is None:
            self._plain = [
                ConditionMap(self.field, c, self.engines, sensitivities=False)
                for c in self.problem.conditions
            ]
        return self._plain[position](vector, times)

    def evaluate(self, vector: Array) -> Evaluation | Failure:
        """Residuals and Jacobian at `vector`, shape (n,); a failure where there are none."""
        n = len(vector)
        values: list[Array] = []
        rows: list[Array] = []
        cost = 0.0
        squares = 0.0
        log_likelihood = 0.0
        for block in self._blocks(vector):
            if isinstance(block, Failure):
                return block
            r, sd = block.residuals, block.sd
            jacobian = r.gradient(n, len(r.value))
            values.append(r.value)
            rows.append(jacobian)
            log_sd = float(np.sum(np.log(sd.value)))
            half = 0.5 * float(r.value @ r.value)
            squares += 2 * half
            cost += half
            log_likelihood += block.log_density_offset - half - log_sd
            log_likelihood -= 0.5 * len(r.value) * math.log(2 * math.pi)
            if sd.partials:
                # Fisher scoring: the gradient of r^2/2 + log(sd) is r r' + sd'/sd, its Fisher
                # matrix h' h'/sd^2 + 2 (sd'/sd)^2, where r' holds h'/sd - r sd'/sd.
                cost += log_sd
                relative = sd.gradient(n, len(r.value)) / np.asarray(sd.value)[:, None]
                jacobian += r.value[:, None] * relative
                rows.append(math.sqrt(2.0) * relative)
                values.append((1.0 - r.value**2) / math.sqrt(2.0))
        for i, unknown in enumerate(self.problem.unknowns):
            prior = unknown.parameter.prior
            if prior is not None:
                r = (vector[i] - prior.mean) / prior.sd
                row = np.zeros((1, n))
                row[0, i] = 1.0 / prior.sd
                values.append(np.array([r]))
                rows.append(row)
                cost += 0.5 * r * r
                squares += r * r
        return Evaluation(
            cost,
            np.concatenate(values),
            np.concatenate(rows),
            squares,
            log_likelihood if self.given_noise else None,
        )

    def batch(
        self, vectors: Sequence[Array] | Array, executor: Executor | None = None
    ) -> list[Evaluation | Failure]:
        """:meth:`evaluate` for many vectors, shape (count, n), over `executor` if there is one."""
        if executor is None:
            return [self.evaluate(v) for v in vectors]
        chunks = [c for c in np.array_split(np.asarray(vectors), 16) if len(c)]
        futures = [executor.submit(_evaluate_chunk, self.problem, c) for c in chunks]
        return [e for f in futures for e in f.result()]

    def predictions(
        self, condition: Condition, vector: Array, trajectory: Trajectory
    ) -> dict[str, Dual]:
        """Observables at the trajectory's times."""
        with np.errstate(all="ignore"):
            return observe(self.field, condition, vector, trajectory)

    def _blocks(self, vector: Array) -> Iterator[Block | Failure]:
        for position, condition in enumerate(self.problem.conditions):
            trajectory = self._conditions[position](vector)
            if isinstance(trajectory, Failure):
                yield trajectory
                return
            predicted = self.predictions(condition, vector, trajectory)
            for name, series in condition.series.items():
                noise = self.problem.noise.get(name, Noise())
                estimated = None if series.sds is not None else self._noise_index.get(f"{name}_sd")
                with np.errstate(all="ignore"):
                    block = weigh(noise, series, predicted, name, condition, vector, estimated)
                fault = self._fault(block, condition, name, predicted[name])
                yield fault or block

    def _fault(
        self, block: Block, condition: Condition, name: str, predicted: Dual
    ) -> Failure | None:
        """Why the residuals are unusable, if they are."""
        rows = condition.series[name].rows
        sd = np.broadcast_to(block.sd.value, rows.shape)
        wrong = np.flatnonzero(~np.isfinite(block.residuals.value) | ~(sd > 0))
        if not len(wrong):
            partials = block.residuals.partials.values()
            if all(np.isfinite(p).all() for p in partials):
                return None
            return Failure(
                condition.name, condition.t0, f"the derivatives of '{name}' are not finite"
            )
        i = wrong[0]
        time = float(condition.times[rows[i]])
        value = predicted.value[rows[i]]
        if not np.isfinite(value):
            return Failure(condition.name, time, f"observable '{name}' is {value}")
        if not sd[i] > 0:
            return Failure(
                condition.name, time, f"the standard deviation of '{name}' is {sd[i]:g}"
            )
        return Failure(
            condition.name, time, f"observable '{name}' is {value:g}: it has no logarithm"
        )


def _evaluate_chunk(problem: Problem, vectors: Array) -> list[Evaluation | Failure]:
    return ForwardMap(problem).batch(vectors)


@dataclass(frozen=True, eq=False)
class Simulation:
    """One experiment simulated.

    Attributes
    ----------
    times
        Shape (k,).
    states, observables
        By name, shape (k,); `states` also holds the algebraic variables.
    """

    times: Array
    states: dict[str, Array]
    observables: dict[str, Array]


def simulate(
    problem: Problem,
    vector: Array,
    times: Array | None = None,
    experiment: str | None = None,
    *,
    forward: ForwardMap | None = None,
) -> Simulation | Failure:
    """States and observables of one experiment at `times` (the data times).

    Raises
    ------
    InputError
        Unknown experiment, or times that are not increasing or before t0.
    """
    forward = forward or ForwardMap(problem)
    trajectory = forward.trajectory(vector, experiment, times, sensitivities=False)
    if isinstance(trajectory, Failure):
        return trajectory
    condition = problem.condition(experiment)
    predicted = forward.predictions(condition, vector, trajectory)
    states = {n: trajectory.states[:, i] for i, n in enumerate(forward.field.states)}
    states |= {n: trajectory.algebraic[:, i] for i, n in enumerate(forward.field.algebraic)}
    observables = {n: np.asarray(d.value, dtype=float) for n, d in predicted.items()}
    return Simulation(trajectory.times, states, observables)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured against predicted values of one observable in one experiment, shape (n,) each."""

    experiment: str
    observable: str
    times: Array
    measured: Array
    predicted: Array
    standardized: Array


def residual_table(problem: Problem, vector: Array) -> list[Residuals] | Failure:
    """Residuals of every observable in every experiment, on the scale of its noise model."""
    forward = ForwardMap(problem)
    found = []
    blocks = forward._blocks(vector)
    for condition in problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                return block
            found.append(
                Residuals(
                    condition.name,
                    name,
                    condition.times[series.rows],
                    series.values,
                    block.predicted,
                    np.asarray(block.residuals.value, dtype=float),
                )
            )
    return found
