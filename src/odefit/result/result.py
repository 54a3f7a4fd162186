"""The result of a fit: its data with tables, figures, reports and files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odefit.assessment.profiles import ProfilesData
from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.common.option_checks import check_level
from odefit.methods.running.control import Progress
from odefit.result.profiles import Profiles
from odefit.result.result_figures import ResultFigures
from odefit.result.result_predictions import ResultPredictions
from odefit.result.settling import ResultSettling
from odefit.result_data import ResultData, Solution

if TYPE_CHECKING:
    import pandas as pd

    from odefit.assessment.sampling.bootstrap import Bootstrap, BootstrapKind
    from odefit.assessment.sampling.posterior import Posterior
    from odefit.result.params import Params

__all__ = ["Result", "Solution", "load_result"]


@dataclass(frozen=True, eq=False, repr=False)
class Result(ResultData, ResultPredictions, ResultFigures, ResultSettling):
    """An estimate with its assessment.

    ``print(result)`` shows it as text; a notebook shows its tables. Its data are the attributes of
    :class:`odefit.result_data.ResultData`, such as ``best``, ``status`` and ``solutions``.
    ``profiles`` holds those given to :meth:`with_profiles`. Attributes that need a solution raise a
    ValueError without one.
    """

    @property
    def params(self) -> Params:
        """The estimates by name: ``result.params["k"].value``, ``.stderr``, ``.ci`` as in lmfit.

        Known values are included. :attr:`parameters` is the same as a table.
        """
        from odefit.result.params import params_of

        return params_of(self)

    @property
    def parameters(self) -> pd.DataFrame:
        """The estimates as a table indexed by key, including known values.

        Its columns are ``kind`` ("parameter", "initial" or "noise"), ``estimate``, ``std_error``,
        ``rse`` (the relative standard error in per cent), ``ci_low`` and ``ci_high``. Then follow
        ``identifiable`` (True, False, or None where undecided), ``note`` (why a number is missing
        or needs care) and ``unit``. Confidence limits are in natural units, and their level is in
        ``attrs["level"]``.
        """
        from odefit.reporting.parameters import parameter_table

        return parameter_table(self)

    @property
    def residuals(self) -> pd.DataFrame:
        """One row for each measurement, see :func:`odefit.reporting.summary.residual_frame`."""
        from odefit.reporting.summary import residual_frame

        return residual_frame(self)

    def summary(self) -> pd.Series:
        """Return summary numbers, see :func:`odefit.reporting.summary.summary_series`."""
        from odefit.reporting.summary import summary_series

        return summary_series(self)

    def bootstrap(
        self,
        count: int = 500,
        kind: BootstrapKind = "parametric",
        *,
        seed: int | None = None,
        time_limit: float | None = None,
        memory: int | str | None = None,
        executor: Executor | None = None,
        jobs: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        checkpoint: str | Path | None = None,
        stop: threading.Event | None = None,
    ) -> Bootstrap:
        """Simulate data at the best solution, and refit each from all solutions that fit.

        Parameters
        ----------
        count, seed
            The number of simulated data sets; the seed of the noise, by default that of the fit.
        kind
            ``"parametric"`` draws noise from the noise model, ``"residual"`` from the residuals.
        time_limit, memory, executor, jobs, progress, checkpoint, stop
            As :func:`odefit.fit` takes them. If a limit ends the work, the samples so far are
            returned.

        Raises
        ------
        InputError
            An argument is invalid, or the answer cannot be simulated.
        """
        from odefit.assessment.sampling.bootstrap import bootstrap

        return bootstrap(
            self.problem,
            self._plain_vector("a bootstrap"),
            count,
            kind,
            seed=self.seed if seed is None else seed,
            time_limit=time_limit,
            memory=memory,
            executor=executor,
            jobs=jobs,
            progress=progress,
            checkpoint=checkpoint,
            stop=stop,
            others=self._other_vectors,
        )

    def sample(
        self,
        draws: int = 1000,
        chains: int = 4,
        tune: int = 500,
        *,
        seed: int | None = None,
        time_limit: float | None = None,
        memory: int | str | None = None,
        executor: Executor | None = None,
        jobs: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        checkpoint: str | Path | None = None,
        stop: threading.Event | None = None,
    ) -> Posterior:
        """Sample the posterior distribution of the unknowns, from the solutions that fit.

        The prior is the problem's, within the bounds. Unknowns without one have a uniform density
        there (of the logarithm for unknowns on a log10 scale and standard deviations). This needs
        the extra ``odefit[posterior]``.

        Parameters
        ----------
        draws, chains, tune
            The number of samples in a chain, of chains, and of initial samples that tune the
            sampler.
        seed
            The seed; None for that of the fit.
        time_limit, memory, executor, jobs, progress, checkpoint, stop
            As :func:`odefit.fit` takes them. If a limit ends the work, the samples so far are
            returned.

        Raises
        ------
        InputError
            An argument is invalid, a package is missing, or the answer cannot be simulated.
        """
        from odefit.assessment.sampling.posterior import sample_posterior

        return sample_posterior(
            self.problem,
            self._plain_vector("a posterior"),
            draws,
            chains,
            tune,
            seed=self.seed if seed is None else seed,
            time_limit=time_limit,
            memory=memory,
            executor=executor,
            jobs=jobs,
            progress=progress,
            checkpoint=checkpoint,
            stop=stop,
            others=self._other_vectors,
        )

    def _plain_vector(self, subject: str) -> Array:
        """Return the unknowns of the best solution, unless it is on shooting nodes."""
        if self.best.nodes is not None:
            raise InputError(
                "the trajectories of this answer restart at shooting nodes, or obey constraints"
                f" beside the data: {subject} needs trajectories from one integration each"
            )
        return np.asarray(self.best.vector, dtype=float)

    def profile(
        self,
        keys: Sequence[str] | None = None,
        *,
        level: float | None = None,
        expressions: Sequence[str] | str = (),
        time_limit: float | None = None,
        memory: int | str | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        checkpoint: str | Path | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Profiles:
        """Return profile likelihoods: intervals that hold even for strongly nonlinear models.

        Along the profile of an unknown, all others are refitted for each of its values. The
        interval contains all values within the limit of the likelihood ratio (S. A. Murphy and A.
        W. van der Vaart, On profile likelihood, 2000; A. Raue et al., Structural and practical
        identifiability analysis of partially observed dynamical models by exploiting the profile
        likelihood, 2009).

        Parameters
        ----------
        keys, level
            The unknowns (by default all, or no unknown if expressions are given), and the level of
            the intervals (by default that of the fit).
        expressions
            Other quantities: expressions in the unknowns such as ``"CL = k*V"``, and states or
            observables at a time such as ``"x1@5"``.
        time_limit, memory, jobs, executor, checkpoint, progress, stop
            As :func:`odefit.fit` takes them. If a limit ends the work, the sides so far are
            returned. The result does not depend on the number of processes.

        Returns
        -------
        The profiles. If a better optimum is found on the way, the profiles start from it, and
        ``vector`` has its unknowns.

        Raises
        ------
        InputError
            A key or an expression is unknown, there is no noise for the likelihood, or an argument
            is invalid.
        """
        from odefit.assessment.profiles.profiling import profile_all
        from odefit.methods.running.control import control_of, interruptible

        vector = self._plain_vector("a profile")
        if level is None:
            level = self.uncertainty.level if self.uncertainty is not None else 0.95
        check_level(level)
        for name, value in (("time_limit", time_limit), ("jobs", jobs)):
            if value is not None and not value > 0:
                raise InputError(f"{name}: expected a positive number, got {value:g}")
        control = control_of(
            self.seed, time_limit, executor, jobs, progress, checkpoint, stop, memory
        )
        keys = [keys] if isinstance(keys, str) else keys
        others = [s.vector for s in self.solutions[1:] if s.nodes is None]
        texts = [expressions] if isinstance(expressions, str) else expressions
        with interruptible(control):
            profiles = profile_all(self.problem, vector, level, control, keys, texts, others)
        return Profiles(**vars(profiles))

    def with_profiles(self, profiles: ProfilesData | None) -> Result:
        """Return the same result with these profiles in its report and its file."""
        return replace(self, profiles=profiles)

    def report(self, path: str | Path) -> None:
        """Write a report: one self-contained file, whose name decides the format.

        ``.html`` is a page with all figures, which browsers also print to PDF; ``.md`` has its
        words and tables in Markdown, without figures.

        Raises
        ------
        InputError
            The name has another suffix, a package is missing, or the file cannot be written.
        """
        import datetime

        from odefit.common.partial_files import write_atomically
        from odefit.reporting.documents.file_kinds import check_report

        suffix, date = check_report(path), datetime.date.today().isoformat()
        if suffix == ".md":
            from odefit.reporting.documents.markdown_report import report_markdown

            content = report_markdown(self, date)
        else:
            from odefit.reporting.documents.html import report_html

            content = report_html(self, date)
        write_atomically(path, content)

    def save(self, path: str | Path) -> None:
        """Write the result, or its table of estimates, to a file whose name decides the format.

        ``.json`` is the whole result, which :func:`odefit.load_result` reads back. ``.csv`` is
        :attr:`parameters` at full precision; ``.tex`` (for the package booktabs) and ``.md`` are
        the table formatted for a paper. ``.py``, ``.c``, ``.jl`` and ``.m`` are :doc:`stand-alone
        programs </programs>`.

        Raises
        ------
        InputError
            The suffix is unknown, the file cannot be written, or the model uses a feature that
            programs lack.
        """
        from odefit.common.partial_files import write_atomically
        from odefit.reporting.documents.estimate_tables import WRITERS
        from odefit.reporting.documents.file_kinds import PROGRAMS, check_saved
        from odefit.result_data.result_file import save_result

        if (suffix := check_saved(path)) in PROGRAMS:
            from odefit.reporting.programs.writing import write_program

            write_program(self.problem, self._plain_vector("a program"), path)
        elif suffix in WRITERS:
            write_atomically(path, WRITERS[suffix](self))
        else:
            save_result(self, path)

    def __repr__(self) -> str:
        value = self.value_of(self.best) if self.solutions else self.objective
        status, ends = self.status.value, counted(len(self.solutions), "solution")
        return f"Result({self.problem.name!r}: {status}, {self.measure} {value:.6g}, {ends})"

    def __str__(self) -> str:
        from odefit.reporting.terminal import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        from odefit.reporting.documents.html import summary_html

        return summary_html(self)


def load_result(path: str | Path) -> Result:
    """Read a result that ``odefit fit --json FILE`` or :meth:`Result.save` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or is not a result file of this format.
    """
    from odefit.result_data.result_file import read_result

    data = vars(read_result(path))
    if data["profiles"] is not None:
        data = data | {"profiles": Profiles(**vars(data["profiles"]))}
    return Result(**data)
