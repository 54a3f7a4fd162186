"""Solutions over a box of unknowns: guesses in floating point, with errors bounded in balls.

A step guesses the solution P as a polynomial in the unknowns and the time, and encloses its defect
P' - f(P). The distance of every true solution x from P satisfies |x - P|' <= A |x - P| + |defect|.
Here A has the largest magnitudes of the Jacobian's entries, with signs on its diagonal. A bound
that is confirmed by its own consequence holds (a differential inequality after M. Müller, 1926).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.certificates.verification.balls import (
    UNIT,
    ZERO,
    Dual,
    Duals,
    arb,
    around,
    finite,
    growth,
)
from odefit.certificates.verification.formulas import Formulas
from odefit.certificates.verification.polynomials import (
    ORDER,
    Jet,
    Jets,
    Model,
    Models,
    layout,
)
from odefit.common.arrays import Array

TRUNCATION, POINT_TRUNCATION = 1e-9, 1e-14
"""Target size of the last terms of a guess, relative to its state, over boxes and at single points;
it determines the steps."""

MOST_STEPS = 200
"""Number of steps after which a condition is given up."""

MOST_TRIALS = 6
"""Number of enlargements of an error bound, or of halvings of a step."""

LARGEST_ERROR = 1e3
"""Error, relative to the largest state, above which the bound is useless."""


class LostError(Exception):
    """The error for a box over which a solution cannot be enclosed."""


@dataclass
class _States:
    """States at one time: floating-point coefficients, (states, monomials), and error bounds."""

    c: Array
    rest: list[arb]


class Box:
    """A box of unknowns, by symbol: ``middle + radius d`` with d in [-1, 1]."""

    def __init__(self, symbols: Sequence[str], lower: Sequence[float], upper: Sequence[float]):
        self.symbols, self.lower, self.upper = tuple(symbols), tuple(lower), tuple(upper)
        self.middle = [low / 2 + high / 2 for low, high in zip(lower, upper, strict=True)]
        self.radius = [
            math.nextafter(max(high - m, m - low), math.inf) if high > low else 0.0
            for low, high, m in zip(lower, upper, self.middle, strict=True)
        ]
        self.ring = layout(len(self.symbols))
        self.models = Models(self.ring)
        self.truncation = TRUNCATION if any(self.radius) else POINT_TRUNCATION

    def unknown_jets(self) -> dict[str, Jet]:
        """Return the unknowns in floating point."""
        by_symbol, jets = {}, Jets(self.ring, 1)
        for k, symbol in enumerate(self.symbols):
            jet = jets.constant(self.middle[k])
            jet.c[self.ring.linear[k], 0] = self.radius[k]
            by_symbol[symbol] = jet
        return by_symbol

    def unknown_models(self) -> dict[str, Model]:
        """Return the unknowns as models."""
        return {
            symbol: self.models.polynomial([arb(self.middle[k])], (k, self.radius[k]))
            for k, symbol in enumerate(self.symbols)
        }


class Condition:
    """One condition of a statement, with its formulas parsed."""

    def __init__(self, written: Mapping[str, Any], symbols: Sequence[str], states: Sequence[str]):
        self._states, names = list(states), [*symbols, *states, "t"]
        self._initial = Formulas([written["initial"][s] for s in states], symbols)
        self._segments = [_Segment(s, states, names) for s in written["segments"]]
        self.measured = [_Measured(m, names) for m in written["data"]]

    def residuals(self, box: Box) -> Iterator[Model]:
        """Yield the residuals in the order of time; LostError ends them early."""
        unknowns = box.unknown_models()
        now = _rounded(self._initial.evaluate(unknowns, box.models), box)
        waiting = list(self.measured)
        ends = [s.begin for s in self._segments[1:]] + [math.inf]
        for segment, end in zip(self._segments, ends, strict=True):
            while waiting and waiting[0].time <= segment.begin:
                yield waiting.pop(0).residual(self._known(now, unknowns, box), box)
            for assigned, formulas in segment.assigned:
                values = self._known(now, unknowns, box)
                values["t"] = box.models.constant(arb(segment.begin))
                new = _rounded(formulas.evaluate(values, box.models), box)
                for k, name in enumerate(assigned):
                    place = self._states.index(name)
                    now.c[place], now.rest[place] = new.c[k], new.rest[k]
            flow = _Flow(segment, box, now, self._states)
            while waiting and waiting[0].time <= end:
                flow.advance(waiting[0].time)
                yield waiting.pop(0).residual(self._known(flow.now, unknowns, box), box)
            if not waiting:
                return
            flow.advance(end)
            now = flow.now

    def _known(self, now: _States, unknowns: Mapping[str, Model], box: Box) -> dict[str, Any]:
        states = {
            name: box.models.jet(now.c[i][:, None], now.rest[i])
            for i, name in enumerate(self._states)
        }
        return {**unknowns, **states}


class _Segment:
    """The equations from one time on, and the states that are set before."""

    def __init__(self, written: Mapping[str, Any], states: Sequence[str], names: Sequence[str]):
        self.begin = float(written["begin"])
        self.assigned = [
            (list(a), Formulas([a[name] for name in a], names)) for a in written["set"]
        ]
        self.rates = Formulas([written["ode"][s] for s in states], names)


class _Measured:
    """A measurement."""

    def __init__(self, written: Mapping[str, Any], names: Sequence[str]) -> None:
        self.time = float(written["time"])
        self._formula = Formulas([written["formula"]], names)
        self._value, self._sd = arb(float(written["value"])), arb(float(written["sd"]))

    def residual(self, known: Mapping[str, Model], box: Box) -> Model:
        """Return (observable - value)/sd."""
        at = {**known, "t": box.models.constant(arb(self.time))}
        observable = self._formula.evaluate(at, box.models)[0]
        difference: Model = observable + box.models.constant(-self._value)
        return difference * box.models.constant(1 / self._sd)


def _rounded(models: Sequence[Model], box: Box) -> _States:
    """Return models that do not change in time, with floating-point coefficients."""
    c, rests = np.zeros((len(models), box.ring.size)), []
    for i, model in enumerate(models):
        rest = model.rest
        for m, p in enumerate(model.c):
            value = p[0] if p.length() else ZERO
            if not finite(value):
                raise LostError
            c[i, m] = float(value.mid())
            rest = rest + (value - arb(c[i, m])).abs_upper()
        if not finite(rest):
            raise LostError
        rests.append(rest.abs_upper())
    return _States(c, rests)


class _Flow:
    """The solution of one segment's equations from its beginning."""

    def __init__(self, segment: _Segment, box: Box, start: _States, states: Sequence[str]) -> None:
        self._rates, self._box, self._names = segment.rates, box, states
        self.now, self._time = start, segment.begin
        self._step = math.inf
        self._steps = 0
        self._jets = segment.rates.constant_parts(box.unknown_jets(), Jets(box.ring, 1))
        self._models = box.unknown_models()
        self._constant = segment.rates.constant_parts(self._models, box.models)
        self._duals = Duals(len(states))
        ranges = {n: self._duals.constant(m.range) for n, m in self._models.items()}
        self._ranges = segment.rates.constant_parts(ranges, self._duals)

    def advance(self, end: float) -> None:
        """Go to a later time; raises LostError if the solution cannot be enclosed."""
        while self._time < end:
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise LostError
            left = end - self._time
            first = min(self._step, left)
            guess = self._guess(first)
            ratio = self._ratio(guess)
            size = min(first * ratio, left)
            if size >= left / 2:
                size = left if size >= left else left / 2
            for _ in range(MOST_TRIALS):
                after = end if size >= left else self._time + size
                width = after - self._time
                if width <= 0:
                    raise LostError
                scaled = guess * (width / first) ** np.arange(ORDER + 1)
                bound = self._error(scaled, after)
                if bound is not None:
                    break
                size = width / 2
            else:
                raise LostError
            self._step = 1.5 * width if ratio < 1 else max(4 * width, 2 * first)
            self._finish(scaled, bound)
            self._time = after

    def _guess(self, width: float) -> Array:
        """Return the solution up to ORDER in the time of the step, (states, monomials, powers)."""
        ring = self._box.ring
        x = np.zeros((*self.now.c.shape, ORDER + 1))
        x[:, :, 0] = self.now.c
        with np.errstate(all="ignore"):
            for order in range(1, ORDER + 1):  # each turn adds one power of the time
                kind = Jets(ring, order)
                known: dict[str, Jet] = {
                    n: Jet(x[i, :, :order], ring) for i, n in enumerate(self._names)
                }
                known["t"] = kind.constant(self._time)
                known["t"].c[0, 1:2] = width
                constant = {k: v.widened(order) for k, v in self._jets.items()}
                for i, rate in enumerate(self._rates.evaluate(known, kind, constant)):
                    x[i, :, order] = width * rate.c[:, -1] / order
        if not np.isfinite(x).all():
            raise LostError
        return x

    def _ratio(self, x: Array) -> float:
        """Return the factor by which a step may be longer than that of a guess."""
        sizes = np.abs(x).sum(axis=1)
        scale = np.maximum(sizes[:, :1].max(axis=1), 1e-3 * sizes[:, 0].max()) + 1e-300
        last = np.maximum(sizes[:, ORDER] / scale, (sizes[:, ORDER - 1] / scale) ** 1.1)
        worst = float(last.max())
        return (self._box.truncation / worst) ** (1 / ORDER) if worst > 0 else math.inf

    def _error(self, x: Array, after: float) -> list[arb] | None:
        """Return confirmed bounds of the distance from a guess at the end of its step."""
        models, width = self._box.models, arb(after) - arb(self._time)
        states = [models.jet(c, ZERO) for c in x]
        time = models.polynomial([arb(self._time), width])
        known = {**dict(zip(self._names, states, strict=True)), "t": time}
        rates = self._rates.evaluate(known, models, self._constant)
        scale = models.constant(-width)
        defects = []
        for state, rate in zip(states, rates, strict=True):
            slope = Model([p.derivative() for p in state.c], ZERO, self._box.ring)
            defect = (slope + rate * scale).size
            if not finite(defect):
                return None
            defects.append(defect)
        ranges = [state.range for state in states]
        largest = max(float(state.size) for state in states)
        bound = [2 * (a + b) for a, b in zip(self.now.rest, defects, strict=True)]
        for _ in range(MOST_TRIALS):
            reached = [around(r, e) for r, e in zip(ranges, bound, strict=True)]
            matrix = self._comparison(reached, width)
            if matrix is None:
                return None
            most = [
                [a.max(ZERO) if i == j else a for j, a in enumerate(row)]
                for i, row in enumerate(matrix)
            ]
            top = [z.abs_upper() for z in growth(most, self.now.rest, defects)]
            if not all(finite(z) and float(z) <= LARGEST_ERROR * largest + 1e-280 for z in top):
                return None
            if all(z < e or z == 0 for z, e in zip(top, bound, strict=True)):
                end = growth(matrix, self.now.rest, defects)
                return [z.abs_upper() for z in end]
            bound = [(z * 1.5).abs_upper() + arb(1e-300) for z in top]
        return None

    def _comparison(self, states: Sequence[arb], width: arb) -> list[list[arb]] | None:
        """Return the matrix A of a step, scaled by its width, with states in these balls."""
        duals = self._duals
        known = {
            n: duals.state(i, s) for i, (n, s) in enumerate(zip(self._names, states, strict=True))
        }
        known["t"] = duals.constant(arb(self._time) + width * UNIT)
        rows: list[list[arb]] = []
        for i, rate in enumerate(self._rates.evaluate(known, duals, self._ranges)):
            assert isinstance(rate, Dual)
            if not all(finite(s) for s in rate.slopes):
                return None
            rows.append(
                [
                    (s * width).upper() if i == j else (s * width).abs_upper()
                    for j, s in enumerate(rate.slopes)
                ]
            )
        return rows

    def _finish(self, x: Array, bound: Sequence[arb]) -> None:
        """Make the end of a step the present states."""
        c = x.sum(axis=2)
        # The sum of ORDER + 1 floating-point numbers, with a safety factor of two.
        rounding = (np.abs(x).sum(axis=2) * (ORDER + 2) * 2.0**-52).sum(axis=1)
        rest = [
            (b + arb(float(r) * 1.01)).abs_upper() for b, r in zip(bound, rounding, strict=True)
        ]
        self.now = _States(c, rest)
