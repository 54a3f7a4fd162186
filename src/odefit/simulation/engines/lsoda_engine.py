"""SciPy's LSODA on the states alone: the engine of the second opinion.

It switches between Adams' and Gear's methods with its own step control, and shares only CasADi's
expressions with the engines used in fits. Steps are limited to a share of the time, so that it
evaluates the equations at places independent of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import ODEintWarning, odeint

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, column_of, flat_symbols
from odefit.simulation.engines.cut_off import REASON, cut_off
from odefit.simulation.engines.engine import (
    ABSOLUTE_OVER_RELATIVE,
    EngineFailure,
    SegmentSolution,
    Values,
    initial_magnitudes,
)
from odefit.simulation.engines.narrow_features import NarrowFeatures
from odefit.simulation.engines.segments import Segment

LONGEST_STEP, LONGEST_FLAT_STEP = 0.05, 0.002
"""Longest steps, relative to the time between two events or corners: in general, and if functions
may be flat, so that steps and pulses may be narrow."""


class LsodaEngine:
    """LSODA on the states of a field.

    Raises InputError if sensitivities are requested, or if there are algebraic equations.
    """

    name = "lsoda"

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        tolerance: float,
        absolute: float = ABSOLUTE_OVER_RELATIVE,
        features: NarrowFeatures | None = None,
    ) -> None:
        if pattern.directions or field.algebraic:
            raise InputError("LSODA integrates only states, without algebraic equations")
        n = len(field.states)
        variables, symbols, values = flat_symbols(field)
        rhs = column_of(field.rhs(values, CasadiAlgebra()))
        function = ca.Function("f", [variables], [rhs])
        buffer: Any
        buffer, self._run = function.buffer()
        self._alive = function, buffer  # keep the objects to which they point
        self._arguments, self._rates = np.zeros(len(symbols)), np.zeros(n)
        buffer.set_arg(0, self._arguments.data)
        buffer.set_res(0, self._rates.data)
        self._n, self._tolerance, self._features = n, tolerance, features
        self._absolute = absolute

    def _rate(self, time: float, states: Array) -> Array:
        self._arguments[0] = time
        self._arguments[1 : 1 + self._n] = states
        self._run()
        return self._rates

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        n, count = self._n, len(segment.times)
        longest = LONGEST_STEP
        if self._features is not None and self._features.acts(initial.scalars):
            longest = LONGEST_FLAT_STEP
        span = float(segment.times[-1]) - segment.start
        states = np.array(initial.states, dtype=float)

        def rates_at(time: float, polynomials: Array) -> Array:
            self._arguments[1 + n :] = np.concatenate([initial.scalars, polynomials.ravel()])
            return self._rate(time, states)

        sizes = initial_magnitudes(segment, states, rates_at)
        values = np.empty((count, n))
        done = steps = 0
        for start, times, polynomials, end_is_wanted in segment.smooth_parts:
            if cut_off().reached:
                return EngineFailure(float(start), REASON, steps=steps)
            self._arguments[1 + n :] = np.concatenate([initial.scalars, polynomials.ravel()])
            out, taken, reason = self._through(start, times, states, sizes, longest * span)
            steps += taken
            if reason:
                return EngineFailure(float(start), reason, True, steps)
            stop = done + len(times) - (not end_is_wanted)
            values[done:stop] = out[: stop - done]
            states = out[-1]
            sizes = np.maximum(sizes, np.abs(out).max(axis=0))
            done = stop
        return SegmentSolution.without_algebraic(values, np.zeros((count, n, 0)), steps)

    def _through(
        self, start: float, times: Array, states: Array, sizes: Array, longest: float
    ) -> tuple[Array, int, str]:
        """Return the states at times, the number of steps, and the reason for any failure."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", ODEintWarning)  # the message says the same
            integrate: Any = odeint  # its types lack tolerances by component
            result: tuple[Array, dict[str, Any]] = integrate(
                self._rate,
                states,
                np.append(start, times),
                tfirst=True,
                rtol=self._tolerance,
                atol=self._absolute * self._tolerance * sizes,
                tcrit=times[-1:],
                hmax=longest,
                mxstep=20_000,
                full_output=True,
            )
        out, info = result
        taken = int(np.max(info["nst"], initial=0))
        if "successful" not in str(info["message"]) or not np.isfinite(out).all():
            return out[1:], taken, f"LSODA gives up: {info['message']}"
        return out[1:], taken, ""
