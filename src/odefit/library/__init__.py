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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odefit.problem import Problem

__all__ = ["Reference", "load", "names", "path", "reference"]

_PROBLEMS = Path(__file__).parent / "problems"


@dataclass(frozen=True)
class Reference:
    """Reference values of one library problem (and one of its data sets).

    Attributes
    ----------
    name
        The library problem.
    papers
        Short names of the papers that use it.
    source
        The origin of the values and the data, and the choices made for this library.
    objective
        Sum of squared residuals at the reference values (0.0 for noiseless data).
    noise
        ``"none"``, ``"real"`` (measured data) or ``"gaussian"`` (synthetic noise is in the data).
    parameters, initial
        Reference values of the unknown parameters and of the unknown initial values, in the
        problem's units. With several experiments, per-experiment values are keyed
        ``"name[experiment]"``.
    dataset
        The number of the data set of these values; 0 if there is only one.
    datasets
        The number of data sets.
    samples
        Sample sizes that `load` offers; empty where there is only one.
    default_noise
        The noise level that the source uses (see `noise_model`), or None.
    noise_model
        The meaning of a noise level, or None.
    noise_sd
        Standard deviation of the noise in the data, or None.
    best_known
        Smallest known sum of squares, if the reference values are not the optimum; else None.
    not_identifiable
        Unknowns that the data cannot determine; their reference values are those of the simulation.
    """

    name: str
    papers: tuple[str, ...]
    source: str
    objective: float
    noise: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)
    dataset: int = 0
    datasets: int = 1
    samples: tuple[int, ...] = ()
    default_noise: float | None = None
    noise_model: str | None = None
    noise_sd: float | None = None
    best_known: float | None = None
    not_identifiable: tuple[str, ...] = ()


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
    """Return the reference values of a library problem, and their origin.

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
    return _read_reference(path(name).parent, dataset)


def load(
    name: str, *, dataset: int = 0, samples: int | None = None, noise: float = 0.0, seed: int = 0
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


def _read_reference(folder: Path, dataset: int) -> Reference:
    """The reference in a problem's folder.

    Parameters
    ----------
    folder
        The problem's folder, with its ``reference.toml``.
    dataset
        Number of the data set, from 0.

    Raises
    ------
    InputError
        There is no such data set.
    """
    import tomllib

    from odefit.common.errors import InputError

    raw: dict[str, Any] = tomllib.loads((folder / "reference.toml").read_text(encoding="utf-8"))
    sets: dict[str, Any] = raw.get("datasets", {"0": raw})
    if str(dataset) not in sets:
        raise InputError(
            f"'{folder.name}' has no data set {dataset}. Expected: "
            + ("0" if len(sets) == 1 else f"0 to {len(sets) - 1}")
        )
    values = sets[str(dataset)]
    return Reference(
        name=folder.name,
        papers=tuple(raw["paper"]),
        source=raw["source"],
        objective=float(raw["objective"]),
        noise=raw["noise"],
        parameters={k: float(v) for k, v in values.get("parameters", {}).items()},
        initial={k: float(v) for k, v in values.get("initial", {}).items()},
        dataset=dataset,
        datasets=len(sets),
        samples=tuple(
            sorted(int(p.stem.removeprefix("data_n")) for p in folder.glob("data_n*.csv"))
        ),
        default_noise=raw.get("default_noise"),
        noise_model=raw.get("noise_model"),
        noise_sd=raw.get("noise_sd"),
        best_known=raw.get("best_known"),
        not_identifiable=tuple(raw.get("not_identifiable", ())),
    )
