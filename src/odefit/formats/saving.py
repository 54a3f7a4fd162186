"""Problems written to any file that odefit writes."""

from __future__ import annotations

import os
from pathlib import Path

from odefit.common.errors import InputError
from odefit.formats.loading import YAML_SUFFIXES
from odefit.problem.problem import Problem
from odefit.problem.toml.toml_files import write_toml


def save(problem: Problem, path: str | os.PathLike[str]) -> Path:
    """Write a problem: as a problem file of format 1, or as PEtab of version 2.

    Parameters
    ----------
    problem
        The problem.
    path
        ``NAME.toml`` is a problem file, with the data as CSV tables beside it. ``NAME.yaml`` is
        PEtab, with a model in SBML and tables beside it; so is a folder, in which the YAML file is
        then ``problem.yaml``. Files of the same names are replaced.

    Returns
    -------
    The path of the file that :func:`load` reads.

    Raises
    ------
    InputError
        A file cannot be written, or the problem has what PEtab has no words for.

    Examples
    --------
    >>> import tempfile
    >>> import odefit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save(odefit.library.load("harmonic"), f"{folder}/harmonic.toml")
    ...     odefit.load(file).keys == odefit.library.load("harmonic").keys
    True
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix == ".toml":
        return write_toml(problem, path)[0]
    if suffix not in ("", *YAML_SUFFIXES):
        raise InputError(
            f"{os.fspath(path)}: expected NAME.toml (a problem file), NAME.yaml or a folder (PEtab)"
        )
    from odefit.formats.petab.writing import write_petab

    return write_petab(problem, path)
