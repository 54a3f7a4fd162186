"""Solutions over a box of unknowns: guesses in floating point, with errors bounded in balls.

A step guesses the solution P as a polynomial in the unknowns and the time, and encloses its defect
P' - f(P). The distance of every true solution x from P satisfies |x - P|' <= A |x - P| + |defect|.
Here A has the largest magnitudes of the Jacobian's entries, with signs on its diagonal. A bound
that is confirmed by its own consequence holds (a differential inequality after M. Müller, 1926).
Within it the Jacobian is known, and sharper bounds follow in moving coordinates.
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
    Balls,
    arb,
    around,
    finite,
    growth,
)
from odefit.certificates.verification.deviations import Deviation
from odefit.certificates.verification.formulas import Formulas
from odefit.certificates.verification.likelihoods import Law, Part
from odefit.certificates.verification.polynomials import (
    ORDER,
    Jet,
    Jets,
    Model,
    Models,
    layout,
)
from odefit.certificates.verification.recurrences import solution
from odefit.common.arrays import Array

TRUNCATION, POINT_TRUNCATION = 1e-9, 1e-12
"""Target size of the last terms of a guess, relative to its state, over boxes and at single points;
it determines the steps."""

MOST_STEPS = 2000
"""Number of steps after which a condition is given up."""

RESCALINGS = 3
"""Number of times that the length of a step is scaled to its last terms."""

LARGEST_TERM = 1e150
"""Last term of a guess, relative to its state, that is still a finite number in what follows."""

MOST_TRIALS = 6
"""Number of enlargements of an error bound, or of halvings of a step."""

LARGEST_ERROR = 1e3
"""Error, relative to the largest state, above which the bound is useless."""


FLAT = layout(0)
BALLS, TIMES = Balls(), Models(FLAT)
"""Number types: balls, and polynomials of the time alone."""


class LostError(Exception):
    """The error for a box over which a solution cannot be enclosed."""


@dataclass
class _States:
    """States at one time: floating-point coefficients, (states, monomials), and their distance."""

    c: Array
    distance: Deviation


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
        self.measured = [_Measured(m, names, symbols) for m in written["data"]]

    def parts(self, box: Box) -> Iterator[Part]:
        """Yield the parts of the objective in the order of time; LostError ends them early."""
        unknowns = box.unknown_models()
        now = _rounded(self._initial.evaluate(unknowns, box.models), box)
        waiting = list(self.measured)
        ends = [s.begin for s in self._segments[1:]] + [math.inf]
        for segment, end in zip(self._segments, ends, strict=True):
            while waiting and waiting[0].time <= segment.begin:
                yield waiting.pop(0).part(self._known(now, unknowns, box), box)
            for assigned, formulas in segment.assigned:
                values = self._known(now, unknowns, box)
                values["t"] = box.models.constant(arb(segment.begin))
                new = _rounded(formulas.evaluate(values, box.models), box)
                rest = now.distance.rest
                for k, name in enumerate(assigned):
                    place = self._states.index(name)
                    now.c[place], rest[place] = new.c[k], new.distance.size[k]
                now.distance = Deviation.apart(rest)
            flow = _Flow(segment, box, now, self._states)
            while waiting and waiting[0].time <= end:
                flow.advance(waiting[0].time)
                yield waiting.pop(0).part(self._known(flow.now, unknowns, box), box)
            if not waiting:
                return
            flow.advance(end)
            now = flow.now

    def _known(self, now: _States, unknowns: Mapping[str, Model], box: Box) -> dict[str, Any]:
        rest = now.distance.rest
        states = {
            name: box.models.jet(now.c[i][:, None], rest[i]) for i, name in enumerate(self._states)
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
        self.slopes = self.rates.slopes(states)


class _Measured:
    """A measurement."""

    def __init__(
        self, written: Mapping[str, Any], names: Sequence[str], symbols: Sequence[str]
    ) -> None:
        self.time = float(written["time"])
        self._formula = Formulas([written["formula"]], names)
        self._law = Law(written, symbols) if "law" in written else None
        if self._law is None:
            self._value, self._sd = arb(float(written["value"])), arb(float(written["sd"]))

    def part(self, known: Mapping[str, Model], box: Box) -> Part:
        """Return the square of (observable - value)/sd, or the deviance by another law."""
        at = {**known, "t": box.models.constant(arb(self.time))}
        observable: Model = self._formula.evaluate(at, box.models)[0]
        if self._law is not None:
            return self._law.part(observable, box.models, known)
        difference = observable + box.models.constant(-self._value)
        return Part.square(difference * box.models.constant(1 / self._sd))


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
    return _States(c, Deviation.apart(rests))


class _Flow:
    """The solution of one segment's equations from its beginning."""

    def __init__(self, segment: _Segment, box: Box, start: _States, states: Sequence[str]) -> None:
        self._rates, self._slopes = segment.rates, segment.slopes
        self._box, self._names = box, states
        self.now, self._time = start, segment.begin
        self._step = math.inf
        self._steps = 0
        jets = box.unknown_jets().items()
        self._known = {name: jet.widened(ORDER + 1).c for name, jet in jets}
        self._models = box.unknown_models()
        self._constant = segment.rates.constant_parts(self._models, box.models)
        ranges = {name: model.range for name, model in self._models.items()}
        self._ranges = self._slopes.constant_parts(ranges, BALLS)
        flat = {name: TIMES.ball(r) for name, r in ranges.items()}
        self._flat = self._slopes.constant_parts(flat, TIMES)

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
                distance = self._distance(scaled, after)
                if distance is not None:
                    break
                size = width / 2
            else:
                raise LostError
            self._step = 1.5 * width if ratio < 1 else max(4 * width, 2 * first)
            self.now = _States(scaled.sum(axis=2), distance)
            self._time = after

    def _guess(self, width: float) -> Array:
        """Return the solution up to ORDER in the time of the step, (states, monomials, powers)."""
        ring = self._box.ring
        time = np.zeros((ring.size, ORDER + 1))
        time[0, :2] = self._time, width
        start = dict(zip(self._names, self.now.c, strict=True))
        with np.errstate(all="ignore"):
            x = solution(self._rates, ring, start, {**self._known, "t": time}, width, ORDER)
        if not np.isfinite(x).all():
            raise LostError
        return x

    def _ratio(self, x: Array) -> float:
        """Return the factor by which a step may be longer than that of a guess."""
        sizes, ratio = np.abs(x).sum(axis=1), 1.0
        for _ in range(RESCALINGS):  # states that begin at zero are measured by what they reach
            now = sizes * ratio ** np.arange(ORDER + 1)
            scale = np.maximum(now[:, :2].max(axis=1), 1e-3 * now[:, 0].max()) + 1e-300
            with np.errstate(over="ignore"):
                last = np.maximum(now[:, ORDER] / scale, (now[:, ORDER - 1] / scale) ** 1.1)
            worst = min(float(last.max()), LARGEST_TERM)
            if worst == 0:
                return math.inf
            ratio *= (self._box.truncation / worst) ** (1 / ORDER)
        return ratio

    def _distance(self, x: Array, after: float) -> Deviation | None:
        """Return the confirmed distance of solutions from a guess at the end of its step."""
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
        before = self.now.distance.rest
        confirmed = self._confirmed(states, before, defects, width)
        if confirmed is None:
            return None
        reached, matrix = confirmed
        jacobian = self._jacobian(states, reached, width)
        if jacobian is None:
            return None
        # The sum of ORDER + 1 floating-point numbers, with a safety factor of two.
        rounding = (np.abs(x).sum(axis=2) * (ORDER + 2) * 2.0**-52).sum(axis=1)
        rounded = [arb(float(r) * 1.01).abs_upper() for r in rounding]
        end = growth(matrix, before, defects)
        apart = [(z + r).abs_upper() for z, r in zip(end, rounded, strict=True)]
        turned = self.now.distance.after(jacobian, matrix, defects, rounded)
        if turned is None or all(a <= b for a, b in zip(apart, turned.rest, strict=True)):
            return Deviation.apart(apart)
        return turned

    def _confirmed(
        self, states: Sequence[Model], before: Sequence[arb], defects: Sequence[arb], width: arb
    ) -> tuple[list[arb], list[list[arb]]] | None:
        """Return bounds of the distance from a guess during a step, which imply themselves.

        With them comes the comparison of the states within these bounds.
        """
        ranges = [state.range for state in states]
        largest = max(float(state.size) for state in states)
        bound = [2 * (a + b) for a, b in zip(before, defects, strict=True)]
        for _ in range(MOST_TRIALS):
            within = [around(r, e) for r, e in zip(ranges, bound, strict=True)]
            matrix = self._comparison(within, width)
            if matrix is None:
                return None
            most = [
                [a.max(ZERO) if i == j else a for j, a in enumerate(row)]
                for i, row in enumerate(matrix)
            ]
            top = [z.abs_upper() for z in growth(most, before, defects)]
            if not all(finite(z) and float(z) <= LARGEST_ERROR * largest + 1e-280 for z in top):
                return None
            if all(z < e or z == 0 for z, e in zip(top, bound, strict=True)):
                return bound, matrix
            bound = [(z * 1.5).abs_upper() + arb(1e-300) for z in top]
        return None

    def _comparison(self, states: Sequence[arb], width: arb) -> list[list[arb]] | None:
        """Return the matrix A of a step, scaled by its width, with states in these balls."""
        known = {**dict(zip(self._names, states, strict=True)), "t": arb(self._time) + width * UNIT}
        slopes = [s * width for s in self._slopes.evaluate(known, BALLS, self._ranges)]
        if not all(map(finite, slopes)):
            return None
        n = len(states)
        return [
            [
                s.upper() if i == j else s.abs_upper()
                for j, s in enumerate(slopes[i * n : i * n + n])
            ]
            for i in range(n)
        ]

    def _jacobian(
        self, states: Sequence[Model], reached: Sequence[arb], width: arb
    ) -> list[list[Model]] | None:
        """Return the Jacobians of a step, scaled by its width, as polynomials of the time alone."""
        known = {
            name: Model([s.c[0]], sum(s.sizes[1:], e).abs_upper(), FLAT)
            for name, s, e in zip(self._names, states, reached, strict=True)
        }
        known["t"] = TIMES.polynomial([arb(self._time), width])
        scale, n = TIMES.constant(width), len(states)
        slopes = [s * scale for s in self._slopes.evaluate(known, TIMES, self._flat)]
        if not all(finite(s.size) for s in slopes):
            return None
        return [slopes[i * n : i * n + n] for i in range(n)]
