"""Generic solutions kept on disk: they belong to the equations, not to the data."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.monodromy import GenericSolutions, all_solutions
from odefit.structure.indistinguishable import (
    IndistinguishableSolutions,
    find_indistinguishable,
)
from odefit.structure.square import SquareSystem

FORMAT = 2
"""Version of the entries, part of every key: entries of other versions are not found."""

COUNT_TIME_LIMIT = 20.0
"""Largest number of seconds spent on counting the solutions before they are searched for."""

NOT_COUNTED = -1
"""Number that stands in an entry for a number of solutions that is not known."""


def cache_folder() -> Path:
    """Return the folder of the entries: ``$ODEFIT_CACHE``, or one in the user's cache."""
    given = os.environ.get("ODEFIT_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odefit" / "solutions"


def key(square: SquareSystem, seed: int) -> str:
    """Return a name for the equations of `square` and a seed: equal systems have equal names."""
    parts: list[object] = [FORMAT, seed, square.solved.tolist(), square.held.tolist()]
    parts += [(r.expansion, r.order, r.output) for r in square.rows]
    for expansion in square.system.expansions:
        e = expansion.program.equations
        parts += [tuple(entry) for entry in e.tape.entries]
        parts += sorted((i, str(v)) for i, v in e.tape.numbers.items())
        for terms in (e.unknowns, e.states, e.rhs, e.initial, e.outputs, e.known, e.functions):
            parts.append([t.index for t in terms])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def stored_solutions(
    square: SquareSystem,
    seed: int = 0,
    *,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda count: None,
) -> GenericSolutions:
    """Return what :func:`all_solutions` finds, from the disk if it was found before.

    The number of solutions is computed first, if that takes no longer than
    :data:`COUNT_TIME_LIMIT`. A search that was stopped early, or found fewer, is not kept. A
    folder that cannot be written to, or an entry that cannot be read, is no reason to fail.

    Parameters
    ----------
    square, seed, stop, report
        The arguments of :func:`all_solutions`.
    """
    path = cache_folder() / f"{key(square, seed)}.npz"
    try:
        with path.open("rb") as file, np.load(file) as kept:
            arrivals, paths, failed, number = (int(v) for v in kept["counts"])
            return GenericSolutions(
                kept["solutions"],
                kept["parameters"],
                arrivals,
                paths,
                failed,
                float(kept["seconds"]),
                None if number == NOT_COUNTED else number,
            )
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        pass
    count = exact_count(square, structural=False, time_limit=COUNT_TIME_LIMIT, seed=seed, stop=stop)
    # Multiple solutions, should there be any, are none that a homotopy follows.
    expected = count.total if count is not None and count.dimension == count.total else None
    found = all_solutions(square, seed, expected=expected, stop=stop, report=report)
    if found.complete:
        _keep(path, found)
    return found


def stored_indistinguishable(
    square: SquareSystem, expected: int, seed: int, stop: Callable[[], bool]
) -> IndistinguishableSolutions | None:
    """Return the indistinguishable solutions at a random point, from the disk if it knows them.

    Parameters
    ----------
    square, seed, stop, expected
        The arguments of :func:`find_indistinguishable`.

    Returns
    -------
    IndistinguishableSolutions or None
        None if not all were found before `stop` said to end.
    """
    path = cache_folder() / f"{key(square, seed)}-{expected}.npz"
    try:
        with path.open("rb") as file, np.load(file) as kept:
            return IndistinguishableSolutions(kept["solutions"], kept["parameters"], 0, 0, 0)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        pass
    point, parameters = square.generic_point(np.random.default_rng([seed, 3]))
    found = find_indistinguishable(square, point, parameters, seed, stop, expected)
    if len(found.solutions) != expected:
        return None
    _write(path, solutions=found.solutions, parameters=found.parameters)
    return found


def _keep(path: Path, found: GenericSolutions) -> None:
    """Write an entry, unless the folder cannot be written to."""
    expected = NOT_COUNTED if found.expected is None else found.expected
    _write(
        path,
        solutions=found.solutions,
        parameters=found.parameters,
        counts=np.array([found.arrivals, found.paths, found.failed, expected]),
        seconds=np.array(found.seconds),
    )


def _write(path: Path, **arrays: npt.NDArray[Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        Path(file.name).replace(path)  # complete or not there: several processes may write
    except OSError:
        return
