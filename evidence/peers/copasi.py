"""The campaign's comparison with COPASI: scatter search, then Levenberg and Marquardt's method.

`copasi_model` describes the statement of a problem. Settings of both methods are COPASI's own,
except that the first ends at two thirds of the time limit; the integration has the tolerances of
all peers. Weights are those of the package where standard deviations are given. COPASI fits no
standard deviations. Where they are estimated, it receives the best ones beside the published
trajectories, more than any other method receives. It then fits all unknowns except those of the
noise alone. Its answer is judged with the unknowns of the noise at their optimum, which odefit
finds outside the time limit with all others held at COPASI's values. An unknown of both model and
noise, for example a scale that multiplies both, is free in that last step too.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np

from evidence.peers.copasi_model import CopasiModel, Deviations
from evidence.peers.script import Script
from evidence.peers.stated import Found, check_stated, deviations, estimates_noise, noise_unknowns
from odefit import Control, ForwardMap, InputError, Problem, SingleShooting
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value
from odefit.simulation import Evaluation

# The methods in sequence, each from the end of the last
METHODS = ("Scatter Search", "Levenberg - Marquardt")

# Share of the time limit for the first method; the second finds the optimum near its end
GLOBAL_SHARE = 2 / 3

# Largest relative difference between COPASI's sum of squares and odefit's at the same unknowns
SAME = 1e-3
ROUNDING = 1e-9  # share of the data's sum of squares below which a difference is ignored
NOISE_EVALUATIONS = 200  # largest number of evaluations in the search for the unknowns of the noise


def copasi(problem: Problem, seed: int, limit: float, reference: Array | None = None) -> Found:
    """Fit by COPASI; at the time limit its best point is the answer."""
    try:
        import basico  # noqa: F401 - the message comes before anything is done
    except ImportError:
        raise InputError(
            "COPASI is missing, so it is not compared; `pip install copasi-basico` installs it"
        ) from None
    check_stated(problem)
    sds = weights_told(problem, reference)
    deadline = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        model = CopasiModel(problem, sds, folder)
        try:
            if reference is not None:
                check_same(model, problem, sds, reference)
            values = None
            late = False
            for number, method in enumerate(METHODS):
                began = time.monotonic()
                seconds = deadline - began
                if seconds <= 0:
                    late = True
                    break
                if number == 0:
                    seconds *= GLOBAL_SHARE
                values = model.estimated(method, seed + 1, seconds, randomise=number == 0)
                late = late or time.monotonic() - began >= seconds
            unknowns = model.unknowns
        finally:
            model.close()
    message = ", then ".join(METHODS)
    if values is None:
        return Found(None, 1, late, message)
    vector = 0.5 * (problem.lower + problem.upper) if reference is None else reference.copy()
    vector[unknowns] = values
    if estimates_noise(problem):
        vector = with_best_noise(problem, vector)
        message += "; weights as the published values imply"
    return Found(vector, 1, late, message)


def weights_told(problem: Problem, reference: Array | None) -> Deviations:
    """Return the standard deviation of each measurement, by experiment and observable."""
    if not estimates_noise(problem):
        vector = np.ones(len(problem.unknowns))  # no residual depends on it
        found = []
        for condition in problem.conditions:
            known = {
                name: bound_value(what, condition.scalars, list(vector), NUMPY)
                for name, what in condition.scalars.items()
            }
            found.append(
                {n: deviations(problem, condition, n, known, vector) for n in condition.series}
            )
        return found
    if reference is None:
        raise InputError(
            "COPASI's weights are given, not estimated, and no published values imply them here"
        )
    stated = Script(problem, lambda: None).statements(with_best_noise(problem, reference))
    return [{name: part.sds for name, part in parts.items()} for parts in stated]


def check_same(model: CopasiModel, problem: Problem, sds: Deviations, vector: Array) -> None:
    """Refuse a problem whose sum of squares differs in COPASI."""
    squares = size = 0.0
    stated = Script(problem, lambda: None).statements(vector)
    for parts, own in zip(stated, sds, strict=True):
        for name, part in parts.items():
            squares += float(np.sum((part.differences / own[name]) ** 2))
            size += float(np.sum((part.measured / own[name]) ** 2))
    found = model.objective(vector)
    if not abs(found - squares) <= SAME * squares + ROUNDING * size:
        raise InputError(
            f"COPASI's weighted sum of squares at the reference is {found:.6g}, where that of "
            f"odefit is {squares:.6g}: stated as it is here, the problem is another one there"
        )


def with_best_noise(problem: Problem, vector: Array) -> Array:
    """Return the unknowns with those of the noise at their optimum, all others unchanged."""
    free = noise_unknowns(problem)
    vector = np.clip(vector, problem.lower, problem.upper)
    if not free:
        return vector
    values = dict(zip(problem.keys, vector.tolist(), strict=True))
    own = [problem.keys[i] for i in free]
    reduced = problem.with_unknowns(fix={k: v for k, v in values.items() if k not in own})
    start = reduced.vector({k: values[k] for k in reduced.keys})
    search = SingleShooting(evaluations=NOISE_EVALUATIONS)
    end = search.run(ForwardMap(reduced), 0, start, Control(0)).vector
    found = problem.vector(values | dict(zip(reduced.keys, end.tolist(), strict=True)))
    forward = ForwardMap(problem)
    before, after = (forward.evaluate(v) for v in (vector, found))
    if not isinstance(after, Evaluation):
        return vector
    worse = isinstance(before, Evaluation) and before.cost < after.cost
    return vector if worse else found
