"""The periodic state to which repeated events lead, and its sensitivities.

One period from the states x leads to the states F(x, p). The periodic state is the fixed point x =
F(x, p), which Newton's method finds with the derivatives M = dF/dx of the trajectory. One step is
exact if the equations are linear in the states. Repetition approaches it if all eigenvalues of M
are less than one in magnitude. Derivatives follow from the implicit function theorem: (I - M) dx/dp
= dF/dp.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.experiment import Input
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import ConsistentValues, EngineFailure, Values
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.segments import inputs_before
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

PERIODS = 200  # largest number of integrated periods
FIRST_PERIODS = 3  # periods that are integrated before Newton's method is tried

CONVERGED = 1e-11
"""Change over one period, relative to the states' sizes, at which the state is periodic."""

STAGNATED = 1e-8
"""Change over one period at which the state is periodic if a further step does not reduce it: the
accuracy of the integration is reached."""

SMALL_STATE = 1e-6
"""Smallest reference size of a state for changes, relative to the largest state."""

ATTRACTING = 1.0 - 1e-9  # largest |eigenvalue| of M with which repetition approaches the state


class PeriodicState:
    """The state of a condition at t0 after its repeated events."""

    def __init__(self, field: VectorField, condition: Condition, engines: Engines) -> None:
        self._field, self._condition, self._engines = field, condition, engines
        self._map: ConditionMap | LocatedMap | None = None

    def __call__(
        self, propagation: Propagation, vector: Array, sizes: Array, now: Values
    ) -> ConsistentValues | EngineFailure:
        """Return the values with which the condition begins, or a failure."""
        fixed = self._fixed_point(vector, now.states)
        if isinstance(fixed, EngineFailure):
            return replace(fixed, reason=f"before the experiment, {fixed.reason}")
        states, last, by_states = fixed
        n = len(vector)
        columns = {unknown: k for k, unknown in enumerate(last.unknowns)}
        by_unknown = np.zeros((len(states), len(propagation.unknowns)))
        for k, unknown in enumerate(propagation.unknowns):
            if unknown in columns and unknown < n:
                by_unknown[:, k] = last.sensitivities[-1][:, columns[unknown]]
        change = np.linalg.solve(np.eye(len(states)) - by_states, by_unknown) * sizes
        values = now._replace(states=states, sensitivities=change, algebraic=last.algebraic[-1])
        return propagation.consistent(self._condition.t0, vector, values)

    def _fixed_point(
        self, vector: Array, states: Array
    ) -> tuple[Array, Trajectory, Array] | EngineFailure:
        """Return the periodic state, the last period, and the derivatives M."""
        t0, names = self._condition.t0, self._field.states
        smallest, before = np.inf, np.inf
        for count in range(PERIODS):
            run = self._period(vector, states)
            if isinstance(run, Failure):
                return EngineFailure(run.time, run.reason)
            end, by_states = run.states[-1], self._by_states(run, len(vector))
            size = np.maximum(np.abs(end), np.abs(states))
            size = np.maximum(size, SMALL_STATE * size.max(initial=0.0))
            size[size == 0.0] = 1.0
            changes = np.abs(end - states) / size
            change = float(changes.max(initial=0.0))
            if change <= CONVERGED or (change <= STAGNATED and change >= 0.5 * before):
                eigenvalues = np.abs(np.linalg.eigvals(by_states))
                if eigenvalues.max(initial=0.0) > ATTRACTING:
                    break
                step = np.linalg.solve(np.eye(len(states)) - by_states, end - states)
                return states + step, run, by_states
            newton = None
            if count >= FIRST_PERIODS and change < smallest:
                newton = self._newton(states, end, by_states)
            smallest, before = min(smallest, change), change
            states = end if newton is None else newton
        slowest = names[int(np.argmax(changes))]
        return EngineFailure(
            t0,
            f"repeated events lead to no periodic state: {slowest} still changes by "
            f"{change:.2g} of its size over one period; it may accumulate without end",
        )

    def _newton(self, states: Array, end: Array, by_states: Array) -> Array | None:
        """Return the end of a step of Newton's method; None if it leads astray."""
        matrix = np.eye(len(states)) - by_states
        if np.linalg.cond(matrix) > 1.0 / CONVERGED:
            return None
        states_next = states + np.linalg.solve(matrix, end - states)
        negative = (states_next < 0.0) & (states >= 0.0) & (end >= 0.0)
        usable = np.isfinite(states_next).all() and not negative.any()
        return np.asarray(states_next) if usable else None

    def _by_states(self, run: Trajectory, n: int) -> Array:
        derivatives = np.zeros((len(self._field.states), len(self._field.states)))
        for k, unknown in enumerate(run.unknowns):
            if unknown >= n:
                derivatives[:, unknown - n] = run.sensitivities[-1][:, k]
        return derivatives

    def _period(self, vector: Array, states: Array) -> Trajectory | Failure:
        """Integrate one period; its initial states are unknowns after those of the problem."""
        condition, repeated = self._condition, self._condition.repeated
        assert repeated is not None
        if self._map is None:
            held = inputs_before(condition, self._field.inputs)
            at = np.array([condition.t0])
            one = replace(
                condition,
                t0=condition.t0 - repeated.period,
                times=at,
                series={},
                inputs={
                    n: Input(at, np.array([v]), "constant")
                    for n, v in zip(self._field.inputs, held, strict=True)
                },
                initial={s: len(vector) + i for i, s in enumerate(self._field.states)},
                events=repeated.events,
                located=repeated.located,
                measured_after=frozenset(),
                steady_start=False,
                repeated=None,
            )
            made = LocatedMap if one.located else ConditionMap
            self._map = made(self._field, one, self._engines)
        return self._map(np.concatenate([vector, states]))
