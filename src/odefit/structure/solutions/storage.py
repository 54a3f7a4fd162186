"""Generic solutions cached on disk: they depend on the equations, not on the data.

Entries are JSON files of limited size. Anyone with write access to the cache folder can leave an
entry there: so an entry is pure data, and its solutions must solve the equations.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.common.partial_files import replace_file
from odefit.problem.inputs.file_access import read_content
from odefit.problem.inputs.issues import Issues
from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.monodromy import GenericSolutions, all_solutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.homotopy.tracker import SAME_SOLUTION, distinct_rows, solve
from odefit.structure.series.deadline import Deadline
from odefit.structure.solutions.indistinguishable import (
    IndistinguishableSolutions,
    find_indistinguishable,
)

MAX_SIZE = 50_000_000
"""Largest size of an entry in bytes, which ten thousand solutions with a hundred unknowns have."""


def read_entry(path: Path) -> Mapping[str, Any] | None:
    """Return the content of an entry; None if there is no readable one.

    Values are numbers, texts, lists and tables. Complex numbers are pairs.
    """
    content = read_content(path, str(path), Issues(), MAX_SIZE)
    if content is None:
        return None
    try:
        entry = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    digest = entry.pop("digest", None)
    return entry if digest == _digest(path, entry) else None


def write_entry(path: Path, **values: object) -> None:
    """Write an entry, unless the folder is not writable.

    The entry is either complete or absent: several processes may write.
    """
    plain = {k: _pairs(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({**plain, "digest": _digest(path, plain)}).encode())
    except OSError:
        return


def _digest(path: Path, values: Mapping[str, Any]) -> str:
    """Return the digest that an entry of this name must contain, or it is damaged."""
    text = json.dumps([path.stem, values], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _pairs(values: ComplexArray) -> Any:
    return np.stack([values.real, values.imag], axis=-1).tolist()


def complex_array(value: object, dimensions: int) -> ComplexArray | None:
    """Return complex numbers given as nested lists of pairs; None if not finite."""
    try:
        pairs = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None
    if pairs.ndim != dimensions + 1 or pairs.shape[-1] != 2 or not np.isfinite(pairs).all():
        return None
    numbers: ComplexArray = pairs[..., 0] + 1j * pairs[..., 1]
    return numbers


def count_of(value: object, least: int = 0) -> int | None:
    """Return an integer of at least `least`; None for any other value."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if whole and least <= value < 2**63 else None  # type: ignore[call-overload,operator]


def seconds_of(value: object) -> float | None:
    """Return a number of seconds; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e12 and math.isfinite(value) else None


def are_solutions(square: SquareSystem, solutions: ComplexArray, parameters: ComplexArray) -> bool:
    """Return whether distinct points, shape (d, n), solve the equations."""
    known = square.size + len(square.held)
    for expansion in square.system.expansions:
        e = expansion.program.equations
        known += len(e.known) + len(e.functions) * (square.order + 1)
    if solutions.shape[1:] != (square.size,) or parameters.shape != (known,) or not len(solutions):
        return False
    every = np.broadcast_to(parameters, (len(solutions), known))
    with np.errstate(all="ignore"):
        left, jacobians, _ = square.values(solutions, every)
        steps = solve(jacobians, (left - every[:, : square.size])[:, :, None])[:, :, 0]
        near = np.abs(steps) <= SAME_SOLUTION * (np.abs(solutions) + 1e-10)
    return bool(near.all()) and distinct_rows(solutions) == len(solutions)


FORMAT = 3
"""Version of the entries, part of every key: entries of other versions are not found."""

COUNT_WORK = 1e9
"""Largest number of operations for counting the solutions before the search."""


def cache_folder() -> Path:
    """Return the folder of the entries: ``$ODEFIT_CACHE``, or one in the user's cache."""
    folder = os.environ.get("ODEFIT_CACHE")
    if folder:
        return Path(folder)
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
    """Return the result of :func:`all_solutions`, from the disk if it was found earlier.

    The number of solutions is computed first, if that takes no more than :data:`COUNT_WORK`. A
    search that was stopped early, or found fewer, is not stored. An unwritable folder or an
    unreadable entry causes no failure.
    """
    path = cache_folder() / f"{key(square, seed)}.json"
    entry = read_entry(path)
    known = None if entry is None else _generic(square, entry)
    if known is not None:
        return known
    limit = Deadline(stop=stop, work=COUNT_WORK, within=square.system.deadline)
    count = exact_count(square, structural=False, limit=limit, seed=seed)
    # A homotopy does not follow multiple solutions, if there are any.
    expected = count.total if count is not None and count.dimension == count.total else None
    solutions = all_solutions(square, seed, expected=expected, stop=stop, report=report)
    if solutions.complete:
        write_entry(
            path,
            solutions=solutions.solutions,
            parameters=solutions.parameters,
            arrivals=solutions.arrivals,
            paths=solutions.paths,
            failed=solutions.failed,
            expected=solutions.expected,
            seconds=solutions.seconds,
        )
    return solutions


def stored_indistinguishable(
    square: SquareSystem, expected: int, seed: int, stop: Callable[[], bool]
) -> IndistinguishableSolutions | None:
    """Return the indistinguishable solutions at a random point, from the disk if possible.

    Returns None if not all were found before `stop` returned True.
    """
    path = cache_folder() / f"{key(square, seed)}-{expected}.json"
    entry = read_entry(path)
    known = None if entry is None else _solutions(square, entry)
    if known is not None and len(known[0]) == expected:
        return IndistinguishableSolutions(*known, 0, 0, 0)
    point, parameters = square.generic_point(np.random.default_rng([seed, 3]))
    solutions = find_indistinguishable(square, point, parameters, seed, stop, expected)
    if len(solutions.solutions) != expected:
        return None
    write_entry(path, solutions=solutions.solutions, parameters=solutions.parameters)
    return solutions


def _solutions(
    square: SquareSystem, entry: Mapping[str, Any]
) -> tuple[ComplexArray, ComplexArray] | None:
    """Return solutions and parameters of an entry; None if these are not solutions."""
    solutions = complex_array(entry.get("solutions"), 2)
    parameters = complex_array(entry.get("parameters"), 1)
    if solutions is None or parameters is None:
        return None
    return (solutions, parameters) if are_solutions(square, solutions, parameters) else None


def _generic(square: SquareSystem, entry: Mapping[str, Any]) -> GenericSolutions | None:
    """Return the content of an entry; None unless it states that all solutions were found."""
    known = _solutions(square, entry)
    counts = [count_of(entry.get(name)) for name in ("arrivals", "paths", "failed")]
    seconds, number = seconds_of(entry.get("seconds")), entry.get("expected")
    expected = None if number is None else count_of(number, 1)
    if known is None or seconds is None or (expected is None and number is not None):
        return None
    arrivals, paths, failed = counts
    if arrivals is None or paths is None or failed is None:
        return None
    solutions = GenericSolutions(*known, arrivals, paths, failed, seconds, expected)
    return solutions if solutions.complete else None
