"""Non-stiff engine: heyoka's Taylor method on the variational equations.

Compact mode at optimisation level 1 was measured best from process start to result: 0.07 to
0.17 s to compile (full optimisation 0.2 to 7 s), at 1.2 to 2 times its run time. A Taylor
method pays little for accuracy, so the tolerance is well below what fits need: between 1e-9
and 1e-12 a step grows by a quarter.

Many directions are spread over the lanes of the processor's vector unit: each lane integrates
the states and its share of the sensitivities. Measured, this makes Crauste's 18 directions 3
times and a chain's 50 directions 4 times faster; a handful of directions gains nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import heyoka as hy
import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import Array
from odefit.problem.expressions import TIME
from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.engine import Leg, Path, Seed, Stop

# Where a solution ends, the search for events warns of every polynomial that is not finite.
hy.set_logger_level_error()

LANES = 4
"""Lanes that directions are spread over; doubles in the vectors of most processors."""

MANY_DIRECTIONS = 12
"""Directions from which on that pays for the longer compilation (0.1 to 0.2 s more)."""


class HeyokaAlgebra:
    """heyoka expressions. Functions with kinks are not here: see :attr:`VectorField.smooth`.

    Attributes
    ----------
    edges
        What becomes zero where the right-hand side ends: the arguments of roots and fractional
        powers x^a, and x^(1 - a), which crosses zero where the solution of x' = -x^a does. A
        Taylor series does not see that end where the solution is a polynomial: the tank that
        x' = -sqrt(x) empties by t = 2 as (1 - t/2)^2 would fill again.
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


class HeyokaEngine:
    """Taylor integration of states and sensitivities, compiled once.

    Parameters
    ----------
    field
        A smooth field without algebraic variables.
    structure
        Which sensitivities are wanted.
    tolerance
        Relative and absolute, on the largest component.
    """

    name = "heyoka"

    def __init__(self, field: VectorField, structure: Structure, tolerance: float) -> None:
        self._n, self._p = len(field.states), len(field.scalars)
        self._m = structure.directions
        self._lanes = LANES if self._m >= MANY_DIRECTIONS else 1
        # Direction k is column k % slots of lane k // slots.
        self._slots = math.ceil(self._m / self._lanes)
        self._inputs = 5 * len(field.inputs)
        entries = sorted(structure.entries)
        multipliers = sorted({(j, k % self._slots) for j, k in entries})
        first = self._p + self._inputs
        place = {pair: first + i for i, pair in enumerate(multipliers)}
        self._entries = (
            _indices([j for j, _ in entries]),
            _indices([k for _, k in entries]),
        )
        self._places = (
            _indices([place[j, k % self._slots] for j, k in entries]),
            _indices([k // self._slots for _, k in entries]),
        )
        algebra = HeyokaAlgebra()
        system = system_of(field, self._slots, place, algebra)
        size = len(system)
        self._pars = np.zeros((first + len(multipliers), self._lanes))
        self._state = np.zeros((size, self._lanes))
        # heyoka counts the parameters that simplification has left in the equations.
        indices = [int(str(par)[1:]) for _, f in system for par in hy.get_params(f)]
        self._used = max(indices, default=-1) + 1
        make = hy.taylor_adaptive if self._lanes == 1 else hy.taylor_adaptive_batch
        event = hy.t_event if self._lanes == 1 else hy.t_event_batch
        flat = slice(None) if self._lanes > 1 else 0
        self._integrator = make(
            system,
            self._state[:, flat].copy(),
            pars=self._pars[: self._used, flat].copy(),
            tol=tolerance,
            t_events=[event(edge, cooldown=0.0) for edge in algebra.edges.values()],
            compact_mode=True,
            opt_level=1,
        )

    def integrate(self, leg: Leg, seed: Seed, max_steps: int) -> Path | Stop:
        """See :class:`odefit.simulation.engine.Engine`."""
        n, m, p = self._n, self._m, self._p
        pars, state = self._pars, self._state
        pars[:p] = seed.scalars[:, None]
        pars[self._places] = seed.scalar_sensitivities[self._entries]
        state[:n] = seed.states[:, None]
        state[n:] = self._columns(seed.sensitivities)
        rows = []
        steps = 0
        for start, times, polynomials, wanted in leg.stretches:
            pars[p : p + self._inputs] = polynomials.reshape(-1, 1)
            out, taken, stop = self._propagate(start, times, max_steps - steps)
            steps += taken
            if stop is not None:
                outcome, time, step = stop
                ahead = (leg.times[-1] - time) / step if step > 0 else math.inf
                return stop_of(outcome, time, steps, ahead)
            rows.append(out[1:] if wanted else out[1:-1])
            state[:] = out[-1]
            state[:n] = out[-1, :n, :1]
        values = rows[0] if len(rows) == 1 else np.concatenate(rows)
        count = len(values)
        # (time, slot, state, lane) to (time, state, lane, slot): lanes hold consecutive shares.
        columns = values[:, n:].reshape(count, self._slots, n, self._lanes).transpose(0, 2, 3, 1)
        return Path(
            values[:, :n, 0],
            columns.reshape(count, n, self._lanes * self._slots)[:, :, :m],
            np.zeros((count, 0)),
            np.zeros((count, 0, m)),
            steps,
        )

    def _columns(self, sensitivities: Array) -> Array:
        """Sensitivities, shape (n, m), as the lanes hold them, shape (slots * n, lanes)."""
        full = np.zeros((self._n, self._lanes * self._slots))
        full[:, : self._m] = sensitivities
        lanes = full.reshape(self._n, self._lanes, self._slots).transpose(2, 0, 1)
        return lanes.reshape(self._slots * self._n, self._lanes)

    def _propagate(
        self, start: float, times: Array, max_steps: int
    ) -> tuple[Array, int, tuple[Any, float, float] | None]:
        """Values at `start` and `times`, shape (k, size, lanes); how many steps; what stopped it.

        The last is the outcome, the time, and the length of the last step.
        """
        ta = self._integrator
        # heyoka's grid begins where the integrator stands.
        grid = np.concatenate([[start], times])
        limit = max(1, max_steps)
        if self._lanes == 1:
            ta.time = start
            ta.state[:] = self._state[:, 0]
            ta.pars[:] = self._pars[: self._used, 0]
            outcome, _, _, steps, _, out = ta.propagate_grid(grid, max_steps=limit)
            results = [(outcome, steps)]
            out = out[:, :, None]
            ends, lengths = [ta.time], [ta.last_h]
        else:
            ta.set_time(start)
            ta.state[:] = self._state
            ta.pars[:] = self._pars[: self._used]
            _, out = ta.propagate_grid(
                np.repeat(grid[:, None], self._lanes, axis=1), max_steps=limit
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


def system_of(
    field: VectorField,
    slots: int,
    place: dict[tuple[int, int], int],
    algebra: HeyokaAlgebra,
) -> list[tuple[Any, Any]]:
    """The field and `slots` columns of sensitivities; parameter `place` multiplies df/dscalar."""
    n, p = len(field.states), len(field.scalars)
    # The names of the problem could clash with those of the sensitivities.
    states = _variables([f"x{i}" for i in range(n)])
    scalars = [hy.par[j] for j in range(p)]
    values = dict(zip(field.states, states, strict=True))
    values |= dict(zip(field.scalars, scalars, strict=True))
    values[TIME] = hy.time
    for k, name in enumerate(field.inputs):
        left, *c = (hy.par[p + 5 * k + i] for i in range(5))
        s = hy.time - left
        values[name] = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
    zero = hy.expression(0.0)
    rhs = [zero + f for f in field.rhs(values, algebra)]
    system = list(zip(states, rhs, strict=True))
    if not slots:
        return system
    tensors = hy.diff_tensors(rhs, diff_args=[*states, *scalars], diff_order=1)
    jacobian = np.array(tensors.jacobian).reshape(n, n + p)
    for k in range(slots):
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


def _indices(values: Sequence[int]) -> npt.NDArray[np.intp]:
    return np.array(values, dtype=np.intp)


def stop_of(outcome: Any, time: float, steps: int, ahead: float) -> Stop:
    """An outcome of heyoka's, other than having arrived, in words."""
    if outcome == hy.taylor_outcome.step_limit:
        return Stop(time, f"more than {steps} steps are needed", True, steps, ahead)
    if outcome == hy.taylor_outcome.err_nf_state:
        return Stop(time, "the solution grows without bound or is not defined", steps=steps)
    edge = "a root or a fractional power reaches zero, beyond which it is not defined"
    return Stop(time, edge, steps=steps)  # a terminal event
