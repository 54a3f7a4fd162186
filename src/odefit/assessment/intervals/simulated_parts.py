"""The measurements of a problem as parts of a regression: by density, scale, and correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.correlated_regressions import Chains
from odefit.assessment.intervals.regressions import Part
from odefit.common.arrays import Array, IntArray
from odefit.problem.binding import Bound
from odefit.problem.noise import WALK_SPANS, WHITE_GAPS
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.noise_distributions.normal import Normal
from odefit.simulation import ForwardMap
from odefit.simulation.residuals.series_rows import SeriesRows

Noise = tuple[NoiseDistribution, int | None, Bound | None]
"""The density of values, the unknown of their scale, and their correlation time."""


def parts_of(forward: ForwardMap, vector: Array, count: int) -> tuple[list[Part], IntArray] | None:
    """Return the measurements by density and scale, and their rows among all residuals.

    Values with given normal noise, counts and priors are treated as normal.
    """
    problem = forward.problem
    numbers = {u.name: i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
    groups: dict[Noise, list[SeriesRows]] = {}
    normal, special, correlated, end = Normal(), False, False, 0
    for block in forward.series_rows:
        end = max(end, block.rows.stop if block.sd_rows is None else block.sd_rows.stop)
        law: NoiseDistribution = normal
        unknown = time = None
        if block.estimates_spread:
            unknown = numbers.get(block.noise.unknown(block.name))
            if block.noise.spread != "estimate" or block.series.censored is not None:
                return None
            if not block.noise.law.located:
                unknown = None
        if not block.noise.law.symmetric:
            return None
        if block.noise.law.located and not block.noise.gaussian:
            law, special = block.noise.law, True
        if (of := forward.correlated.get((block.condition, block.name))) is not None and of.depends:
            time, correlated = of.time, True
        groups.setdefault((law, unknown, time), []).append(block)
    scales = [unknown for _, unknown, _ in groups if unknown is not None]
    if not (special or correlated or len(set(scales)) > 1) or forward.nodes is not None:
        return None
    if correlated and (special or len(set(scales)) < len(scales)):
        return None
    parts, rows, start = [], [], 0
    for (law, unknown, time), blocks in groups.items():
        rows += [np.arange(b.rows.start, b.rows.stop) for b in blocks]
        stop = start + sum(len(b.series.values) for b in blocks)
        chains = None if time is None else _chains(forward, vector, blocks, time)
        parts.append(Part(np.arange(start, stop), law, unknown, chains))
        start = stop
    if end < count:
        rows.append(np.arange(end, count))
        same = [
            k for k, p in enumerate(parts) if (p.law, p.unknown, p.chains) == (normal, None, None)
        ]
        further = np.arange(start, start + count - end)
        if same:
            first_part = parts[same[0]]
            parts[same[0]] = replace(first_part, rows=np.concatenate([first_part.rows, further]))
        else:
            parts.append(Part(further, normal, None))
    return parts, np.concatenate(rows)


def _chains(
    forward: ForwardMap, vector: Array, blocks: Sequence[SeriesRows], time: Bound
) -> Chains:
    """Return the correlation of the noise of series that share a correlation time."""
    first = forward.correlated[blocks[0].condition, blocks[0].name]
    conditions = forward.problem.conditions
    times = [conditions[b.condition].times[b.series.rows] for b in blocks]
    unknowns = np.flatnonzero(first.acting(len(vector)))
    value = first.value(vector)
    distances = np.concatenate([np.diff(np.unique(t[np.isfinite(t)])) for t in times])
    span = max(float(np.ptp(t[np.isfinite(t)])) for t in times)
    bounds = float(distances.min(initial=value)) / WHITE_GAPS, span * WALK_SPANS
    return Chains.of(times, value, bounds, int(unknowns[0]))
