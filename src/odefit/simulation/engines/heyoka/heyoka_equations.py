"""The variational equations of a field, compiled by heyoka."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import heyoka as hy
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.cut_off import REASON
from odefit.simulation.engines.engine import EngineFailure
from odefit.simulation.engines.segments import input_value

# At the end of a solution, the search for events warns of every polynomial that is not finite.
hy.set_logger_level_error()

COMPILED_IN_MEMORY = 32 * 2**20
"""Bytes of compiled models that stay in memory; beyond that, heyoka drops the least recently used.
All of them are on disk as well. A small model has about 0.3 MB, so that with heyoka's own limit of
2 GB a process that fits thousands of models would seem to leak memory."""

hy.llvm_state.set_memcache_limit(min(COMPILED_IN_MEMORY, hy.llvm_state.get_memcache_limit()))


LANES = 4
"""Problems, or shares of directions, integrated at once: as many doubles as most processors'
vectors hold."""


class HeyokaAlgebra:
    """heyoka expressions. Functions with kinks are missing: see :attr:`VectorField.smooth`.

    `edges`: expressions that become zero where the domain of the right-hand side ends. They are the
    arguments of roots and fractional powers x^a, and x^(1 - a), which crosses zero where the
    solution of x' = -x^a does. A Taylor series does not detect that end if the solution is a
    polynomial: the tank that x' = -sqrt(x) empties by t = 2 as (1 - t/2)^2 would fill again.
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
        """See :class:`odefit.expressions.expressions.Algebra`."""
        return hy.expression(float(text))

    def power(self, base: Any, exponent: Any) -> Any:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        with contextlib.suppress(ValueError):
            self._edge(base, float(str(exponent)))
        return base**exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        if function == "log10":
            return hy.log(arguments[0]) * hy.expression(1.0 / math.log(10.0))
        if function == "sqrt":
            self._edge(arguments[0], 0.5)
        return getattr(hy, function)(arguments[0])


def first_multiplier(field: VectorField) -> int:
    """Return the row of the first sensitivity of a scalar: scalars and inputs come before."""
    return len(field.scalars) + 5 * len(field.inputs)


def multiplier_places(
    field: VectorField, entries: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """Return the rows of sensitivities of scalars among the parameters, by (scalar, column)."""
    first = first_multiplier(field)
    return {pair: first + i for i, pair in enumerate(entries)}


class VariationalEquations:
    """The compiled variational equations of a field, and their parameters.

    Each lane integrates some columns of sensitivities; `entries` are pairs (scalar, column) of
    sensitivities of scalars that may not be zero. With `scaled`, states and sensitivities are
    integrated in units that :meth:`set_scales` sets. The parameters by lane, `pars`, are the
    scalars and the inputs. From row `first_multiplier` on they are the sensitivities of scalars, by
    pair in row `place`, and from row `first_scale` on the units. The integrator is the scalar one
    if there is one lane, else that for batches.
    """

    def __init__(
        self,
        field: VectorField,
        columns: int,
        entries: Sequence[tuple[int, int]],
        lanes: int,
        tolerance: float,
        *,
        scaled: bool = False,
    ) -> None:
        self.place = multiplier_places(field, entries)
        self.first_multiplier = first_multiplier(field)
        self.first_scale = self.first_multiplier + len(entries)
        self.scales = np.ones(len(field.states))
        self._lane: int | slice = 0 if lanes == 1 else slice(None)
        self.pars = np.zeros((self.first_scale + 2 * len(field.states) * scaled, lanes))
        first_scale = self.first_scale if scaled else None
        self._compiled = _compiled(field, columns, self.place, lanes, tolerance, first_scale)
        self.size, self.used = self._compiled.size, self._compiled.used
        self.integrator = copy(self._compiled.integrator)

    def start(self, time: float | Array, state: Array) -> Any:
        """Return the integrator at a time and state, shape (size, lanes), with `pars` set."""
        ta = self.integrator
        if self._lane == 0:
            ta.time = time
        else:
            ta.set_time(time)
        ta.state[:] = state[:, self._lane]
        ta.pars[:] = self.pars[: self.used, self._lane]
        return ta

    def set_scales(self, scales: Array) -> None:
        """Set the units of the states, shape (n,), of equations that are scaled."""
        self.scales = scales
        n, first = len(scales), self.first_scale
        self.pars[first : first + n] = scales[:, None]
        self.pars[first + n : first + 2 * n] = 1.0 / scales[:, None]

    def rates(self, states: Array, times: Array, pars: Array) -> Array:
        """Return the right-hand sides at many points, shape (k, size).

        States are as the integrator has them, shape (k, size), times have shape (k,), and the
        parameters of the equations at each point (used, k).
        """
        options: dict[str, Array] = {}
        if self.used:
            options["pars"] = np.ascontiguousarray(pars)
        if self._rates.is_time_dependent:
            options["time"] = np.ascontiguousarray(times)
        return np.asarray(self._rates(np.ascontiguousarray(states.T), **options)).T

    @cached_property
    def _rates(self) -> Any:
        return copy(self._compiled.rates)


class _Compiled:
    """Variational equations with heyoka's compiled code for them, which users copy."""

    def __init__(self, system: list[tuple[Any, Any]], integrator: Any, used: int) -> None:
        self.size, self.used = len(system), used
        self.integrator = integrator
        self._system = system

    @cached_property
    def rates(self) -> Any:
        """The right-hand sides, compiled for many points at once."""
        return hy.cfunc(
            [rate for _, rate in self._system],
            vars=[variable for variable, _ in self._system],
            compact_mode=True,
            opt_level=1,
        )


_RECENT: deque[tuple[tuple[object, ...], _Compiled]] = deque(maxlen=8)
"""The last compiled equations, with their keys. A search and the stages after it, and the parts of
a search, need the same equations. Copying an integrator takes a fifth of the time that heyoka needs
to make it.
"""


def _compiled(
    field: VectorField,
    columns: int,
    place: dict[tuple[int, int], int],
    lanes: int,
    tolerance: float,
    first_scale: int | None,
) -> _Compiled:
    """Return the compiled variational equations, reusing earlier ones if there are any."""
    key = (columns, (*place,), lanes, tolerance, first_scale, field)
    for known, compiled in tuple(_RECENT):
        if known == key:
            return compiled
    algebra = HeyokaAlgebra()
    system = _variational_system(field, columns, place, algebra, first_scale)
    # heyoka counts the parameters that remain in the equations after simplification.
    indices = [int(str(par)[1:]) for _, f in system for par in hy.get_params(f)]
    used = max(indices, default=-1) + 1
    make = hy.taylor_adaptive if lanes == 1 else hy.taylor_adaptive_batch
    event = hy.t_event if lanes == 1 else hy.t_event_batch
    zeros = np.zeros((max(len(system), used), lanes))[:, 0 if lanes == 1 else slice(None)]
    integrator = make(
        system,
        zeros[: len(system)],
        pars=zeros[:used],
        tol=tolerance,
        t_events=[event(edge, cooldown=0.0) for edge in algebra.edges.values()],
        compact_mode=True,
        opt_level=1,
    )
    compiled = _Compiled(system, integrator, used)
    _RECENT.append((key, compiled))
    return compiled


def _variational_system(
    field: VectorField,
    columns: int,
    place: dict[tuple[int, int], int],
    algebra: HeyokaAlgebra,
    first_scale: int | None = None,
) -> list[tuple[Any, Any]]:
    """Return the field and its variational equations for some columns of sensitivities.

    Parameter `place[j, k]` is the sensitivity of scalar j in column k, which multiplies df/dp_j.
    From parameter `first_scale` on are the units of the states, then their inverse values; None for
    equations in the units of the model.
    """
    n, p = len(field.states), len(field.scalars)
    # The names of the problem could clash with those of the sensitivities.
    variables = _variables([f"x{i}" for i in range(n)])
    states = variables
    if first_scale is not None:
        states = [hy.par[first_scale + i] * x for i, x in enumerate(variables)]
    scalars = [hy.par[j] for j in range(p)]
    values = dict(zip(field.states, states, strict=True))
    values |= dict(zip(field.scalars, scalars, strict=True))
    values[TIME] = hy.time
    for k, name in enumerate(field.inputs):
        values[name] = input_value([hy.par[p + 5 * k + i] for i in range(5)], hy.time)
    zero = hy.expression(0.0)
    rhs = [zero + f for f in field.rhs(values, algebra)]
    if first_scale is not None:
        rhs = [hy.par[first_scale + n + i] * f for i, f in enumerate(rhs)]
    system = list(zip(variables, rhs, strict=True))
    if not columns:
        return system
    tensors = hy.diff_tensors(rhs, diff_args=[*variables, *scalars], diff_order=1)
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
    """Return the first and the second numbers of pairs, as indices of a matrix."""
    rows, columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return rows, columns


def failure_of(outcome: Any, time: float, steps: int, end: float, step: float) -> EngineFailure:
    """Return in words why heyoka stopped at `time` before `end`, with its last step `step`."""
    if outcome == hy.taylor_outcome.step_limit:
        ahead = float(end - time) / step if step > 0 else math.inf
        return EngineFailure(
            time=time,
            reason=f"more than {steps} steps are needed",
            out_of_steps=True,
            steps=steps,
            steps_ahead=ahead,
        )
    if outcome == hy.taylor_outcome.cb_stop:
        reason = REASON
    elif outcome == hy.taylor_outcome.err_nf_state:
        reason = "the solution grows without bound or is not defined"
    else:  # a terminal event
        reason = "a root or a fractional power reaches zero, beyond which it is not defined"
    return EngineFailure(time, reason, steps=steps)
