"""The meaning of the problem files in tests/golden/problems."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from odefit.problem import problem_to_mapping
from odefit.simulation import Failure

FOLDER = Path(__file__).parents[2] / "tests/golden/problems"


def points() -> dict[str, dict[str, float]]:
    """Return the values of the unknowns at which each problem is evaluated."""
    return tomllib.loads((FOLDER.parent / "points.toml").read_text(encoding="utf-8"))


def meaning(path: Path) -> dict[str, Any]:
    """Return the meaning of a problem file: the plain problem, its sizes, numbers at a point."""
    problem = odefit.load(path)
    vector = problem.vector(points()[path.stem])
    found = odefit.ForwardMap(problem).evaluate(vector)
    if isinstance(found, Failure):
        raise SystemExit(f"{path.name}: {found}")
    finite = [u.parameter for u in problem.unknowns]
    return {
        "unknowns": {
            u.key: {"kind": u.kind, "lower": _plain(p.lower), "upper": _plain(p.upper)}
            for u, p in zip(problem.unknowns, finite, strict=True)
        },
        "measurements": problem.size,
        "experiments": [c.name for c in problem.conditions],
        "objective": float(found.objective),
        "log_likelihood": None if found.log_likelihood is None else float(found.log_likelihood),
        "log_prior": float(np.sum(problem.log_prior(vector))),
        "problem": problem_to_mapping(problem),
    }


def listing() -> dict[str, Any]:
    """Return the meaning of every problem file, by its name."""
    return {path.stem: meaning(path) for path in sorted(FOLDER.glob("*.toml"))}


def _plain(bound: float) -> float | str:
    return float(bound) if np.isfinite(bound) else str(bound)
