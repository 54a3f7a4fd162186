"""Decide whether solutions that agree in some initial derivatives agree at later times, too.

Around generic states one derivative beyond those that determine all unknowns decides whether two
solutions have the same outputs. Around given states, such as zeros, outputs may agree in any number
of derivatives and differ in the next. So solutions are compared in many more derivatives at the
start, and along their trajectories, which leave the special values.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import BoolArray, ComplexArray
from odefit.expressions.expressions import TIME
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import AT_START, Expansion, random_complex, time_series
from odefit.structure.series.number_fields import COMPLEX
from odefit.structure.solutions.comparison import OutputComparison

ORDER = 18
"""Order of the Taylor series of a step."""

ACCURACY = 1e-15
"""Largest relative size of the last terms of the Taylor series of a step."""

MAX_STEPS = 60
"""Number of steps along the trajectories."""

MAX_TIME = 20.0
"""Time, in a problem with numbers of order one, up to which trajectories are followed."""

SAME_VALUE = 1e-6
"""Relative difference up to which two values are the same."""

CHANGE = 1e-10
"""Relative change of the unknowns that reveals the effect of rounding on outputs."""

MAX_ROUNDING = 1e3
"""Difference of two values, relative to the effect of this change, up to which they are the
same."""

MAX_ORDER = 150
"""Largest order of derivative compared at the start; doubles cannot represent more."""


def same_later(
    square: SquareSystem, solutions: ComplexArray, parameters: ComplexArray, order: int
) -> BoolArray:
    """Return which solutions, shape (m, n), appear to have the outputs of the first.

    At the start they are compared up to derivatives of `order`.
    """
    compare = OutputComparison(square, parameters, order=min(order, MAX_ORDER))
    unknowns = square.all_unknowns(compare.refined(solutions), parameters)
    # An equally small change shows the effect of rounding on outputs.
    rng = np.random.default_rng(0)
    nearby = unknowns[:1] * (1.0 + CHANGE * random_complex(rng, 1, unknowns.shape[1]))
    unknowns = np.concatenate([unknowns, nearby])
    same = np.asarray(np.all([_alike(part) for part in compare.parts(unknowns)], axis=0))
    system = square.system
    free = DifferentiatedSystem(
        system.problem,
        free_states=True,
        deadline=system.deadline,
        conditions=[e.condition for e in system.expansions],
    )
    for k in range(len(system.expansions)):
        if same[1:].any():
            same &= _same_trajectories(square, free, k, unknowns, parameters)
    return same[: len(solutions)]


def _same_trajectories(
    square: SquareSystem,
    free: DifferentiatedSystem,
    k: int,
    unknowns: ComplexArray,
    parameters: ComplexArray,
) -> BoolArray:
    """Return which solutions have the outputs of the first along the trajectories of `k`.

    The last row is not a solution, but a point near the first.
    """
    system = square.system
    first, expansion = system.expansions[k], free.expansions[k]
    same = np.ones(len(unknowns), dtype=bool)
    e = expansion.program.equations
    if any(expansion.lifting.functions[t.index][0] != TIME for t in e.functions):
        return same  # an input is known only around the start
    at_start = square.expansion_points(parameters)[k]
    names = first.program.equations.tape.names
    values = {
        names[t.index]: complex(v)
        for t, v in zip(first.program.equations.known, at_start.known, strict=True)
    }
    many = np.repeat(at_start.known[None], len(unknowns), axis=0)
    series = np.repeat(at_start.functions[None], len(unknowns), axis=0)
    with np.errstate(all="ignore"):
        start = system.run(k, unknowns, 0, many, series, False).states[:, 0]
    rows = {name: start[:, i] for i, name in enumerate(first.lifting.states)}
    states = np.stack([rows[name] for name in expansion.lifting.states], axis=1)
    now = float(first.condition.t0)
    trajectory = _Trajectory(free, k, unknowns, system.names, values)
    for _ in range(MAX_STEPS):
        system.deadline.check()
        outputs, ahead, step = trajectory.step(states, now)
        if not np.isfinite(outputs[0]).all() or not step > 0.0:
            break
        same &= _alike(outputs)
        states, now = ahead, now + step
        if not same[1:].any() or now - float(first.condition.t0) > MAX_TIME:
            break
    return same


class _Trajectory:
    """Steps of expansion `k`'s states by their Taylor series, for several solutions."""

    def __init__(
        self,
        free: DifferentiatedSystem,
        k: int,
        unknowns: ComplexArray,
        names: list[str],
        values: dict[str, complex],
    ) -> None:
        self.free, self.k = free, k
        self.expansion: Expansion = free.expansions[k]
        place = {name: i for i, name in enumerate(names)}
        self.values = np.ones((len(unknowns), len(free.names)), dtype=complex)
        for i, name in enumerate(free.names):
            if name in place:
                self.values[:, i] = unknowns[:, place[name]]
        columns = {name: i for i, name in enumerate(free.names)}
        states = list(self.expansion.lifting.states)
        self.columns = [
            (columns[index], states.index(state))
            for state, index in self.expansion.states.items()
            if index in columns
        ]
        e = self.expansion.program.equations
        self.known = np.ones((len(unknowns), len(e.known)), dtype=complex)
        self.known_states: list[tuple[int, int]] = []
        for i, term in enumerate(e.known):
            name = e.tape.names[term.index]
            if name.endswith(AT_START):
                self.known_states.append((i, states.index(name.removesuffix(AT_START))))
            else:
                self.known[:, i] = values.get(name, 1.0)

    def step(self, states: ComplexArray, time: float) -> tuple[ComplexArray, ComplexArray, float]:
        """Take a step as long as the accuracy allows; return outputs, states, and its length."""
        for column, state in self.columns:
            self.values[:, column] = states[:, state]
        for i, state in self.known_states:
            self.known[:, i] = states[:, state]
        functions = self.expansion.function_series(
            COMPLEX, ORDER, lambda name, length: time_series(COMPLEX, time, length)
        )
        many = np.repeat(functions[None], len(states), axis=0)
        with np.errstate(all="ignore"):
            taylor = self.free.run(self.k, self.values, ORDER, self.known, many, False)
            step = min(map(_length, taylor.states), default=0.0)
            powers = (step ** np.arange(ORDER + 1))[None, :, None]
            outputs = taylor.outputs[:, :, : len(self.expansion.observables)]
            ends = [np.asarray((part * powers).sum(axis=1)) for part in (outputs, taylor.states)]
            return ends[0], ends[1], step


def _length(series: ComplexArray) -> float:
    """Return a step at which the last two terms of the series are below the accuracy."""
    sizes = np.abs(series)
    if not np.isfinite(sizes).all():
        return 1.0  # unbounded growth is not followed
    scale = np.maximum(sizes[0], 1e-3 * sizes[0].max(initial=0.0)) + 1e-300
    steps = [1.0]
    for order in (ORDER - 1, ORDER):
        worst = float((sizes[order] / scale).max(initial=0.0))
        if worst > 0:
            steps.append((ACCURACY / worst) ** (1 / order))
    return min(steps)


def _alike(outputs: ComplexArray) -> BoolArray:
    """Return which rows equal the first, as far as rounding lets them be known.

    The last row belongs to a point near the first. Infinite values are not compared.
    """
    size = np.maximum(np.abs(outputs), np.abs(outputs[0]))
    allowed = np.maximum(SAME_VALUE * size, MAX_ROUNDING * np.abs(outputs[-1] - outputs[0]))
    known = np.isfinite(outputs) & np.isfinite(allowed)
    return np.asarray(((np.abs(outputs - outputs[0]) <= allowed) | ~known).all(axis=1))
