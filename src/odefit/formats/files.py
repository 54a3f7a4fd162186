"""Problems read from and written to any file that odefit understands."""

from __future__ import annotations

import os
from pathlib import Path

from odefit.common.errors import InputError
from odefit.problem.habits import not_a_problem
from odefit.problem.inputs.file_access import checked_within
from odefit.problem.problem import Problem
from odefit.problem.toml.files import load as load_toml
from odefit.problem.toml.writing import write_toml

YAML_SUFFIXES = (".yaml", ".yml")
SBML_SUFFIXES = (".xml", ".sbml")


def load(
    path: str | os.PathLike[str],
    *,
    nominal: bool = False,
    within: str | os.PathLike[str] | None = None,
) -> Problem:
    """Read a problem: a problem file of format 1, or the YAML file of a PEtab problem.

    The name decides: ``.yaml`` and ``.yml`` are PEtab (version 1 or 2, with a model in SBML),
    everything else is format 1. Paths of other files are relative to it. Nothing in it is ever
    executed, and nothing is downloaded.

    Parameters
    ----------
    path
        The file.
    nominal
        Whether the nominal values of a PEtab problem become guesses. They are mostly the published
        answer, so that a fit that begins there shows nothing.
    within
        The folder that must contain the files it names, by default that of the file. Files of a
        PEtab problem may also be in the folder above, as in published collections. See
        :doc:`/security`.

    Raises
    ------
    InputError
        The file cannot be used; there is a message for every mistake, with its place, the offending
        text and a remedy.
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix in YAML_SUFFIXES:
        from odefit.formats.petab.reading import read_petab

        return read_petab(path, nominal=nominal, within=checked_within(within)).problem
    refuse_model(path)
    if nominal:
        raise InputError(
            f"{os.fspath(path)}: only PEtab problems (.yaml) have nominal values; this file has "
            "guesses of its own"
        )
    return load_toml(path, within=within)


def refuse_model(path: str | os.PathLike[str]) -> None:
    """Refuse the file of a model, which has no data."""
    if Path(os.fspath(path)).suffix.lower() in SBML_SUFFIXES:
        raise InputError(
            f"{os.fspath(path)}: this is a model without data; make a problem from it with "
            "odefit.read_sbml(...), which odefit.save(problem, 'NAME.toml') writes as a problem "
            "file, or load the YAML file of a PEtab problem"
        )


def save(problem: Problem, path: str | os.PathLike[str]) -> Path:
    """Write a problem: as a problem file of format 1, or as PEtab of version 2.

    Parameters
    ----------
    problem
        The problem.
    path
        ``NAME.toml`` is a problem file, with the data as CSV tables beside it. ``NAME.yaml`` is
        PEtab, with a model in SBML and tables beside it; a folder is PEtab as well, with the YAML
        file ``problem.yaml``. Files of the same names are replaced.

    Returns
    -------
    The path of the file that :func:`load` reads.

    Raises
    ------
    InputError
        A file cannot be written, or the problem has a feature that PEtab cannot express.

    Examples
    --------
    >>> import tempfile
    >>> import odefit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save(odefit.library.load("harmonic"), f"{folder}/harmonic.toml")
    ...     odefit.load(file).keys == odefit.library.load("harmonic").keys
    True
    """
    if not isinstance(problem, Problem):
        raise not_a_problem("save", problem)
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix == ".toml":
        return write_toml(problem, path)[0]
    if suffix not in ("", *YAML_SUFFIXES):
        raise InputError(
            f"{os.fspath(path)}: expected NAME.toml (a problem file), NAME.yaml or a folder (PEtab)"
        )
    from odefit.formats.petab.writing import write_petab

    return write_petab(problem, path)
