"""Entries of the cache as files: JSON, of limited size, and checked against the equations.

Whoever can write to the folder of the cache can leave an entry there. So an entry is data and
nothing else, and its solutions have to solve the equations.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.problem.inputs.file_access import read_content
from odefit.problem.inputs.issues import Issues
from odefit.structure.homotopy.distinct import SAME_SOLUTION, distinct_rows
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.homotopy.tracker import solve

MAX_SIZE = 50_000_000
"""Bytes of an entry: ten thousand solutions with a hundred unknowns have as many."""


def read_entry(path: Path) -> Mapping[str, Any] | None:
    """Return what is in an entry; None if there is none that can be read.

    Values are numbers, texts, lists and tables. Complex numbers are pairs.
    """
    content = read_content(path, str(path), Issues(), MAX_SIZE)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    digest = found.pop("digest", None)
    return found if digest == _digest(path, found) else None


def write_entry(path: Path, **values: object) -> None:
    """Write an entry, unless the folder cannot be written to.

    It is complete or not there: several processes may write.
    """
    plain = {k: _pairs(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8"
        ) as file:
            file.write(json.dumps({**plain, "digest": _digest(path, plain)}))
        Path(file.name).replace(path)
    except OSError:
        return


def _digest(path: Path, values: Mapping[str, Any]) -> str:
    """Return what an entry of this name must have in it, or it is damaged."""
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
    found: ComplexArray = pairs[..., 0] + 1j * pairs[..., 1]
    return found


def count_of(value: object, least: int = 0) -> int | None:
    """Return a whole number that is not below `least`; None if it is none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if whole and least <= value < 2**63 else None  # type: ignore[call-overload,operator]


def seconds_of(value: object) -> float | None:
    """Return a number of seconds; None if it is none."""
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
