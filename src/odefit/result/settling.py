"""For a result with several solutions: the measurement that would distinguish them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.designs.candidates import Window
from odefit.designs.settling import Settlement, settlement
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import groups_of
from odefit.result_data import ResultData

ASSUMED_NOISE = 0.05
"""Noise of a state that was never measured, relative to its largest prediction."""


@dataclass(frozen=True)
class Settling(Settlement):
    """A :class:`~odefit.designs.settling.Settlement` that prints as a sentence."""

    def __str__(self) -> str:
        from odefit.reporting.designs.discrimination import settling_sentence

        return settling_sentence(self)


class ResultSettling:
    """The measurement that would distinguish the solutions of a result."""

    def settle(self, observables: Sequence[str] | str | None = None, times: Any = None) -> Settling:
        """Return the single measurement that would distinguish the solutions that fit.

        ``print`` shows it as a sentence. Solutions count up to the limit of the likelihood ratio at
        95 %. The noise of a state that was never measured is assumed to be 5 % of its largest
        prediction, as ``assumed`` records.

        Parameters
        ----------
        observables
            Observables or states; None for all.
        times
            A window ``(from, to)``, or a list of times; None for the span of the data.

        Raises
        ------
        InputError
            Only one solution fits, an argument is invalid, or no measurement distinguishes the
            solutions.
        """
        assert isinstance(self, ResultData)
        return settled(self, observables, times)


def settled(result: ResultData, observables: Sequence[str] | str | None, times: Any) -> Settling:
    """Return the result of :meth:`ResultSettling.settle`."""
    from odefit.assessment.intervals.small_samples import quantile_of

    best = result.best
    variance = 1.0 if result.uncertainty is None else result.uncertainty.variance
    if not np.isfinite(variance) or variance <= 0:
        variance = 1.0
    scale = 1.0 if best.log_likelihood is not None else variance
    limit = result.value_of(best) + scale * quantile_of(0.95, np.inf) ** 2
    plain = [s for s in result.fitting if s.nodes is None]
    within = [s for s in result.solutions if s.nodes is None and result.value_of(s) <= limit]
    # A result that lists the solutions that fit has no others: further ends belong to these.
    fitting = plain if len(plain) > 1 else within
    if len(fitting) < 2:
        raise InputError("settle: only one solution fits, so there is nothing to distinguish")
    vectors = [np.asarray(s.vector, dtype=float) for s in fitting]
    likelihood = best.log_likelihood is not None
    return settling_of(
        result.problem,
        vectors,
        variance,
        likelihood=likelihood,
        observables=observables,
        times=times,
    )


def settling_of(
    problem: Problem,
    vectors: Sequence[Array],
    variance: float,
    *,
    likelihood: bool,
    observables: Sequence[str] | str | None = None,
    times: Any = None,
) -> Settling:
    """Return the measurement that distinguishes some values of the unknowns.

    `variance` is that of noise that the problem does not give; with a `likelihood` it gives all.
    Raises InputError as :meth:`ResultSettling.settle` does.
    """
    from odefit.designs.observables import with_observables
    from odefit.designs.request import window_of
    from odefit.problem.noise import Noise

    model = problem.given
    texts = [observables] if isinstance(observables, str) else observables
    names = list(texts or dict.fromkeys([*model.observables, *model.states]))
    measured = {n for c in problem.conditions for n in c.series}
    known = any(n.known for n in problem.noise.values()) or likelihood
    windows = [(c.name, window_of(problem, [c.name], times)) for c in problem.conditions]
    noise: dict[str, float] = {}
    largest: Mapping[str, float] | None = None
    for name in names:
        if name in measured or problem.noise.get(name, Noise()).known or not known:
            continue
        if name in model.states:
            if largest is None:
                largest = _largest_states(problem, vectors, windows)
            noise[name] = ASSUMED_NOISE * (largest.get(name, 0.0) or 1.0)
    extended, known_names = with_observables(problem, names, noise)
    measurement = settlement(extended, vectors, known_names, windows, variance, tuple(noise))
    if measurement is None:
        raise InputError(
            "settle: the solutions predict the same for everything that may be measured; name "
            "other "
            "observables or times"
        )
    return Settling(**vars(measurement))


def _largest_states(
    problem: Problem, vectors: Sequence[Array], windows: Sequence[tuple[str, Window]]
) -> Mapping[str, float]:
    """Return the largest magnitude of each state that some values of the unknowns predict."""
    from odefit.simulation import ForwardMap
    from odefit.simulation.simulations import simulated

    forward, largest = ForwardMap(problem), dict[str, float]()
    groups = groups_of(problem)
    acting = [np.arange(len(problem.unknowns))] * len(windows)
    for group in () if groups is None else groups.groups:
        for number in group.members:
            acting[number] = np.array(sorted(group.acting), dtype=np.intp)
    known = set[tuple[str, bytes]]()
    for vector in vectors:
        for (experiment, window), unknowns in zip(windows, acting, strict=True):
            if (at := (experiment, vector[unknowns].tobytes())) in known:
                continue  # solutions often differ in one experiment alone
            known.add(at)
            curve = simulated(problem, vector, window.grid, experiment, forward=forward)
            for name, values in getattr(curve, "states", {}).items():
                largest[name] = max(largest.get(name, 0.0), float(np.max(np.abs(values))))
    return largest
