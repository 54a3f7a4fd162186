"""The single measurement that would best distinguish several solutions.

As in G. Buzzi-Ferraris and P. Forzatti, A new sequential experimental design procedure for
discriminating among rival models, Chemical Engineering Science 38, 1983, 225-232. The difference of
two predictions is compared with their own uncertainty and the noise of a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.designs.candidates import Window
from odefit.designs.information import InformationMap
from odefit.designs.intervals import Determined
from odefit.designs.parts import Run
from odefit.problem.binding import dynamic_unknowns
from odefit.problem.problem import Problem

SAME = 1e-12
"""Relative difference of unknowns up to which two solutions predict the same for an experiment."""


@dataclass(frozen=True)
class Settlement:
    """The measurement that distinguishes solutions best.

    Attributes
    ----------
    observable, experiment, time, time_unit
        The measurement: it maximises the distance between the two solutions that it distinguishes
        least.
    predictions
        The predictions of the solutions, the best solution first.
    sd
        The standard deviation of the measurement.
    distance
        The smallest difference of two predictions over its standard deviation, including the
        uncertainty of both predictions and the noise of one measurement.
    assumed
        Whether the noise is assumed, as it is unknown.
    """

    observable: str
    experiment: str
    time: float
    time_unit: str
    predictions: tuple[float, ...]
    sd: float
    distance: float
    assumed: bool = False


def settlement(
    problem: Problem,
    vectors: Sequence[Array],
    observables: Sequence[str],
    windows: Sequence[tuple[str, Window]],
    variance: float,
    assumed: Sequence[str] = (),
) -> Settlement | None:
    """Return the best measurement to distinguish solutions; None if none can be made.

    Parameters
    ----------
    problem
        The problem, with all `observables`.
    vectors
        The unknowns of the solutions, two or more.
    observables
        The observables that may be measured.
    windows
        The experiments that may be measured again, each with its times.
    variance
        The variance of the noise if the problem gives none.
    assumed
        Observables whose noise is assumed.

    Raises
    ------
    InputError
        There are fewer than two solutions.
    """
    if len(vectors) < 2:
        raise InputError("settle: only one solution fits, so there is nothing to distinguish")
    information = InformationMap(problem, observables, (), variance)
    existing = [Determined(information.existing(v, measurements=True)) for v in vectors]
    best: Settlement | None = None
    for name, window in windows:
        if _alike(problem, name, vectors):
            continue
        times = window.grid
        informations = [information.of([Run(name)], [times], v)[0] for v in vectors]
        for j, observable in enumerate(observables):
            possible = np.all([t.possible[:, j] for t in informations], axis=0)
            errors = [
                known.errors(t.gradients[:, j].T)
                for known, t in zip(existing, informations, strict=True)
            ]
            distances = np.full(len(times), np.inf)
            for a, b in combinations(range(len(vectors)), 2):
                difference = np.abs(informations[a].values[:, j] - informations[b].values[:, j])
                noise = np.maximum(informations[a].sds[:, j], informations[b].sds[:, j]) ** 2
                with np.errstate(invalid="ignore", divide="ignore"):
                    of_pair = difference / np.sqrt(noise + errors[a] ** 2 + errors[b] ** 2)
                distances = np.minimum(distances, np.where(np.isfinite(of_pair), of_pair, 0.0))
            distances = np.where(possible, distances, -1.0)
            at = int(np.argmax(distances))
            if distances[at] > (0.0 if best is None else best.distance):
                best = Settlement(
                    observable,
                    name,
                    float(times[at]),
                    problem.time_unit,
                    tuple(float(t.values[at, j]) for t in informations),
                    float(max(t.sds[at, j] for t in informations)),
                    float(distances[at]),
                    observable in assumed,
                )
    return best


def _alike(problem: Problem, experiment: str, vectors: Sequence[Array]) -> bool:
    """Return whether two solutions have the same values of all unknowns of an experiment."""
    condition = problem.condition(experiment)
    acting = sorted(dynamic_unknowns(condition, sorted(condition.scalars)))
    return any(
        np.allclose(a[acting], b[acting], rtol=SAME, atol=0.0) for a, b in combinations(vectors, 2)
    )
