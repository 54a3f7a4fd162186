"""One chain of samples of the posterior, and what it leaves if it is ended early."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.sampling.log_posterior import LogPosterior
from odefit.assessment.sampling.stored_density import StoredDensity
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.control import Control
from odefit.problem.inputs.issues import LARGEST
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine_choice import UNDECIDED

POLL_SECONDS = 0.2
"""Seconds between two checks of whether a running chain must end."""

LEFT_SECONDS = 2.0  # seconds for which chains that were called off are awaited

INITIAL_POINTS = 20  # points tried for the start of a chain, each closer to the estimate


class Chain(NamedTuple):
    """The draws of a chain.

    `samples`, shape (draws, n), have `divergences` among them. `warm_up`, shape (k, n), are the
    draws before them, which tuned the sampler and are no samples of the posterior.
    """

    samples: Array
    divergences: int
    warm_up: Array

    @classmethod
    def empty(cls, n: int) -> Chain:
        """Return a chain that has drawn nothing."""
        return cls(np.zeros((0, n)), 0, np.zeros((0, n)))


class ChainOrder(NamedTuple):
    """The chain to be made: its number, length and seed, and where it begins, shape (n,).

    `checkpoint` opens the one that keeps the densities of this chain; None for no checkpoint.
    """

    number: int
    draws: int
    tune: int
    seed: int
    begin: Array
    checkpoint: Callable[[], Checkpoint] | None = None


def run_chain(problem: Problem, order: ChainOrder, control: Control) -> Chain:
    """Return a chain; if the control ends it early, what it has drawn by then."""
    vector, n = order.begin, len(order.begin)
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure) and cut_off().reached:
        return Chain.empty(n)
    if isinstance(evaluation, Failure):
        raise InputError(f"a posterior needs a model that can be integrated: {evaluation}")
    if not Deviance.of(forward, vector, evaluation).variance > LARGEST**-2:
        raise InputError(
            "the residuals leave no noise to be estimated, since the model reproduces the data or "
            "has as many unknowns as measurements; give the noise in [noise] to sample it anyway"
        )
    density = LogPosterior(forward, vector, evaluation)
    if control.should_stop():
        return Chain.empty(n)
    with nullcontext() if order.checkpoint is None else order.checkpoint() as checkpoint:
        return _sampled(density, StoredDensity(density, checkpoint), order, control)


def _sampled(
    density: LogPosterior, valued: StoredDensity, order: ChainOrder, control: Control
) -> Chain:
    """Return the chain of a density whose values are those of `valued`."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    n = len(order.begin)
    first = np.random.default_rng([order.seed, order.number])
    here = copy_context()  # the sampler calls from a thread of its own, which lacks the cut-off

    def log_density(point: Array) -> tuple[float, Array]:
        if control.should_stop():
            return -math.inf, np.zeros(n)  # ends the current draw, which may need 1,000 of them
        return here.run(valued, point)

    def start(_: int) -> Array:
        for shrink in range(INITIAL_POINTS):
            point = np.asarray(first.standard_normal(n) * 0.7**shrink)
            if math.isfinite(log_density(point)[0]):
                return point
        return np.zeros(n)

    def expand(coordinates: Array, **_: object) -> dict[str, Array]:
        return {"x": density.natural(np.asarray(coordinates))}

    model = from_pyfunc(
        n,
        lambda: log_density,
        lambda *_: expand,
        [np.dtype(float)],
        [(n,)],
        ["x"],
        make_initial_point_fn=start,
    )
    sampler = nutpie.sample(
        model,
        draws=order.draws,
        tune=order.tune,
        chains=1,
        cores=1,
        seed=order.seed * 1000 + order.number,
        progress_bar=False,
        blocking=False,
        return_raw_trace=True,
    )
    while True:
        try:
            return _drawn(sampler.wait(timeout=POLL_SECONDS), n, order.tune)
        except TimeoutError:
            if control.should_stop():
                return _drawn(sampler.abort(), n, order.tune, ended=True)


def _drawn(trace: Any, n: int, tune: int, *, ended: bool = False) -> Chain:
    """Return the chain of a trace.

    If it was `ended` within a draw, that diverged for this reason alone, and is left out.
    """
    draws, statistics = (batches[0] for batches in trace.get_arrow_trace())
    points = np.array(draws.column("x").to_pylist(), dtype=float).reshape(-1, n)
    diverging = np.array(statistics.column("diverging").to_pylist(), dtype=bool)
    if ended:
        count = np.flatnonzero(~diverging).max(initial=-1) + 1
        points, diverging = points[:count], diverging[:count]
    return Chain(points[tune:], int(diverging[tune:].sum()), points[:tune])


# Chains in worker processes, when the caller is interrupted ---------------------------------------

CALLED_OFF = "called-off"  # name of the file that ends chains


class CalledOff(threading.Event):
    """An event that is set once the chains of a folder are called off, by another process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / CALLED_OFF

    def is_set(self) -> bool:
        """Return whether the chains are called off."""
        return super().is_set() or self._file.exists()


def leave(folder: Path, number: int, chain: Chain) -> None:
    """Write an unfinished chain to the folder, completely or not at all."""
    if not folder.exists():
        return
    part = folder / f"{number}.part"
    with part.open("wb") as file:
        np.savez(file, **chain._asdict())
    part.replace(folder / f"{number}.npz")


@contextmanager
def begun(folder: Path, number: int) -> Iterator[None]:
    """Note in the folder, if it is on this computer, that the chain runs within the block."""
    note = folder / f"{number}.begun"
    if folder.exists():
        note.touch()
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def called_off(folder: Path) -> dict[int, Chain]:
    """Call off the chains that other processes make, and return what they leave.

    Those that have begun are awaited for :data:`LEFT_SECONDS`.
    """
    (folder / CALLED_OFF).touch()
    waiting = {int(path.stem) for path in folder.glob("*.begun")}
    left: dict[int, Chain] = {}
    end = time.monotonic() + LEFT_SECONDS
    while waiting and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        for path in folder.glob("*.npz"):
            if int(path.stem) in waiting:
                with np.load(path) as at:
                    chain = Chain(at["samples"], int(at["divergences"]), at["warm_up"])
                left[int(path.stem)] = chain
                waiting.remove(int(path.stem))
    return left
