"""Residuals of written problems, enclosed over boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.certificates.verification.polynomials import Model
from odefit.certificates.verification.trajectories import Box, Condition


def enclosed_residuals(
    statement: Mapping[str, Any], lower: np.ndarray, upper: np.ndarray
) -> tuple[list[Model], Box]:
    """Return the residuals of all conditions over a box, and the box."""
    symbols = [u["symbol"] for u in statement["unknowns"]]
    box = Box(symbols, lower.tolist(), upper.tolist())
    found = []
    for given in statement["conditions"]:
        found += list(Condition(given, symbols, statement["states"]).residuals(box))
    return found, box
