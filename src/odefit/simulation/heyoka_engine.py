"""Non-stiff engine: heyoka's Taylor method on the variational equations.

Compact mode at optimisation level 1 was measured best from process start to result: 0.07 to
0.17 s to compile (full optimisation 0.2 to 7 s), at 1.2 to 2 times its run time. A Taylor
method pays little for accuracy, so the tolerance is well below what fits need: between 1e-9
and 1e-12 a step grows by a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import heyoka as hy
import numpy as np

from odefit.problem.algebras import Array
from odefit.problem.expressions import TIME
from odefit.simulation.engine import Leg, Path, Seed, Stop
from odefit.simulation.field import Structure, VectorField

TOLERANCE = 1e-12


class HeyokaAlgebra:
    """heyoka expressions. Functions with kinks are not here: see :attr:`VectorField.smooth`."""

    def number(self, text: str) -> Any:
        return hy.expression(float(text))

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        if function == "log10":
            return hy.log(arguments[0]) * hy.expression(1.0 / math.log(10.0))
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

    def __init__(
        self, field: VectorField, structure: Structure, tolerance: float = TOLERANCE
    ) -> None:
        self._n = len(field.states)
        self._m = structure.directions
        self._entries = sorted(structure.entries)
        self._rows = np.array([j for j, _ in self._entries], dtype=np.intp)
        self._columns = np.array([k for _, k in self._entries], dtype=np.intp)
        self._p = len(field.scalars)
        self._inputs = len(field.inputs)
        system = self._system(field)
        # heyoka counts the parameters that simplification has left in the equations.
        self._pars = np.zeros(self._p + 5 * self._inputs + len(self._entries))
        indices = [int(str(par)[1:]) for _, f in system for par in hy.get_params(f)]
        self._used = max(indices, default=-1) + 1
        self._integrator = hy.taylor_adaptive(
            system,
            np.zeros(self._n * (1 + self._m)),
            pars=np.zeros(self._used),
            tol=tolerance,
            compact_mode=True,
            opt_level=1,
        )

    def _system(self, field: VectorField) -> list[tuple[Any, Any]]:
        algebra = HeyokaAlgebra()
        n, p = self._n, self._p
        # The names of the problem could clash with those of the sensitivities.
        states = hy.make_vars(*(f"x{i}" for i in range(n)))
        states = states if isinstance(states, (list, tuple)) else [states]
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
        if not self._m:
            return system
        jacobian = np.array(
            hy.diff_tensors(rhs, diff_args=[*states, *scalars], diff_order=1).jacobian
        ).reshape(n, n + p)
        first = p + 5 * self._inputs
        multiplier = {entry: hy.par[first + i] for i, entry in enumerate(self._entries)}
        for k in range(self._m):
            column = hy.make_vars(*(f"s{i}_{k}" for i in range(n)))
            column = column if isinstance(column, (list, tuple)) else [column]
            for i in range(n):
                terms = [jacobian[i, j] * column[j] for j in range(n) if jacobian[i, j] != zero]
                terms += [
                    jacobian[i, n + j] * multiplier[j, k]
                    for j in range(p)
                    if (j, k) in multiplier and jacobian[i, n + j] != zero
                ]
                system.append((column[i], hy.sum(terms) if terms else zero))
        return system

    def integrate(self, leg: Leg, seed: Seed, max_steps: int) -> Path | Stop:
        """See :class:`odefit.simulation.engine.Engine`."""
        ta = self._integrator
        n, m, p = self._n, self._m, self._p
        pars = self._pars
        pars[:p] = seed.scalars
        pars[p + 5 * self._inputs :] = seed.scalar_sensitivities[self._rows, self._columns]
        state = ta.state
        state[:n] = seed.states
        state[n:] = seed.sensitivities.T.ravel()
        rows = []
        steps = 0
        for start, times, polynomials, wanted in leg.stretches:
            pars[p : p + 5 * self._inputs] = polynomials.ravel()
            ta.pars[:] = pars[: self._used]
            ta.time = start
            # heyoka's grid begins where the integrator stands.
            grid = np.concatenate([[start], times])
            outcome, _, _, taken, _, out = ta.propagate_grid(
                grid, max_steps=max(1, max_steps - steps)
            )
            steps += taken
            if outcome != hy.taylor_outcome.time_limit or len(out) < len(grid):
                return self._stop(outcome, ta.time if math.isfinite(ta.time) else start, steps)
            if not np.isfinite(out[-1]).all():
                return Stop(float(times[-1]), "the solution is not finite", steps=steps)
            rows.append(out[1:] if wanted else out[1:-1])
            # The dense output ends on the grid; the integrator itself has stopped there too.
            state[:] = out[-1]
        values = rows[0] if len(rows) == 1 else reduce(_stack, rows)
        count = len(values)
        return Path(
            values[:, :n],
            values[:, n:].reshape(count, m, n).transpose(0, 2, 1),
            np.zeros((count, 0)),
            np.zeros((count, 0, m)),
            steps,
        )

    def _stop(self, outcome: Any, time: float, steps: int) -> Stop:
        if outcome == hy.taylor_outcome.step_limit:
            return Stop(time, f"more than {steps} steps are needed", True, steps)
        if outcome == hy.taylor_outcome.err_nf_state:
            return Stop(time, "the solution grows without bound or is not defined", steps=steps)
        return Stop(time, f"heyoka: {outcome}", steps=steps)


def _stack(a: Array, b: Array) -> Array:
    return np.concatenate([a, b])
