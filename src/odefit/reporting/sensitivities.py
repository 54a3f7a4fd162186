"""Sensitivity indices as a table and as sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from odefit.assessment.sensitivity.indices import Indices, SensitivityKind
from odefit.assessment.sensitivity.outputs import Output
from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.common.packages import require

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: dict[SensitivityKind, tuple[str, str]] = {
    "local": ("elasticity", "derivative"),
    "morris": ("mu_star", "sigma"),
    "sobol": ("first", "total"),
}
"""The names of the two indices of each kind."""

HALF_WIDTHS: dict[SensitivityKind, tuple[str | None, str | None]] = {
    "local": (None, None),
    "morris": ("mu_star_error", None),
    "sobol": ("first_error", "total_error"),
}
"""Columns with the half widths of confidence intervals."""

MEANINGS: dict[SensitivityKind, str] = {
    "local": "relative change of the output over that of the unknown, at one point",
    "morris": "mean size of the change of the output over the range of the unknown (mu*)",
    "sobol": "share of the output's variance that is lost when the unknown is known (total index)",
}
"""The index by which unknowns are ranked, in words."""


def sensitivity_table(
    kind: SensitivityKind, keys: Sequence[str], outputs: Sequence[Output], indices: Indices
) -> pd.DataFrame:
    """Return a row for each output and unknown.

    Its columns are ``output``, ``experiment``, ``t`` (NaN of quantities and of the fit), ``key``,
    the two indices of the kind, and the half widths of their confidence intervals.
    """
    require("pandas")
    import pandas as pd

    n = len(keys)
    columns: dict[str, object] = {
        "output": np.repeat([o.name for o in outputs], n),
        "experiment": np.repeat([o.experiment for o in outputs], n),
        "t": np.repeat([o.time for o in outputs], n),
        "key": np.tile(list(keys), len(outputs)),
    }
    names = (*COLUMNS[kind], *HALF_WIDTHS[kind])
    tables = (indices.values, indices.others, indices.errors, indices.other_errors)
    columns |= {
        name: table.ravel() for name, table in zip(names, tables, strict=True) if name is not None
    }
    return pd.DataFrame(columns)


def importance(
    kind: SensitivityKind, outputs: Sequence[Output], indices: Indices
) -> dict[str, Array]:
    """Return for each output the index that ranks unknowns, shape (n,), averaged over its times.

    Local elasticities and effects are averaged as root mean squares, total indices are weighted by
    the output's variance at each time, so that times without variation do not count.
    """
    table = indices.others if kind == "sobol" else indices.values
    variances = np.nanvar(indices.outputs, axis=0) if kind == "sobol" else np.ones(len(outputs))
    ranked: dict[str, Array] = {}
    for name in dict.fromkeys(o.name for o in outputs):
        rows = [i for i, o in enumerate(outputs) if o.name == name and _known(table[i])]
        if not rows:
            ranked[name] = np.full(table.shape[1], np.nan)
        elif kind == "sobol":
            weights = variances[rows] / (variances[rows].sum() or 1.0)
            ranked[name] = weights @ table[rows]
        else:
            ranked[name] = np.sqrt(np.mean(table[rows] ** 2, axis=0))
    return ranked


def _known(row: Array) -> bool:
    return bool(np.isfinite(row).all())


def sensitivity_text(
    kind: SensitivityKind, keys: Sequence[str], outputs: Sequence[Output], indices: Indices
) -> str:
    """Return the unknowns of each output, the most important first, with their index."""
    lines = [f"{MEANINGS[kind]}:"]
    for name, values in importance(kind, outputs, indices).items():
        if not _known(values):
            lines.append(f"  {name}: not known; too many simulations failed")
            continue
        order = np.argsort(-np.abs(values), kind="stable")
        ranked = ", ".join(f"{keys[i]} {values[i]:.3g}" for i in order)
        lines.append(f"  {name}: {ranked}")
    return "\n".join([*lines, *sensitivity_notes(kind, indices)])


def sensitivity_notes(kind: SensitivityKind, indices: Indices) -> list[str]:
    """Return sentences on failures, an early end and imprecise indices."""
    notes = []
    if indices.failed:
        parts = "" if kind == "local" else "; the parts of the design with them were left out"
        notes.append(
            f"{counted(indices.failed, 'simulation')} of {indices.evaluations} failed{parts}."
        )
    if indices.ended is not None:
        notes.append(
            f"Ended by {indices.ended} after {counted(indices.evaluations, 'simulation')}: the "
            "indices are those of the points so far."
        )
    wide = np.nanmax(indices.other_errors, initial=-math.inf)
    if kind == "sobol" and wide > 0.1:
        notes.append(
            f"Intervals of total indices reach half widths of {wide:.2g}; four times the samples "
            "halve them."
        )
    return notes
