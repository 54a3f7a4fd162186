"""The stiff engine: segments of a model, integrated by the compiled kernels."""

from __future__ import annotations

import math
from functools import lru_cache

import casadi as ca
import numpy as np

from odefit.problem.arrays import Array, IntArray
from odefit.problem.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.bdf import integration
from odefit.simulation.bdf.elimination import elimination, minimum_degree
from odefit.simulation.bdf.equations import Equations, ScalarTerms
from odefit.simulation.bdf.programs import program
from odefit.simulation.casadi_algebra import CasadiAlgebra
from odefit.simulation.cut_off import REASON, cut_off
from odefit.simulation.engine import (
    ABSOLUTE_OVER_RELATIVE,
    EngineFailure,
    InitialState,
    SegmentSolution,
    magnitudes,
)
from odefit.simulation.segments import Segment, input_value

LANES = 8
"""Multiple of directions in a tile: as many doubles as the widest vectors of processors hold."""

MAX_TILE = 96
"""Largest number of directions in a tile.

Measured on 14 to 500 states: long rows save more than a small cache costs, up to about here."""

REASONS = {
    integration.TOO_MANY_STEPS: "more than {steps} steps are needed; the solution may grow without "
    "bound",
    integration.NO_CONVERGENCE: "the implicit step does not converge; the solution may grow "
    "without bound",
    integration.TOO_STEEP: "the solution becomes too steep, grows without bound or has a jump",
    integration.UNDEFINED: "the right-hand side is not defined at the start",
    integration.CUT_OFF: REASON,
}
"""What the end of an integration means for a model."""


class CompiledField:
    """A vector field as the kernels read it, whatever sensitivities are wanted.

    Parameters
    ----------
    field
        Equations without algebraic variables that need solving.

    Attributes
    ----------
    order
        The states in the order of elimination, shape (n,), in which the kernels have them.
    equations
        The equations in arrays.
    scalar_rows, scalar_columns
        Positions of the nonzeros of the Jacobian by the scalars.
    """

    def __init__(self, field: VectorField) -> None:
        n, p = len(field.states), len(field.scalars)
        symbols = ca.vertsplit(ca.SX.sym("x", 1 + n + p + 5 * len(field.inputs)))
        time, states, scalars = symbols[0], symbols[1 : 1 + n], symbols[1 + n : 1 + n + p]
        values = dict(zip(field.states, states, strict=True))
        values |= dict(zip(field.scalars, scalars, strict=True))
        values[TIME] = time
        for k, name in enumerate(field.inputs):
            values[name] = input_value(symbols[1 + n + p + 5 * k :][:5], time)
        rhs = field.rhs(values, CasadiAlgebra())
        pattern = ca.jacobian_sparsity(ca.vertcat(*rhs), ca.vertcat(*states))
        self.order = minimum_degree(*_triplets(pattern), n)
        ordered = [states[i] for i in self.order]
        variables = ca.vertcat(time, *ordered, *symbols[1 + n :])
        function = ca.densify(ca.vertcat(*(rhs[i] for i in self.order)))
        jacobian = ca.jacobian(function, ca.vertcat(*ordered))
        by_scalars = ca.jacobian(function, ca.vertcat(*scalars)) if p else ca.SX(n, 0)
        rows, columns = _triplets(jacobian.sparsity())
        self.scalar_rows, self.scalar_columns = _triplets(by_scalars.sparsity())
        nonzeros = jacobian.nonzeros()
        self.equations = Equations(
            program(variables, function),
            program(variables, _column(nonzeros)),
            program(variables, _column(nonzeros + by_scalars.nonzeros())),
            elimination(rows, columns, n),
            rows.astype(np.uint32),
            columns.astype(np.uint32),
        )


@lru_cache(maxsize=4)
def compiled_field(field: VectorField) -> CompiledField:
    """Return what the kernels read of a field; the last ones are kept, for other sensitivities."""
    return CompiledField(field)


class BdfEngine:
    """Numerical differentiation formulas on states and sensitivities.

    Parameters
    ----------
    field
        Equations without algebraic variables that need solving; they may have kinks.
    pattern
        The sensitivities that are wanted.
    tolerance
        Relative tolerance of states and sensitivities.
    """

    name = "bdf"

    def __init__(self, field: VectorField, pattern: SensitivityPattern, tolerance: float) -> None:
        compiled = compiled_field(field)
        self._order = compiled.order
        self._m = m = pattern.directions
        self._tolerance = tolerance
        self._tiles = math.ceil(m / MAX_TILE)
        self._width = math.ceil(m / self._tiles / LANES) * LANES if m else 0
        entries = sorted(pattern.entries)
        self._entries = tuple(np.array(entries, dtype=np.intp).reshape(-1, 2).T)
        by_scalar: dict[int, list[tuple[int, int]]] = {}
        for e, (j, q) in enumerate(entries):
            by_scalar.setdefault(j, []).append((q, e))
        places = zip(compiled.scalar_rows.tolist(), compiled.scalar_columns.tolist(), strict=True)
        terms = [
            (q // self._width, row, q % self._width, k, e)
            for k, (row, j) in enumerate(places)
            for q, e in by_scalar.get(j, [])
        ]
        self._terms = np.array(sorted(terms), dtype=np.uint32).reshape(-1, 5).T
        tile, row, column, derivative, _ = (np.ascontiguousarray(part) for part in self._terms)
        start = np.searchsorted(tile, np.arange(self._tiles + 1)).astype(np.uint32)
        self._all_terms = ScalarTerms(start, row, column, derivative, np.zeros(len(tile)))
        self._equations = compiled.equations

    def integrate(
        self, segment: Segment, initial: InitialState, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engine.Engine`."""
        n, m, tiles, width = len(self._order), self._m, self._tiles, self._width
        states = np.ascontiguousarray(initial.states[self._order], dtype=float)
        atol = ABSOLUTE_OVER_RELATIVE * self._tolerance * magnitudes(initial.states)[self._order]
        sensitivities = self._in_tiles(initial.sensitivities)
        terms = self._scalar_terms(initial.scalar_sensitivities)
        count = len(segment.times)
        values, derivatives = np.empty((count, n)), np.empty((count, n, m))
        done = steps = 0
        for start, times, polynomials, end_is_wanted in segment.smooth_parts:
            out = np.empty((len(times), n))
            out_sensitivities = np.empty((tiles, len(times), n * width))
            status, time, tried, step = integration.integrate(
                self._equations,
                float(start),
                np.ascontiguousarray(times, dtype=float) - start,
                states,
                np.concatenate([initial.scalars, polynomials.ravel()]),
                sensitivities,
                terms,
                atol,
                self._tolerance,
                max_steps - steps,
                cut_off().flag,
                out,
                out_sensitivities,
            )
            steps += tried
            time += float(start)
            if status != integration.FINISHED:
                out_of_steps = status == integration.TOO_MANY_STEPS
                ahead = float(segment.times[-1] - time) / step if step > 0 else math.inf
                reason = REASONS[status].format(steps=max_steps)
                return EngineFailure(time, reason, out_of_steps, steps, ahead)
            if not np.isfinite(out[-1]).all():
                return EngineFailure(time, "the solution is not finite", steps=steps)
            states = out[-1].copy()
            sensitivities = out_sensitivities[:, -1].reshape(tiles, n, width)
            stop = done + len(times) - (not end_is_wanted)
            values[done:stop, self._order] = out[: stop - done]
            by_tile = out_sensitivities[:, : stop - done].reshape(tiles, stop - done, n, width)
            rows = by_tile.transpose(1, 2, 0, 3).reshape(stop - done, n, tiles * width)
            derivatives[done:stop, self._order] = rows[:, :, :m]
            done = stop
        return SegmentSolution(
            values, derivatives, np.zeros((count, 0)), np.zeros((count, 0, m)), steps
        )

    def _scalar_terms(self, sensitivities: Array) -> ScalarTerms:
        """Return what sensitivities of scalars, shape (p, m), add to those of the states."""
        multipliers = sensitivities[self._entries][self._terms[4]]
        if multipliers.all():
            return self._all_terms._replace(multiplier=multipliers)
        kept = np.flatnonzero(multipliers)
        start = np.searchsorted(kept, self._all_terms.start).astype(np.uint32)
        row, column, derivative = (part[kept] for part in self._all_terms[1:4])
        return ScalarTerms(start, row, column, derivative, multipliers[kept])

    def _in_tiles(self, sensitivities: Array) -> Array:
        """Return sensitivities, shape (n, m), in tiles, shape (tiles, n, w), padded with zeros."""
        n, tiles, width = len(self._order), self._tiles, self._width
        padded = np.zeros((n, tiles * width))
        padded[:, : self._m] = sensitivities[self._order]
        return np.ascontiguousarray(padded.reshape(n, tiles, width).transpose(1, 0, 2))


def _triplets(sparsity: ca.Sparsity) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the nonzeros of a CasADi pattern, in CasADi's order."""
    rows, columns = sparsity.get_triplet()
    return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)


def _column(expressions: list[ca.SX]) -> ca.SX:
    """Return expressions as a dense column, which may be empty."""
    return ca.densify(ca.vertcat(*expressions)) if expressions else ca.SX(0, 1)
