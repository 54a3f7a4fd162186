"""A candidate improved by low derivatives at several times instead of high ones at one.

The states at each time are unknowns of their own, so that this still asks for nothing but
derivatives of the data: with the parameters shared, more times need lower orders, whose errors
are smaller by many decades. Every equation is weighted by the error of its derivative.
"""

from __future__ import annotations

import numpy as np

from odefit.methods.algebraic.derivatives import Derivatives
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.smoothing import Smoother
from odefit.problem.arrays import Array, ComplexArray
from odefit.structure.auxiliary_states import fill_dependent_states
from odefit.structure.taylor_integration import taylor_integrate

FRACTIONS = (0.5, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9)
"""Of the window; the first is where the states are returned."""

ROUNDS = 30
"""Gauss-Newton steps, at most."""

ENOUGH = 1e-12
"""Relative step that is not worth another."""


class Refinement:
    """The overdetermined equations of all expansions at several times.

    Parameters
    ----------
    preparation
        With free states, and one time an experiment.
    derivatives
        The data.
    smoother
        That differentiates them.
    """

    def __init__(
        self, preparation: Preparation, derivatives: Derivatives, smoother: Smoother
    ) -> None:
        self.system = system = preparation.system
        self.square = preparation.square
        place = {name: i for i, name in enumerate(system.names)}
        self.order = preparation.square.order
        self.times: list[list[float]] = []
        self.around: list[tuple[ComplexArray, ComplexArray]] = []
        self.targets: list[Array] = []  # by expansion: (times, order + 1, outputs)
        self.weights: list[Array] = []
        self.own: list[np.ndarray] = []  # by expansion: columns of its own states
        for k, (expansion, window) in enumerate(
            zip(system.expansions, derivatives.windows, strict=True)
        ):
            times = [window.start + f * (window.end - window.start) for f in FRACTIONS]
            shape = (len(times), self.order + 1, expansion.outputs)
            targets, weights = np.zeros(shape), np.zeros(shape)
            for i, name in enumerate(expansion.observables):
                fitted = derivatives.interpolant(k, name, smoother)
                scale = float(np.abs(window.series[name][1]).max(initial=0.0)) or 1.0
                for j, time in enumerate(times):
                    targets[j, :, i] = fitted.taylor(time, self.order)
                    errors = np.maximum(fitted.errors(time, self.order), 1e-15 * scale)
                    weights[j, :, i] = np.where(np.isfinite(errors), 1.0 / errors, 0.0)
            # Terms that are zero hold exactly.
            exact = 1e3 * float(weights.max(initial=1.0))
            weights[:, 0, len(expansion.observables) :] = exact
            self.times.append(times)
            around = [expansion.expansion_point(t, self.order) for t in times]
            self.around.append((np.array([a for a, _ in around]), np.array([b for _, b in around])))
            self.targets.append(targets)
            self.weights.append(weights)
            self.own.append(np.array([place[n] for n in expansion.states.values()], dtype=np.intp))
        owned = {int(c) for columns in self.own for c in columns}
        self.shared = np.array(
            [c for c in preparation.square.solved if int(c) not in owned], dtype=np.intp
        )

    def improved(self, values: ComplexArray, times: tuple[float, ...]) -> ComplexArray | None:
        """All unknowns of the system, the states at the middle of the windows.

        Parameters
        ----------
        values
            The candidate, shape (unknowns,), its states at `times` (by expansion).

        Returns
        -------
        array or None
            None if its trajectory does not span the windows, or nothing was gained.
        """
        states = self._spread(values.real.astype(complex), times)
        if states is None:
            return None
        point = values.real.copy()
        cost, residuals, jacobian = self._equations(point, states)
        first = cost
        damping = 0.0
        for _ in range(ROUNDS):
            if not np.isfinite(cost):
                return None
            step = _step(jacobian, residuals, damping)
            moved, shifted = self._moved(point, states, step)
            again = self._equations(moved, shifted)
            if again[0] < cost:
                small = np.abs(moved - point) <= ENOUGH * np.abs(moved)
                gained = again[0] < 0.999 * cost
                point, states = moved, shifted
                cost, residuals, jacobian = again
                damping *= 0.1
                if small.all() or not gained:
                    break
            else:
                damping = max(100 * damping, 1e-14)
                if damping > 1e4:
                    break
        if not cost < first:
            return None
        result = point.astype(complex)
        for k, columns in enumerate(self.own):
            result[columns] = states[k][0]
        return result

    def _spread(self, values: ComplexArray, times: tuple[float, ...]) -> list[Array] | None:
        """By expansion, its states at every time, each carried on from its neighbour."""
        found = []
        for k, columns in enumerate(self.own):
            states = np.zeros((len(self.times[k]), len(columns)))
            later = sorted(t for t in self.times[k] if t >= times[k])
            earlier = sorted((t for t in self.times[k] if t < times[k]), reverse=True)
            for way in (later, earlier):
                now, there = times[k], values
                for time in way:
                    moved = taylor_integrate(self.system, k, there, now, time)
                    if moved is None:
                        return None
                    now, there = time, moved
                    own = fill_dependent_states(self.system, k, there, time)[columns].real
                    states[self.times[k].index(time)] = own
            found.append(states)
        return found

    def _equations(self, point: Array, states: list[Array]) -> tuple[float, Array, Array]:
        """Half the sum of squares, weighted residuals, Jacobian by shared unknowns and states."""
        with np.errstate(all="ignore"):
            return self._weighted(point, states)

    def _weighted(self, point: Array, states: list[Array]) -> tuple[float, Array, Array]:
        sizes = [s.size for s in states]
        width = len(self.shared) + sum(sizes)
        rows, slopes = [], []
        start = len(self.shared)
        column_of = {int(c): i for i, c in enumerate(self.shared)}
        for k, (known, functions) in enumerate(self.around):
            expansion = self.system.expansions[k]
            count = len(self.times[k])
            values = np.tile(point.astype(complex), (count, 1))
            values[:, self.own[k]] = states[k]
            taylor = self.system.run(k, values, self.order, known, functions)
            assert taylor.derivatives is not None
            outputs = taylor.outputs[:, :, : expansion.outputs].real
            weights = self.weights[k]
            rows.append(((outputs - self.targets[k]) * weights).reshape(-1))
            by = taylor.derivatives[:, :, : expansion.outputs].real * weights[..., None]
            slope = np.zeros((*weights.shape, width))
            own = {int(c): i for i, c in enumerate(self.own[k])}
            for local, column in enumerate(self.system.columns[k]):
                if int(column) in own:
                    for j in range(count):
                        place = start + j * len(own) + own[int(column)]
                        slope[j, :, :, place] = by[j, :, :, local]
                elif int(column) in column_of:
                    slope[:, :, :, column_of[int(column)]] = by[:, :, :, local]
            slopes.append(slope.reshape(-1, width))
            start += sizes[k]
        residuals = np.concatenate(rows)
        return 0.5 * float(residuals @ residuals), residuals, np.concatenate(slopes)

    def _moved(self, point: Array, states: list[Array], step: Array) -> tuple[Array, list[Array]]:
        moved = point.copy()
        moved[self.shared] += step[: len(self.shared)]
        start, shifted = len(self.shared), []
        for s in states:
            shifted.append(s + step[start : start + s.size].reshape(s.shape))
            start += s.size
        return moved, shifted


def _step(jacobian: Array, residuals: Array, damping: float) -> Array:
    """The Gauss-Newton step, damped relative to the columns; unseen directions are left alone."""
    norms = np.linalg.norm(jacobian, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    scaled = jacobian / norms
    if damping > 0:
        scaled = np.vstack([scaled, np.sqrt(damping) * np.eye(scaled.shape[1])])
        residuals = np.concatenate([residuals, np.zeros(scaled.shape[1])])
    if not np.isfinite(scaled).all():
        return np.full(len(norms), np.nan)
    return np.asarray(-np.linalg.lstsq(scaled, residuals, rcond=1e-14)[0] / norms)
