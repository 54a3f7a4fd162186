"""Explicit engine: heyoka's Taylor method on the variational equations.

Compact mode at optimisation level 1 was measured best from process start to result: 0.07 to
0.17 s to compile (full optimisation 0.2 to 7 s), at 1.2 to 2 times its run time. A Taylor
method pays little for accuracy, so the tolerance is well below what fits need: between 1e-9
and 1e-12 a step grows by a quarter.

heyoka's batch mode integrates as many problems at once as a vector of the processor has lanes:

- :class:`HeyokaEngine` spreads many directions of one trajectory over the lanes, each of which
  integrates the states and its share of the sensitivities. Measured, this makes Crauste's 18
  directions 3 times and a chain's 50 directions 4 times faster; a handful of directions gains
  nothing.
- :mod:`odefit.simulation.heyoka_batches` has one initial value problem in each lane.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import heyoka as hy
import numpy as np

from odefit.problem.arrays import Array, IntArray
from odefit.problem.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.cut_off import REASON, cut_off
from odefit.simulation.engine import EngineFailure, InitialState, SegmentSolution
from odefit.simulation.segments import Segment, input_value
from odefit.simulation.step_costs import DIRECTIONS_IN_LANES

# Where a solution ends, the search for events warns of every polynomial that is not finite.
hy.set_logger_level_error()

COMPILED_IN_MEMORY = 32 * 2**20
"""Bytes of compiled models that stay in memory; beyond that, heyoka lets go of those that were used
least lately. All of them are on disk as well. A small model has about 0.3 MB, so that a process
that fits thousands of models would feel heyoka's own limit of 2 GB as a leak."""

hy.llvm_state.set_memcache_limit(min(COMPILED_IN_MEMORY, hy.llvm_state.get_memcache_limit()))

LANES = 4
"""Problems, or shares of directions, that are integrated at once: as many doubles as the vectors
of most processors hold."""

LONG_INTEGRATION = 1_500_000
"""Steps times equations from which on the integrator asks after each step whether to end: such an
integration takes half a second, and asking costs it 8 % at most. Shorter ones are not asked."""


class HeyokaAlgebra:
    """heyoka expressions. Functions with kinks are not here: see :attr:`VectorField.smooth`.

    Attributes
    ----------
    edges
        Expressions that become zero where the right-hand side ends: the arguments of roots and
        fractional powers x^a, and x^(1 - a), which crosses zero where the solution of x' = -x^a
        does. A Taylor series does not see that end where the solution is a polynomial: the tank
        that x' = -sqrt(x) empties by t = 2 as (1 - t/2)^2 would fill again.
    """

    def __init__(self) -> None:
        self.edges: dict[str, Any] = {}

    def _edge(self, base: Any, exponent: float) -> None:
        if not exponent.is_integer() and hy.get_variables(base):
            self.edges[str(base)] = base
            if 0 < exponent < 1:
                rest = base ** hy.expression(1 - exponent)
                self.edges[str(rest)] = rest

    def number(self, text: str) -> Any:
        """See :class:`odefit.problem.expressions.Algebra`."""
        return hy.expression(float(text))

    def power(self, base: Any, exponent: Any) -> Any:
        """See :class:`odefit.problem.expressions.Algebra`."""
        with contextlib.suppress(ValueError):
            self._edge(base, float(str(exponent)))
        return base**exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """See :class:`odefit.problem.expressions.Algebra`."""
        if function == "log10":
            return hy.log(arguments[0]) * hy.expression(1.0 / math.log(10.0))
        if function == "sqrt":
            self._edge(arguments[0], 0.5)
        return getattr(hy, function)(arguments[0])


class VariationalEquations:
    """The compiled variational equations of a field, and the parameters that they are given.

    Parameters
    ----------
    field
        A smooth field without algebraic variables.
    columns
        Number of columns of sensitivities that each lane integrates.
    entries
        Pairs (scalar, column) of sensitivities of scalars that may not be zero.
    lanes
        Number of lanes.
    tolerance
        Relative and absolute tolerance, on the largest component.

    Attributes
    ----------
    place
        For each pair of `entries`, the row of `pars` that holds the scalar's sensitivity.
    first_multiplier
        Row of `pars` at which these begin; before them are the scalars and the inputs.
    pars
        Parameters by lane, shape (parameters, lanes); see :meth:`start`.
    integrator
        heyoka's integrator: the scalar one if there is one lane, else that for batches.
    """

    def __init__(
        self,
        field: VectorField,
        columns: int,
        entries: Sequence[tuple[int, int]],
        lanes: int,
        tolerance: float,
    ) -> None:
        self.first_multiplier = len(field.scalars) + 5 * len(field.inputs)
        self.place = {pair: self.first_multiplier + i for i, pair in enumerate(entries)}
        algebra = HeyokaAlgebra()
        system = _variational_system(field, columns, self.place, algebra)
        # heyoka counts the parameters that simplification has left in the equations.
        indices = [int(str(par)[1:]) for _, f in system for par in hy.get_params(f)]
        self._used = max(indices, default=-1) + 1
        self._lane: int | slice = 0 if lanes == 1 else slice(None)
        self.pars = np.zeros((self.first_multiplier + len(entries), lanes))
        self.size = len(system)
        make = hy.taylor_adaptive if lanes == 1 else hy.taylor_adaptive_batch
        event = hy.t_event if lanes == 1 else hy.t_event_batch
        self.integrator = make(
            system,
            np.zeros((len(system), lanes))[:, self._lane],
            pars=self.pars[: self._used, self._lane].copy(),
            tol=tolerance,
            t_events=[event(edge, cooldown=0.0) for edge in algebra.edges.values()],
            compact_mode=True,
            opt_level=1,
        )

    def start(self, time: float | Array, state: Array) -> Any:
        """Return the integrator at a time and state, shape (size, lanes), with `pars` set."""
        ta = self.integrator
        if self._lane == 0:
            ta.time = time
        else:
            ta.set_time(time)
        ta.state[:] = state[:, self._lane]
        ta.pars[:] = self.pars[: self._used, self._lane]
        return ta


class HeyokaEngine:
    """Taylor integration of states and sensitivities along one segment after the other.

    Parameters
    ----------
    field
        A smooth field without algebraic variables.
    pattern
        The sensitivities that are wanted.
    tolerance
        Relative and absolute tolerance, on the largest component.
    """

    name = "heyoka"

    def __init__(self, field: VectorField, pattern: SensitivityPattern, tolerance: float) -> None:
        self._n, self._p = len(field.states), len(field.scalars)
        self._m = pattern.directions
        self._lanes = LANES if self._m >= DIRECTIONS_IN_LANES else 1
        # Direction k is column k % columns of lane k // columns.
        columns = self._columns = math.ceil(self._m / self._lanes)
        entries = sorted(pattern.entries)
        own = sorted({(j, k % columns) for j, k in entries})
        self._equations = VariationalEquations(field, columns, own, self._lanes, tolerance)
        place = self._equations.place
        self._entries = index_arrays(entries)
        self._places = index_arrays([(place[j, k % columns], k // columns) for j, k in entries])

    def integrate(
        self, segment: Segment, initial: InitialState, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engine.Engine`."""
        n, m, p = self._n, self._m, self._p
        pars = self._equations.pars
        pars[:p] = initial.scalars[:, None]
        pars[self._places] = initial.scalar_sensitivities[self._entries]
        state = np.zeros((self._equations.size, self._lanes))
        state[:n] = initial.states[:, None]
        state[n:] = self._by_lane(initial.sensitivities)
        rows = []
        steps = 0
        for start, times, polynomials, end_is_wanted in segment.smooth_parts:
            pars[p : self._equations.first_multiplier] = polynomials.reshape(-1, 1)
            out, taken, stopped = self._propagate(start, times, state, max_steps - steps)
            steps += taken
            if stopped is not None:
                outcome, time, step = stopped
                return failure_of(outcome, time, steps, segment.times[-1], step)
            rows.append(out[1:] if end_is_wanted else out[1:-1])
            state = out[-1].copy()
            state[:n] = out[-1, :n, :1]
        values = rows[0] if len(rows) == 1 else np.concatenate(rows)
        count = len(values)
        # (time, column, state, lane) to (time, state, lane, column): lanes hold consecutive shares.
        columns = values[:, n:].reshape(count, self._columns, n, self._lanes).transpose(0, 2, 3, 1)
        return SegmentSolution(
            values[:, :n, 0],
            columns.reshape(count, n, self._lanes * self._columns)[:, :, :m],
            np.zeros((count, 0)),
            np.zeros((count, 0, m)),
            steps,
        )

    def _by_lane(self, sensitivities: Array) -> Array:
        """Return sensitivities, shape (n, m), as lanes hold them, shape (columns * n, lanes)."""
        full = np.zeros((self._n, self._lanes * self._columns))
        full[:, : self._m] = sensitivities
        shares = full.reshape(self._n, self._lanes, self._columns).transpose(2, 0, 1)
        return shares.reshape(self._columns * self._n, self._lanes)

    def _propagate(
        self, start: float, times: Array, state: Array, max_steps: int
    ) -> tuple[Array, int, tuple[Any, float, float] | None]:
        """Integrate from `start` through `times`.

        Returns
        -------
        values
            The solution at `start` and `times`, shape (k, size, lanes).
        steps
            Number of steps taken.
        stopped
            If the integration stopped early: heyoka's outcome, the time, and the length of the
            last step.
        """
        ta = self._equations.start(start, state)
        # heyoka's grid begins where the integrator stands.
        grid = np.concatenate([[start], times])
        limit = max(1, max_steps)
        asking: dict[str, Any] = {}
        if limit * self._equations.size >= LONG_INTEGRATION:
            ended = cut_off()
            asking["callback"] = lambda _: not ended.reached
        if self._lanes == 1:
            outcome, _, _, steps, _, out = ta.propagate_grid(grid, max_steps=limit, **asking)
            results = [(outcome, steps)]
            out = out[:, :, None]
            ends, lengths = [ta.time], [ta.last_h]
        else:
            _, out = ta.propagate_grid(
                np.repeat(grid[:, None], self._lanes, axis=1), max_steps=limit, **asking
            )
            results = [(outcome, steps) for outcome, _, _, steps in ta.propagate_res]
            ends, lengths = ta.time, ta.last_h
        steps = max(taken for _, taken in results)
        for (outcome, _), end, length in zip(results, ends, lengths, strict=True):
            if outcome != hy.taylor_outcome.time_limit:
                time = float(end) if math.isfinite(end) else start
                return out, steps, (outcome, time, float(abs(length)))
        if len(out) < len(grid) or not np.isfinite(out[-1]).all():
            return out, steps, (hy.taylor_outcome.err_nf_state, float(times[-1]), 0.0)
        return out, steps, None


def _variational_system(
    field: VectorField,
    columns: int,
    place: dict[tuple[int, int], int],
    algebra: HeyokaAlgebra,
) -> list[tuple[Any, Any]]:
    """Return the field and its variational equations for some columns of sensitivities.

    Parameter `place[j, k]` is the sensitivity of scalar j in column k, which multiplies df/dp_j.
    """
    n, p = len(field.states), len(field.scalars)
    # The names of the problem could clash with those of the sensitivities.
    states = _variables([f"x{i}" for i in range(n)])
    scalars = [hy.par[j] for j in range(p)]
    values = dict(zip(field.states, states, strict=True))
    values |= dict(zip(field.scalars, scalars, strict=True))
    values[TIME] = hy.time
    for k, name in enumerate(field.inputs):
        values[name] = input_value([hy.par[p + 5 * k + i] for i in range(5)], hy.time)
    zero = hy.expression(0.0)
    rhs = [zero + f for f in field.rhs(values, algebra)]
    system = list(zip(states, rhs, strict=True))
    if not columns:
        return system
    tensors = hy.diff_tensors(rhs, diff_args=[*states, *scalars], diff_order=1)
    jacobian = np.array(tensors.jacobian).reshape(n, n + p)
    for k in range(columns):
        column = _variables([f"s{i}_{k}" for i in range(n)])
        for i in range(n):
            terms = [jacobian[i, j] * column[j] for j in range(n) if jacobian[i, j] != zero]
            terms += [
                jacobian[i, n + j] * hy.par[place[j, k]]
                for j in range(p)
                if (j, k) in place and jacobian[i, n + j] != zero
            ]
            system.append((column[i], hy.sum(terms) if terms else zero))
    return system


def _variables(names: Sequence[str]) -> list[Any]:
    made = hy.make_vars(*names)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def index_arrays(pairs: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """Return the first and the second numbers of pairs, to index a matrix with."""
    rows, columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return rows, columns


def failure_of(outcome: Any, time: float, steps: int, end: float, step: float) -> EngineFailure:
    """Return in words why heyoka stopped at `time` before `end`, its last step being `step`."""
    if outcome == hy.taylor_outcome.step_limit:
        ahead = float(end - time) / step if step > 0 else math.inf
        return EngineFailure(time, f"more than {steps} steps are needed", True, steps, ahead)
    if outcome == hy.taylor_outcome.cb_stop:
        reason = REASON
    elif outcome == hy.taylor_outcome.err_nf_state:
        reason = "the solution grows without bound or is not defined"
    else:  # a terminal event
        reason = "a root or a fractional power reaches zero, beyond which it is not defined"
    return EngineFailure(time, reason, steps=steps)
