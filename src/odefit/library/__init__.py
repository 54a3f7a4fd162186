"""The problems of the five papers, ready to load.

>>> from odefit import library
>>> library.names()[:2]
('alpha-pinene', 'bbg')
>>> library.reference("bbg").parameters["K_s"]
5.0

Each problem is a folder with a ``problem.toml`` (format 1), its data, and a ``reference.toml``
with the reference values and their source. The synthetic data are regenerated and checked by
``tools/make_library_data.py``, from right-hand sides that do not read the problem files.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.library.reference import Reference, read_reference

if TYPE_CHECKING:
    from odefit.problem import Problem

__all__ = ["Reference", "load", "names", "path", "reference"]

_PROBLEMS = Path(__file__).parent / "problems"


def names() -> tuple[str, ...]:
    """Return the names of all library problems, sorted."""
    return tuple(sorted(folder.name for folder in _PROBLEMS.iterdir() if folder.is_dir()))


def path(name: str) -> Path:
    """Return the path of the ``problem.toml`` of a library problem.

    Raises
    ------
    InputError
        There is no problem of this name; the message proposes similar ones.
    """
    from odefit.common.errors import InputError

    if name not in names():
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise InputError(
            f"no library problem '{name}'; {hint}`odefit.library.names()` lists them all"
        )
    return _PROBLEMS / name / "problem.toml"


def reference(name: str, dataset: int = 0) -> Reference:
    """Return the reference values of a library problem, and where they come from.

    Parameters
    ----------
    name
        One of `names`.
    dataset
        Number of the data set, from 0. Only the ``rational-`` problems have more than one.

    Raises
    ------
    InputError
        There is no such problem or data set.
    """
    return read_reference(path(name).parent, dataset)


def load(
    name: str,
    *,
    dataset: int = 0,
    samples: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Problem:
    """Load a library problem, with the data of your choice.

    Parameters
    ----------
    name
        One of `names`.
    dataset
        Number of the data set, from 0. Only the ``rational-`` problems have more than one.
    samples
        Sample size, one of ``reference(name).samples``; without it the smallest. Only the
        problems of the separable least squares paper offer a choice.
    noise
        Level of Gaussian noise to add to noiseless data: its standard deviation is `noise`
        times the (n - 1) standard deviation of that observable's noiseless values in that
        experiment. An observable that does not change stays exact.
    seed
        Seed of the noise. The same seed gives the same data.

    Raises
    ------
    InputError
        There is no such problem, data set or sample size, the noise level is negative or not
        finite, or the data are noisy already.

    Examples
    --------
    >>> from odefit import library
    >>> problem = library.load("sir", samples=36, noise=0.1, seed=7)
    """
    import numpy as np

    from odefit.common.errors import InputError
    from odefit.problem import load as load_problem

    file = path(name)
    known = reference(name, dataset)
    if samples is not None and samples not in known.samples:
        offered = ", ".join(map(str, known.samples))
        raise InputError(
            f"'{name}' has no sample size {samples}. Expected: {offered}"
            if offered
            else f"'{name}' comes in one sample size; leave `samples` out"
        )
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError(f"noise level: expected a finite number >= 0, received {noise}")
    if noise > 0.0 and known.noise != "none":
        raise InputError(f"'{name}' has noisy data already: load it with noise=0")

    problem = load_problem(file)
    if samples is not None or known.datasets > 1:
        data = f"data_{dataset}.csv" if samples is None else f"data_n{samples}.csv"
        # these problems have one experiment each
        problem = problem.with_data({problem.experiments[0].name: _columns(file.parent / data)})
    if noise > 0.0:
        random = np.random.default_rng(seed)
        noisy = {}
        for experiment in problem.experiments:
            columns = dict(experiment.data)
            for observable in problem.model.observables:
                values = np.asarray(columns[observable], dtype=float)
                sd = noise * np.nanstd(values, ddof=1)
                columns[observable] = values + sd * random.standard_normal(values.size)
            noisy[experiment.name] = columns
        problem = problem.with_data(noisy)
    return problem


def _columns(file: Path) -> dict[str, Any]:
    """Return the columns of a data file of the library."""
    from odefit.problem.inputs.issues import Issues
    from odefit.problem.inputs.table import read_table

    issues = Issues()
    columns = read_table(file, file.name, (), issues)
    issues.raise_errors()
    return columns or {}
