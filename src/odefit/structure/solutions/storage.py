"""Generic solutions kept on disk: they belong to the equations, not to the data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.monodromy import GenericSolutions, all_solutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.deadline import Deadline
from odefit.structure.solutions.cache_entries import (
    are_solutions,
    complex_array,
    count_of,
    read_entry,
    seconds_of,
    write_entry,
)
from odefit.structure.solutions.indistinguishable import (
    IndistinguishableSolutions,
    find_indistinguishable,
)

FORMAT = 3
"""Version of the entries, part of every key: entries of other versions are not found."""

COUNT_WORK = 1e9
"""Largest number of operations spent on counting the solutions before they are searched for."""


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

    The number of solutions is computed first, if that takes no more than :data:`COUNT_WORK`. A
    search that was stopped early, or found fewer, is not kept. A folder that cannot be written to,
    or an entry that cannot be read, is no reason to fail.
    """
    path = cache_folder() / f"{key(square, seed)}.json"
    kept = read_entry(path)
    known = None if kept is None else _generic(square, kept)
    if known is not None:
        return known
    limit = Deadline(stop=stop, work=COUNT_WORK, within=square.system.deadline)
    count = exact_count(square, structural=False, limit=limit, seed=seed)
    # Multiple solutions, should there be any, are none that a homotopy follows.
    expected = count.total if count is not None and count.dimension == count.total else None
    found = all_solutions(square, seed, expected=expected, stop=stop, report=report)
    if found.complete:
        write_entry(
            path,
            solutions=found.solutions,
            parameters=found.parameters,
            arrivals=found.arrivals,
            paths=found.paths,
            failed=found.failed,
            expected=found.expected,
            seconds=found.seconds,
        )
    return found


def stored_indistinguishable(
    square: SquareSystem, expected: int, seed: int, stop: Callable[[], bool]
) -> IndistinguishableSolutions | None:
    """Return the indistinguishable solutions at a random point, from the disk if they are there.

    None is returned if not all were found before `stop` returned True.
    """
    path = cache_folder() / f"{key(square, seed)}-{expected}.json"
    kept = read_entry(path)
    known = None if kept is None else _solutions(square, kept)
    if known is not None and len(known[0]) == expected:
        return IndistinguishableSolutions(*known, 0, 0, 0)
    point, parameters = square.generic_point(np.random.default_rng([seed, 3]))
    found = find_indistinguishable(square, point, parameters, seed, stop, expected)
    if len(found.solutions) != expected:
        return None
    write_entry(path, solutions=found.solutions, parameters=found.parameters)
    return found


def _solutions(
    square: SquareSystem, kept: Mapping[str, Any]
) -> tuple[ComplexArray, ComplexArray] | None:
    """Return solutions and parameters of an entry; None if these are no solutions."""
    solutions = complex_array(kept.get("solutions"), 2)
    parameters = complex_array(kept.get("parameters"), 1)
    if solutions is None or parameters is None:
        return None
    return (solutions, parameters) if are_solutions(square, solutions, parameters) else None


def _generic(square: SquareSystem, kept: Mapping[str, Any]) -> GenericSolutions | None:
    """Return what an entry says; None if it does not say that all solutions were found."""
    known = _solutions(square, kept)
    counts = [count_of(kept.get(name)) for name in ("arrivals", "paths", "failed")]
    seconds, number = seconds_of(kept.get("seconds")), kept.get("expected")
    expected = None if number is None else count_of(number, 1)
    if known is None or seconds is None or (expected is None and number is not None):
        return None
    arrivals, paths, failed = counts
    if arrivals is None or paths is None or failed is None:
        return None
    found = GenericSolutions(*known, arrivals, paths, failed, seconds, expected)
    return found if found.complete else None
