"""A problem on shooting nodes: residuals F1, continuity conditions F2, and their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from odefit.methods.multiple_shooting.condensing import Chains
from odefit.methods.multiple_shooting.parallel import Spread
from odefit.methods.scaling import Scaling
from odefit.problem.arrays import Array
from odefit.problem.noise import Noise
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.intervals import IntervalMap, IntervalSolution
from odefit.simulation.nodes import Nodes, node_names


@dataclass(frozen=True, eq=False)
class Point:
    """Values of everything that is free: coordinates of the unknowns, and nodes.

    Attributes
    ----------
    coordinates
        Of the unknowns, shape (n,), see :class:`Scaling`.
    nodes
        Of all chains, shape (nodes, N); the first node of a chain follows from the unknowns,
        its entries here are not used.
    """

    coordinates: Array
    nodes: Array

    def moved(self, step: Point, fraction: float) -> Point:
        """The point `fraction` of the way along `step`."""
        return Point(
            self.coordinates + fraction * step.coordinates, self.nodes + fraction * step.nodes
        )


@dataclass(frozen=True, eq=False)
class Linearised:
    """F and its derivatives at a point; all derivatives by coordinates.

    Attributes
    ----------
    point
        With the first nodes filled in.
    evaluation
        Cost and objective of the discontinuous trajectory.
    residuals
        F1, shape (r,).
    gaps
        F2: ends of intervals minus the nodes there, shape (I, N).
    by_node, by_unknown, rows_by_node, rows_by_unknown
        As :class:`Condensed` takes them.
    first_slopes
        Derivatives of the first nodes, shape (chains, N, n).
    """

    point: Point
    evaluation: Evaluation
    residuals: Array
    gaps: Array
    by_node: Array
    by_unknown: Array
    rows_by_node: Array
    rows_by_unknown: Array
    first_slopes: Array


class Shooting:
    """The forward map of a problem on nodes.

    Parameters
    ----------
    forward
        Of the problem.
    cuts
        Times of the nodes of each condition, the first at its t0.
    sizes
        Typical sizes of the values of a node, shape (N,).
    kept
        Nodes (condition, number) that are not to be eliminated.
    executor
        Where intervals go that are not integrated together; None for this process.
    """

    def __init__(
        self,
        forward: ForwardMap,
        cuts: Sequence[Array],
        sizes: Array,
        kept: Sequence[tuple[int, int]] = (),
        executor: Executor | None = None,
    ) -> None:
        self.forward = forward
        self.problem = forward.problem
        self.scaling = Scaling.of(self.problem)
        self.cuts = [np.asarray(c, dtype=float) for c in cuts]
        self.sizes = sizes
        n = len(self.problem.unknowns)
        self.names = names = node_names(forward.field, self.problem.conditions)
        self.maps = [
            IntervalMap(forward.field, c, forward.engines, cut, sizes, n, names)
            for c, cut in zip(self.problem.conditions, self.cuts, strict=True)
        ]
        if executor is not None:
            part = (self.problem, forward.engines.choice, forward.engines.tolerance)
            for number, (interval_map, cut) in enumerate(zip(self.maps, self.cuts, strict=True)):
                interval_map.elsewhere = Spread(executor, *part, number, cut, sizes)
        self.lengths = [len(c) for c in self.cuts]
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.intp)
        self._kept = [int(self.starts[c] + k) for c, k in kept]
        self._chains: Chains | None = None
        self.evaluations = 0

    @property
    def nodes(self) -> int:
        """How many, of all conditions."""
        return int(self.starts[-1])

    def node_at(self, condition: int, time: float) -> int:
        """Number of the node of a condition at a time that is one of its cuts."""
        place = int(np.argmin(np.abs(self.cuts[condition] - time)))
        return int(self.starts[condition] + place)

    def sweeps(self, point: Point) -> list[IntervalSolution] | Failure:
        """All conditions integrated on their intervals."""
        vector = self.scaling.natural(point.coordinates)
        found = []
        with np.errstate(all="ignore"):
            for number, interval_map in enumerate(self.maps):
                inner = point.nodes[self.starts[number] + 1 : self.starts[number + 1]]
                sweep = interval_map(vector, inner)
                if isinstance(sweep, Failure):
                    return sweep
                found.append(sweep)
        return found

    def linearised(self, point: Point) -> Linearised | Failure:
        """F and its derivatives at `point`, or why there are none."""
        self.evaluations += 1
        # Steps that end at a bound may miss it by rounding.
        inside = np.clip(point.coordinates, self.scaling.lower, self.scaling.upper)
        point = Point(inside, point.nodes)
        sweeps = self.sweeps(point)
        if isinstance(sweeps, Failure):
            return sweeps
        vector = self.scaling.natural(point.coordinates)
        slope = self.scaling.derivative(vector)
        n, size = len(vector), len(self.names)
        wide = np.concatenate([vector, np.zeros(size)])
        with np.errstate(all="ignore"):
            found = self.forward.assemble(wide, [s.trajectory for s in sweeps])
        if isinstance(found, Failure):
            return found
        evaluation, sources = found
        if self._chains is None:
            row_nodes = [
                np.zeros(len(s.times), dtype=np.intp)
                if s.condition < 0
                else self.starts[s.condition] + self.maps[s.condition].interval[s.times]
                for s in sources
            ]
            self._chains = Chains(self.lengths, size, n, np.concatenate(row_nodes), self._kept)
        nodes = np.array(point.nodes)
        nodes[self.chains.firsts] = [s.first for s in sweeps]
        ends = np.concatenate([s.ends for s in sweeps])
        return Linearised(
            Point(point.coordinates, nodes),
            evaluation,
            evaluation.residuals,
            ends - nodes[self.chains.left + 1],
            np.concatenate([s.by_node for s in sweeps]),
            np.concatenate([s.by_unknown for s in sweeps]) * slope,
            evaluation.jacobian[:, n:],
            evaluation.jacobian[:, :n] * slope,
            np.array([s.first_slope for s in sweeps]) * slope,
        )

    def spread(self, point: Point) -> float:
        """What constant predictions leave of the data: their weighted squares about the means.

        1 where that is zero or cannot be had.
        """
        sweeps = self.sweeps(point)
        if isinstance(sweeps, Failure):
            return 1.0
        vector = self.scaling.natural(point.coordinates)
        wide = np.concatenate([vector, np.zeros(len(self.names))])
        series = [
            (self.problem.noise.get(name, Noise()), s.values)
            for c in self.problem.conditions
            for name, s in c.series.items()
        ]
        total = 0.0
        with np.errstate(all="ignore"):
            blocks = self.forward.blocks(wide, [s.trajectory for s in sweeps])
            for (noise, values), block in zip(series, blocks, strict=True):
                if isinstance(block, Failure):
                    return 1.0
                scale = {"log": np.log, "log10": np.log10}.get(noise.transform or "")
                measured = values if scale is None else scale(values)
                sd = block.sd.array(len(values))
                total += float(np.sum(((measured - measured.mean()) / sd) ** 2))
        return total if np.isfinite(total) and total > 0 else 1.0

    def nodes_of(self, point: Point) -> Nodes:
        """The nodes of a point, by condition."""
        values = [point.nodes[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False)]
        return Nodes(tuple(self.cuts), tuple(values))

    @property
    def chains(self) -> Chains:
        """How the nodes hang together; known once something was evaluated."""
        assert self._chains is not None
        return self._chains
