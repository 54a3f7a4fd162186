"""Samples of the posterior distribution of the unknowns, by Hamiltonian Monte Carlo.

The No-U-Turn sampler (M. D. Hoffman and A. Gelman, Journal of Machine Learning Research 15, 2014)
of the package nutpie uses the exact gradient of the likelihood. Its coordinates are those of the
bounds, whitened by the Fisher information at the estimate: the posterior is nearly a standard
normal distribution in them. Measured on alpha-pinene and a Lotka-Volterra system, it makes 20 to 30
times as many effective samples a second as the affine-invariant ensemble sampler of emcee.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.assessment.sampling.chains import (
    CalledOff,
    Chain,
    ChainOrder,
    begun,
    called_off,
    leave,
    run_chain,
)
from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.common.option_checks import check_level, check_time_limit
from odefit.common.packages import require
from odefit.methods.estimate import Cause, Status
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.control import (
    Control,
    Progress,
    RemoteControl,
    control_of,
    interruptible,
    running,
)
from odefit.methods.running.dispatch import WorkerLateError, WorkerLostError, dispatched
from odefit.methods.running.start_checkpoint import natural, numbers, opened
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

if TYPE_CHECKING:
    import pandas as pd

MAX_R_HAT = 1.01
"""Potential scale reduction above which chains have not mixed (A. Vehtari, A. Gelman, D. Simpson,
B. Carpenter, P.-C. Bürkner, Bayesian Analysis 16, 2021)."""

MIN_EFFECTIVE = 400
"""Effective sample size below which quantiles are unreliable (the same authors)."""

LONG_SECONDS = 30.0  # time left above which worker processes, which load for seconds, begin at once

LEAST_GRADIENTS = 3  # gradients of a draw, at least

DIAGNOSED = 4  # smallest number of samples in a chain from which its mixing can be judged


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of the posterior distribution.

    Attributes
    ----------
    keys
        The names of the unknowns.
    chains
        The samples, shape (chains, draws, n).
    divergences
        The number of samples after warm-up at which the sampler's integration diverged.
    status, message
        The end of the work, as an enumeration and in words.
    seed
        The seed with which it can be repeated.
    seconds
        The wall time.
    warm_up
        True if the work ended before the first sample. `chains` then has the draws that tuned the
        sampler, which are no sample of the posterior: they have no intervals.
    """

    keys: tuple[str, ...]
    chains: Array
    divergences: int
    status: Status
    message: str
    seed: int
    seconds: float
    warm_up: bool = False

    @property
    def vectors(self) -> Array:
        """The samples of all chains, shape (samples, n)."""
        return self.chains.reshape(-1, len(self.keys))

    def sampled(self) -> Array:
        """Return the samples of all chains, shape (samples, n).

        Raises
        ------
        InputError
            The work ended before the first sample.
        """
        if self.warm_up or not self.chains.size:
            raise InputError(f"there is no sample of the posterior: {self.message}")
        return self.vectors

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return a summary indexed by key.

        Its columns are ``mean``, ``sd``, ``ci_low`` and ``ci_high`` (the credible interval of equal
        tails), ``ess`` and ``r_hat``. The effective sample size is the smaller of bulk and tails.
        Where the potential scale reduction ``r_hat`` is above 1.01, the chains have not mixed.
        Draws of the warm-up have a mean alone.

        Parameters
        ----------
        level
            The probability of the credible interval, between 0 and 1.
        """
        import pandas as pd

        check_level(level)
        sd, low, high, ess, r_hat = np.full((5, len(self.keys)), np.nan)
        mean = self.vectors.mean(axis=0) if self.chains.size else sd
        if not self.warm_up and len(self.vectors) > 1:
            sd = self.vectors.std(axis=0, ddof=1)
            low, high = np.quantile(self.vectors, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        if not self.warm_up and self.chains.shape[1] >= DIAGNOSED:
            ess, r_hat = diagnostics(self.chains)
        return pd.DataFrame(
            {
                "mean": mean,
                "sd": sd,
                "ci_low": low,
                "ci_high": high,
                "ess": ess,
                "r_hat": r_hat,
            },
            index=pd.Index(self.keys, name="key"),
        )

    def to_arviz(self) -> Any:
        """Return the samples as an ``arviz.InferenceData``, for the figures of ArviZ.

        Raises
        ------
        InputError
            ArviZ is not installed.
        """
        require("arviz")
        import arviz

        return arviz.from_dict(
            posterior={key: self.chains[:, :, i] for i, key in enumerate(self.keys)}
        )

    def __str__(self) -> str:
        return f"Posterior: {self.message}\n{self.table().to_string()}"


def diagnostics(chains: Array) -> tuple[Array, Array]:
    """Return effective sample sizes and potential scale reductions of chains (chains, draws, n).

    The scale reduction of a single chain is unknown.
    """
    import arviz

    ess: Callable[..., Any] = arviz.ess

    def each(function: Callable[[Array], Any]) -> Array:
        return np.array([float(function(chains[:, :, i])) for i in range(chains.shape[2])])

    def size(draws: Array) -> float:
        bulk, tails = (float(ess(draws, method=m)) for m in ("bulk", "tail"))
        return min(bulk, tails)

    one = chains.shape[0] < 2
    return each(size), np.full(chains.shape[2], np.nan) if one else each(arviz.rhat)


def sample_posterior(
    problem: Problem,
    vector: Array,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 500,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    memory: int | str | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    stop: threading.Event | None = None,
    others: Sequence[Array] = (),
) -> Posterior:
    """Sample the posterior distribution from the optimum, each chain after `tune` steps.

    If there are `others`, optima that fit as well, chains begin at each of them in turn.

    Samples depend on `seed` alone, not on `jobs`. If the `time_limit`, the `memory` or the event
    `stop` ends the work, the results so far are returned, labelled as such. `checkpoint` is a file
    that stores finished chains, and the densities of those on this computer, for later runs, also
    of more draws. Raises InputError for unusable arguments, without the package nutpie, and for a
    model that cannot be integrated at the estimate.
    """
    for name, number in (("draws", draws), ("chains", chains), ("tune", tune)):
        if not isinstance(number, int) or number < 1:
            raise InputError(f"{name}: expected a positive whole number, got {number!r}")
    check_time_limit(time_limit)
    began = time.perf_counter()
    control = control_of(seed, time_limit, executor, jobs, progress, checkpoint, stop, memory)
    with interruptible(control):  # this takes seconds
        require("nutpie")
    options: dict[str, Any] = {"vector": vector, "tune": tune, "seed": seed}
    begin = np.array([vector, *others])
    if len(others):
        options["others"] = np.array(others)
    stored = opened(control, "chains of a posterior", problem, options)
    finished = {} if stored is None else _stored_chains(stored, range(chains), draws, len(vector))
    left = [number for number in range(chains) if number not in finished]
    with (
        running(control),
        Workers(control) as workers,
        stored or nullcontext(),
        TemporaryDirectory(prefix="odefit-chains-") as place,
    ):
        folder = Path(place)
        work = Work(partial(_unchanged, problem), partial(_run_remotely, folder))

        def order(number: int) -> ChainOrder:
            kind = f"densities of chain {number}"
            densities = None if stored is None else stored.beside(kind)
            return ChainOrder(number, draws, tune, seed, begin[number % len(begin)], densities)

        def here(number: int) -> Chain:
            rounds = math.ceil((chains - number) / max(workers.number, 1))
            limited = control.with_share(1 / rounds)  # the others have their share of the time
            return run_chain(problem, order(number), limited)

        def remote(number: int) -> tuple[Work, tuple[ChainOrder, RemoteControl]]:
            cores = workers.cores_of(left.index(number), len(left))
            return work, (order(number), control.for_workers(cores))

        long = control.seconds_left > LONG_SECONDS
        if long and len(left) > 1 and workers.number > 1 and executor is None:
            workers.count(_seconds(problem, vector, draws + tune))
        late = control.is_late
        every = dispatched(left, remote, here, workers, control, largest=1, late=late)
        for position, outcome in every:
            number = left[position]
            if isinstance(outcome["error"], WorkerLostError | WorkerLateError):
                control.remarks.append(f"chain {number}: {outcome['error']}")
                continue
            if outcome["error"] is not None:
                raise outcome["error"]
            chain = finished[number] = outcome["value"]
            if stored is not None and len(chain.samples) == draws:
                stored.put(str(number), [chain.samples.tolist(), chain.divergences])
            _tell(progress, len(finished))
        if control.interrupted.is_set():
            finished = called_off(folder) | finished
    return _posterior(problem, finished, draws, chains, control, began)


def _stored_chains(
    checkpoint: Checkpoint, chain_numbers: Iterable[int], draws: int, n: int
) -> dict[int, Chain]:
    """Return the finished chains in a checkpoint; damaged ones count as not done."""
    finished = {}
    for number in chain_numbers:
        try:
            rows, divergences = checkpoint.records[str(number)]
            if len(rows) == draws:
                samples = np.array([numbers(row, n) for row in rows])
                finished[number] = Chain(samples, natural(divergences), np.zeros((0, n)))
        except (KeyError, TypeError, ValueError):
            continue
    return finished


def _tell(progress: Callable[[Progress], None] | None, done: int) -> None:
    if progress is not None:
        progress(Progress(done, 0, math.nan, 0, "sampling the posterior, chains"))


def _seconds(problem: Problem, vector: Array, draws: int) -> float:
    """Return roughly how long a chain takes at least, so that workers begin with the first one."""
    forward = ForwardMap(problem)
    forward.gradient(vector, UNDECIDED)  # compiles the model
    began = time.perf_counter()
    forward.gradient(vector, UNDECIDED)
    return (time.perf_counter() - began) * draws * LEAST_GRADIENTS


def _unchanged(problem: Problem) -> Problem:
    """Return the problem that was sent to a worker process."""
    return problem


def _run_remotely(folder: Path, problem: Problem, task: tuple[ChainOrder, RemoteControl]) -> Chain:
    """Run a chain in a worker process, and leave what it has in `folder` if it is called off."""
    order, chain_control = task
    with chain_control.running() as control:
        if not folder.exists():  # this is another computer
            order = order._replace(checkpoint=None)
        with begun(folder, order.number):
            control = replace(control, interrupted=CalledOff(folder))
            chain = run_chain(problem, order, control)
            if control.interrupted.is_set():
                leave(folder, order.number, chain)
        return chain


def _posterior(
    problem: Problem,
    made: dict[int, Chain],
    draws: int,
    chains: int,
    control: Control,
    began: float,
) -> Posterior:
    """Return what all chains have drawn: their samples, or their warm-up without any."""
    every = _together([made[k].samples for k in sorted(made)], len(problem.unknowns))
    warm_up = not every.size
    if warm_up:
        every = _together([made[k].warm_up for k in sorted(made)], len(problem.unknowns))
    number, length = every.shape[:2]
    divergences = sum(chain.divergences for chain in made.values())
    message = f"{counted(number, 'chain')} of {counted(length, 'sample')}"
    status = Status.CONVERGED
    if warm_up or number < chains or length < draws:
        status = control.early if control.interrupted.is_set() else Status.TIME_LIMIT
        cause, amount = control.cause or Cause.TIME_LIMIT, f"{counted(chains, 'chain')} of {draws}"
        if warm_up:
            amount = f"{counted(number, 'chain')} of {counted(length, 'draw')}"
            amount += " from the warm-up, which are not a sample of the posterior"
            message = f"stopped by {cause} before the first sample: "
            message += amount if every.size else "nothing has been drawn yet"
            message += "; give it more time"
        else:
            message += f"; stopped by {cause} before {amount}"
            lost = sum(len(chain.samples) for chain in made.values()) - every.shape[0] * length
            if lost:
                message += f"; {counted(lost, 'sample')} are left out, as chains have equal lengths"
    if length >= DIAGNOSED and not warm_up:
        ess, r_hat = diagnostics(every)
        bad = [k for k, r in zip(problem.keys, r_hat, strict=True) if not r <= MAX_R_HAT]
        few = float(np.min(ess))
        if bad or few < MIN_EFFECTIVE:
            status = Status.NOT_CONVERGED if status is Status.CONVERGED else status
            if number < 2:
                message += "; one chain cannot show whether it has mixed"
            elif bad:
                message += f"; the chains have not mixed (R-hat above {MAX_R_HAT} for "
                message += f"{', '.join(bad)})"
            message += f"; the effective sample size is {few:.0f}: take more draws"
    elif status is Status.CONVERGED:
        status = Status.NOT_CONVERGED
    if divergences:
        message += f"; {divergences} divergences: quantiles may be biased near them"
    message += "".join(f"; {remark}" for remark in control.remarks)
    return Posterior(
        problem.keys,
        every,
        divergences,
        status,
        message,
        control.seed,
        time.perf_counter() - began,
        warm_up,
    )


def _together(chains: Sequence[Array], n: int) -> Array:
    """Return chains of equal length, shape (chains, draws, n), with as many draws as can be had.

    These are the last draws of the chains that are long enough.
    """
    lengths = sorted((len(chain) for chain in chains), reverse=True)
    totals = [(k + 1) * length for k, length in enumerate(lengths)]
    length = lengths[int(np.argmax(totals))] if totals else 0
    long_enough = [chain[len(chain) - length :] for chain in chains if len(chain) >= length > 0]
    return np.array(long_enough).reshape(len(long_enough), length, n)
