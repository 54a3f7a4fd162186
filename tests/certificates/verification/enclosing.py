"""Residuals of written problems, enclosed over boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.certificates.verification.balls import arb
from odefit.certificates.verification.formulas import Formulas
from odefit.certificates.verification.likelihoods import SPECIAL_FUNCTIONS, Part, formula_part
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
        parts = Condition(given, symbols, statement["states"]).parts(box)
        found += [part.residual for part in parts if part.residual is not None]
    return found, box


def enclosed_parts(
    statement: Mapping[str, Any], lower: np.ndarray, upper: np.ndarray
) -> tuple[list[Part], Box]:
    """Return all parts of the objective over a box, and the box."""
    symbols = [u["symbol"] for u in statement["unknowns"]]
    box = Box(symbols, lower.tolist(), upper.tolist())
    known = box.unknown_models()
    terms = Formulas(statement.get("terms", []), symbols, SPECIAL_FUNCTIONS)
    parts = [formula_part(terms, box.models, known)]
    for prior in statement["priors"]:
        off = known[prior["unknown"]] + box.models.constant(-arb(prior["mean"]))
        parts.append(Part.square(off * box.models.constant(1 / arb(prior["sd"]))))
    for given in statement["conditions"]:
        parts += list(Condition(given, symbols, statement["states"]).parts(box))
    return parts, box
