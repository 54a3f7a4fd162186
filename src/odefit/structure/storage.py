"""Generic solutions kept on disk: they belong to the equations, not to the data."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.monodromy import GenericSolutions, all_solutions
from odefit.structure.square import SquareSystem

FORMAT = 2
"""Part of every key: entries of other versions are not found."""

COUNTING = 20.0
"""Seconds, at most, spent on the number of solutions before they are searched for."""

UNKNOWN = -1
"""In an entry, in the place of a number of solutions that was not known."""


def folder() -> Path:
    """Where entries are kept: ``$ODEFIT_CACHE``, or odefit's folder in the user's cache."""
    given = os.environ.get("ODEFIT_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odefit" / "solutions"


def key(square: SquareSystem, seed: int) -> str:
    """A name for the equations of `square`: equal systems have equal keys."""
    parts: list[object] = [FORMAT, seed, square.solved.tolist(), square.held.tolist()]
    parts += [(r.block, r.order, r.output) for r in square.rows]
    for block in square.system.blocks:
        e = block.program.equations
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
    """What :func:`all_solutions` finds, from the disk if it was found before.

    Their number is computed first, if that takes no longer than :data:`COUNTING`. A search that
    was stopped early, or found fewer, is not kept. A folder that cannot be written to, or an
    entry that cannot be read, is no reason to fail.
    """
    path = folder() / f"{key(square, seed)}.npz"
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
                None if number == UNKNOWN else number,
            )
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        pass
    count = exact_count(square, structural=False, time_limit=COUNTING, seed=seed, stop=stop)
    # Multiple solutions, should there be any, are none that a homotopy follows.
    expected = count.total if count is not None and count.dimension == count.total else None
    found = all_solutions(square, seed, expected=expected, stop=stop, report=report)
    if found.closed:
        _keep(path, found)
    return found


def _keep(path: Path, found: GenericSolutions) -> None:
    expected = UNKNOWN if found.expected is None else found.expected
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            np.savez(
                file,
                solutions=found.solutions,
                parameters=found.parameters,
                counts=np.array([found.arrivals, found.paths, found.failed, expected]),
                seconds=found.seconds,
            )
        Path(file.name).replace(path)  # complete or not there: several processes may write
    except OSError:
        return
