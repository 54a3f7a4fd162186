"""Implicit engine: CasADi's CVODES, and IDAS for differential-algebraic equations.

The sensitivity equations are written out and integrated with the states, under the same error
control. CasADi's sparse direct solver uses their block-triangular pattern: measured on HIV
proteinase with 7 directions this takes 5.7 ms, CasADi's own forward sensitivities 12.8 ms.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, Symbol, column_of, symbols_of
from odefit.simulation.engines.engine import (
    ABSOLUTE_OVER_RELATIVE,
    EngineFailure,
    SegmentSolution,
    Values,
    initial_magnitudes,
)
from odefit.simulation.engines.narrow_features import NarrowFeatures
from odefit.simulation.engines.segments import Segment, SmoothPart, input_value

COARSE_UNIT = 1e-6
"""Smallest unit of a state, relative to the largest, after an integration with smaller units has
failed."""

LONGEST_STEP = 0.01
"""Longest step, relative to the time span of the integration, if functions may be flat."""

MAX_INTEGRATORS = 500
"""Largest number of cached integrators: one for each set of relative output times."""

MIN_OUTPUT_GAP = 1e-7
"""Smallest gap between output times, relative to the time span of one integration: below 1e-9
CasADi returns the values of the previous time."""

MAX_MEMORIES = 8  # number of a CasADi function's memories searched for statistics

REASONS = {
    "TOO_MUCH_WORK": "more than {steps} steps are needed between two outputs; the solution may "
    "grow without bound",
    "ERR_FAILURE": "the solution becomes too steep, grows without bound or jumps",
    "CONV_FAILURE": "the implicit step does not converge; the solution may grow without bound",
    "TOO_MUCH_ACC": "the requested accuracy exceeds that of the computer",
    "ILL_INPUT": "the right-hand side is not defined at the start",
    "RHSFUNC_FAIL": "the right-hand side is not defined",
    "REPTD_RHSFUNC_ERR": "the right-hand side is not defined",
    "UNREC_RHSFUNC_ERR": "the right-hand side is not defined",
    "REP_RES_ERR": "the equations are not defined",
    "RES_FAIL": "the equations are not defined",
    "FIRST_RES_FAIL": "the equations are not defined at the start",
    "CONV_FAIL": "the implicit step does not converge; the algebraic equations may have no "
    "solution",
    "FIRST_RHSFUNC_ERR": "the right-hand side is not defined at the start",
    "LSETUP_FAIL": "the linear solver failed: the Jacobian is singular or not finite",
    "NO_RECOVERY": "no consistent initial values of the algebraic variables were found",
    "LINESEARCH_FAIL": "no consistent initial values of the algebraic variables were found",
    "BAD_EWT": "the states have become too small or not finite",
}
"""The meaning of a failure of CVODES or IDAS for a model, by their name for it."""

OUTPUT_LOCK = threading.Lock()
"""Lock held while standard output and error, which all threads share, are redirected."""


class CasadiEngine:
    """CVODES or IDAS on states and sensitivities.

    Every smooth part of a segment is integrated on the time interval [0, 1], so that one
    integrator serves all parts with the same relative output times.

    The equations may be differential-algebraic and have kinks. If functions can be flat, steps are
    limited to a share of the time, :data:`LONGEST_STEP`.
    """

    name = "casadi"

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        tolerance: float,
        features: NarrowFeatures | None = None,
    ) -> None:
        self._field, self._features = field, features
        self._n = len(field.states)
        self._a = len(field.algebraic)
        self._m = pattern.directions
        self._tolerance = tolerance
        self._integrators: dict[tuple[bytes, int], _Integrator] = {}
        self._build(field, pattern)

    def _build(self, field: VectorField, pattern: SensitivityPattern) -> None:
        algebra = CasadiAlgebra()
        n, a, m, p = self._n, self._a, self._m, len(field.scalars)
        scaled = ca.SX.sym("x", n)
        algebraic = ca.SX.sym("z", a)
        sensitivities = ca.SX.sym("S", n, m)
        algebraic_sensitivities = ca.SX.sym("Z", a, m)
        scalars = ca.SX.sym("p", p)
        multipliers = ca.SX.sym("d", len(pattern.entries))
        inputs = ca.SX.sym("u", 5, len(field.inputs))
        scale = ca.SX.sym("scale", n)
        span = ca.SX.sym("span", 2)
        tau = ca.SX.sym("tau")
        start, length = symbols_of(span)
        time = start + length * Symbol(tau)
        units = symbols_of(scale)
        states = [state * unit for state, unit in zip(symbols_of(scaled), units, strict=True)]
        values = dict(zip(field.states, states, strict=True))
        values |= dict(zip(field.algebraic, symbols_of(algebraic), strict=True))
        values |= dict(zip(field.scalars, symbols_of(scalars), strict=True))
        values[TIME] = time
        for k, name in enumerate(field.inputs):
            values[name] = input_value(symbols_of(inputs[:, k]), time)
        rates = zip(field.rhs(values, algebra), units, strict=True)
        rhs = column_of(rate / unit for rate, unit in rates)
        self._entries = sorted(pattern.entries)
        self._dae = {
            "t": tau,
            "x": scaled,
            "p": ca.vertcat(scalars, multipliers, ca.vec(inputs), scale, span),
        }
        if a:
            constraints = column_of(field.constraints(values, algebra))
            self._dae |= {"z": algebraic, "alg": constraints}
        if m:
            dense = ca.SX(p, m)
            for i, (j, k) in enumerate(self._entries):
                dense[j, k] = multipliers[i]
            changes = [sensitivities, algebraic_sensitivities, dense]
            variables = [scaled, algebraic, scalars]

            def along(f: Any) -> Any:
                parts = [
                    ca.jacobian(f, v) @ d
                    for v, d in zip(variables, changes, strict=True)
                    if v.numel() and d.numel()
                ]
                return reduce(lambda x, y: x + y, parts) if parts else ca.SX(f.numel(), m)

            self._dae["x"] = ca.vertcat(scaled, ca.vec(sensitivities))
            rhs = ca.vertcat(rhs, ca.densify(ca.vec(along(rhs))))
            if a:
                self._dae["z"] = ca.vertcat(algebraic, ca.vec(algebraic_sensitivities))
                self._dae["alg"] = ca.vertcat(constraints, ca.vec(along(constraints)))
        self._dae["ode"] = length.sx * rhs

    def _integrator(self, grid: Array, max_steps: int) -> _Integrator:
        key = (grid.tobytes(), max_steps)
        if key not in self._integrators:
            if len(self._integrators) >= MAX_INTEGRATORS:
                self._integrators.clear()
            options = {
                "reltol": self._tolerance,
                "abstol": ABSOLUTE_OVER_RELATIVE * self._tolerance,
                "max_num_steps": max_steps,
            }
            if self._features is not None:
                options["max_step_size"] = LONGEST_STEP
            if self._a:
                # In the error test they would make IDAS reject step after step at tight tolerances;
                # the accuracy of the states determines theirs, as g = 0 is solved anyway.
                options["suppress_algebraic"] = True
            name = "idas" if self._a else "cvodes"
            function = ca.integrator("F", name, self._dae, 0.0, list(grid), options)
            self._integrators[key] = _Integrator(function, len(grid))
        return self._integrators[key]

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        field = self._field
        values: dict[str, Any] = dict(zip(field.states, initial.states, strict=True))
        values |= dict(zip(field.algebraic, initial.algebraic, strict=True))
        values |= dict(zip(field.scalars, initial.scalars, strict=True))

        def rates_at(time: float, polynomials: Array) -> Array:
            values[TIME] = np.float64(time)
            for name, polynomial in zip(field.inputs, polynomials, strict=True):
                values[name] = input_value(polynomial, values[TIME])
            with np.errstate(all="ignore"):
                return np.array([float(rate) for rate in field.rhs(values, NUMPY)])

        scale = initial_magnitudes(segment, initial.states, rates_at)
        solution = self._in_units(scale, segment, initial, max_steps)
        coarser = np.maximum(scale, COARSE_UNIT * scale.max(initial=0.0))
        if isinstance(solution, EngineFailure) and (coarser > scale).any():
            # For an initially small state, this tolerance may be finer than rounding.
            return self._in_units(coarser, segment, initial, max_steps)
        return solution

    def _in_units(
        self, scale: Array, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """Integrate with states in given units, in which their absolute tolerances are equal."""
        n, m, a = self._n, self._m, self._a
        states = np.concatenate([initial.states / scale, (initial.sensitivities.T / scale).ravel()])
        algebraic = np.concatenate([initial.algebraic, np.zeros(a * m)])
        multipliers = [initial.scalar_sensitivities[entry] for entry in self._entries]
        rows, algebraic_rows = [], []
        steps = 0
        for start, times, polynomials, end_is_wanted in _parts_of_similar_gaps(segment):
            span = times[-1] - start
            grid = np.round((times - start) / span, 12)
            integrator = self._integrator(grid, max_steps)
            p = np.concatenate(
                [initial.scalars, multipliers, polynomials.ravel(), scale, (start, span)]
            )
            messages = io.StringIO()
            try:
                with (
                    OUTPUT_LOCK,
                    contextlib.redirect_stderr(messages),
                    contextlib.redirect_stdout(messages),
                ):
                    out, z, taken = integrator(states, algebraic, p)
            except RuntimeError as error:
                return _failure(str(error), messages.getvalue(), start, span, max_steps)
            steps += taken
            if not np.isfinite(out).all():
                return EngineFailure(float(start), "the solution is not finite", steps=steps)
            rows.append(out if end_is_wanted else out[:-1])
            algebraic_rows.append(z if end_is_wanted else z[:-1])
            states = out[-1]
            algebraic = z[-1]
        values = np.concatenate(rows)
        z = np.concatenate(algebraic_rows)
        count = len(values)
        return SegmentSolution(
            states=values[:, :n] * scale,
            sensitivities=(values[:, n:].reshape(count, m, n) * scale).transpose(0, 2, 1),
            algebraic=z[:, :a],
            algebraic_sensitivities=z[:, a:].reshape(count, m, a).transpose(0, 2, 1),
            steps=steps,
        )


def _parts_of_similar_gaps(segment: Segment) -> Iterator[SmoothPart]:
    """Cut the smooth parts of a segment until no gap is too small for the length of its part."""
    for start, times, polynomials, end_is_wanted in segment.smooth_parts:
        while len(times):
            gaps = np.minimum.accumulate(np.diff(times, prepend=start))
            close = np.flatnonzero(times - start > gaps / MIN_OUTPUT_GAP)
            count = max(int(close[0]), 1) if len(close) else len(times)
            rest = times[count:]
            yield SmoothPart(start, times[:count], polynomials, end_is_wanted or len(rest) > 0)
            start, times = float(times[count - 1]), rest


class _Integrator:
    """A CasADi integrator that reads and writes NumPy memory.

    CasADi's own conversion of the result takes a fifth of the time of a stiff trajectory.
    """

    def __init__(self, function: Any, count: int) -> None:
        self._function = function
        self._buffer, self._run = function.buffer()
        self._arguments = [np.zeros(function.numel_in(name)) for name in ("x0", "z0", "p")]
        # CasADi stores by column: one row of these for each output time.
        self._results = [
            np.zeros((count, function.numel_out(name) // count)) for name in ("xf", "zf")
        ]
        for name, array in zip(("x0", "z0", "p"), self._arguments, strict=True):
            if array.size:
                self._buffer.set_arg(function.index_in(name), array.data)
        for name, array in zip(("xf", "zf"), self._results, strict=True):
            if array.size:
                self._buffer.set_res(function.index_out(name), array.data)
        self._memory = 0

    def __call__(self, *arguments: Array) -> tuple[Array, Array, int]:
        """Return states and algebraic variables by row, and the number of steps.

        Raises RuntimeError: the integration failed.
        """
        for buffer, argument in zip(self._arguments, arguments, strict=True):
            buffer[:] = argument
        self._run()
        steps = int(self._statistics()["nsteps"])
        states, algebraic = self._results
        return states.copy(), algebraic.copy(), steps

    def _statistics(self) -> Mapping[str, Any]:
        """Return the statistics of the memory that the buffer uses; others have none."""
        for memory in range(self._memory, MAX_MEMORIES):
            with contextlib.suppress(RuntimeError):
                statistics: Mapping[str, Any] = self._function.stats(memory)
                self._memory = memory
                return statistics
        raise AssertionError("an integration that succeeded has left no statistics")


def _failure(error: str, messages: str, start: float, span: float, max_steps: int) -> EngineFailure:
    """Return in words why CVODES or IDAS failed, from CasADi's error and its output."""
    at = re.search(r"[Aa]t t = ([-+0-9.eE]+)", messages)
    time = start + span * float(at.group(1)) if at else start
    flag = re.search(r'"(?:CV|IDA)_([A-Z_]+)"', error)
    name = flag.group(1) if flag else ""
    reason = REASONS.get(name)
    if reason is None:
        last = error.strip().splitlines()[-1]
        reason = f"the integrator gave up: {name or last}"
    return EngineFailure(time, reason.format(steps=max_steps), name == "TOO_MUCH_WORK")
