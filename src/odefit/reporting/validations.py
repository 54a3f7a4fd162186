"""Validations and cross-validations as tables and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.assessment.predictions.cross_validation import CrossValidationData
from odefit.assessment.predictions.validation import (
    SIGNIFICANT,
    ValidatedSeries,
    ValidationData,
    Verdict,
)
from odefit.common.errors import counted
from odefit.reporting.numbers import significant

if TYPE_CHECKING:
    import pandas as pd

CORRELATED = 2.0
"""Autocorrelation in standard deviations of independent residuals, from which a note follows."""

FORMAT = 1
"""The format of the JSON file of a validation."""


def validation_table(found: ValidationData) -> pd.DataFrame:
    """Return a row for each observable of each run."""
    import pandas as pd

    return pd.DataFrame([_row(one) for one in found.series])


def _row(one: ValidatedSeries) -> dict[str, Any]:
    return {
        "experiment": one.experiment,
        "observable": one.observable,
        "measurements": len(one.times),
        "fit_percent": one.fit_percent,
        "r_squared": one.r_squared,
        "reduced_chi_square": one.reduced_chi_square,
        "coverage": one.coverage,
        "bias": one.bias,
        "autocorrelation": one.autocorrelation,
        "runs_p": one.runs,
    }


def measurement_table(found: ValidationData) -> pd.DataFrame:
    """Return a row for each new measurement, with its prediction band and its residual."""
    import pandas as pd

    parts = [
        pd.DataFrame(
            {
                "experiment": one.experiment,
                "observable": one.observable,
                "t": one.times,
                "measured": one.measured,
                "predicted": one.predicted,
                "pi_low": one.low,
                "pi_high": one.high,
                "residual": one.residuals,
            }
        )
        for one in found.series
    ]
    return pd.concat(parts, ignore_index=True)


def verdict_sentence(found: ValidationData) -> str:
    """Return whether a model predicts as well as it fits, in a sentence."""
    ratio = (
        f"the mean square of new residuals is {significant(found.reduced_chi_square)} variances of "
        f"the noise, that of the fit {significant(found.fitted)}"
    )
    if found.verdict is Verdict.UNKNOWN:
        return (
            f"Whether the model predicts as well as it fits is not decided: {ratio}, but how far "
            "its predictions are uncertain is not known."
        )
    p = found.probability
    chance = f"p = {significant(p)}" if p >= 1e-4 else "p < 0.0001"
    if found.verdict is Verdict.AS_WELL:
        return (
            f"The model predicts as well as it fits: {ratio}, which noise and uncertain estimates "
            f"explain ({chance})."
        )
    return (
        f"The model does not predict as well as it fits: {ratio}, more than noise and uncertain "
        f"estimates explain ({chance}, limit {significant(SIGNIFICANT)})."
    )


def validation_notes(found: ValidationData) -> Iterator[str]:
    """Yield what was freed, and patterns of residuals."""
    if found.freed:
        values = ", ".join(f"{k} = {significant(v)}" for k, v in found.freed.items())
        yield f"fitted to the new measurements, all else being held: {values}"
    for one in found.series:
        where = f"{one.observable} of {one.experiment}"
        limit = CORRELATED / math.sqrt(max(len(one.times), 1))
        if one.autocorrelation > limit or one.runs < SIGNIFICANT:
            yield (
                f"the residuals of {where} run in a pattern (autocorrelation "
                f"{significant(one.autocorrelation)}), as those of a wrong model do"
            )
        if abs(one.bias) > 2.0 * max(1.0, math.sqrt(one.reduced_chi_square)) / math.sqrt(
            len(one.times)
        ):
            side = "above" if one.bias > 0 else "below"
            yield f"the measurements of {where} are {side} their predictions on average"


def validation_text(found: ValidationData) -> str:
    """Return a validation as text."""
    table = validation_table(found).to_string(index=False, float_format=lambda v: f"{v:.3g}")
    coverage = ""
    if math.isfinite(found.coverage):
        coverage = (
            f"{100 * found.coverage:.0f} % of {counted(found.count, 'measurement')} are inside the "
            f"prediction band of {100 * found.level:g} %. "
        )
    notes = "".join(f"\nnote: {note}" for note in validation_notes(found))
    return f"{table}\n\n{coverage}{verdict_sentence(found)}{notes}"


def validation_mapping(found: ValidationData) -> dict[str, Any]:
    """Return a validation as JSON has it; None for what is not known."""
    rows = [
        {key: _plain(value) for key, value in _row(one).items()}
        | {
            name: [_plain(v) for v in getattr(one, name).tolist()]
            for name in ("times", "measured", "predicted", "low", "high", "residuals")
        }
        for one in found.series
    ]
    return {
        "format": FORMAT,
        "verdict": found.verdict.value,
        "sentence": verdict_sentence(found),
        "probability": _plain(found.probability),
        "reduced_chi_square": _plain(found.reduced_chi_square),
        "fitted": _plain(found.fitted),
        "coverage": _plain(found.coverage),
        "level": found.level,
        "freed": dict(found.freed),
        "series": rows,
        "notes": list(validation_notes(found)),
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fold_table(found: CrossValidationData) -> pd.DataFrame:
    """Return a row for each part that was left out, with the estimates of the rest."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "fold": fold.name,
                "measurements": len(fold.times),
                "mean_square": float(np.mean(fold.residuals**2)) if len(fold.times) else math.nan,
                "failure": fold.failure,
                **dict(zip(found.keys, fold.vector.tolist(), strict=True)),
            }
            for fold in found.folds
        ]
    )


def cross_validation_text(found: CrossValidationData) -> str:
    """Return a cross-validation as text."""
    table = fold_table(found).drop(columns="failure")
    failed = [f"\nnote: {f.name}: {f.failure}" for f in found.folds if f.failure]
    parts = counted(len(found.folds), "part")
    return (
        f"{table.to_string(index=False, float_format=lambda v: f'{v:.4g}')}\n\n"
        f"Left out by {found.by}, {parts}: the mean square of residuals is "
        f"{significant(found.mean_square)} variances of the noise, that of the fit "
        f"{significant(found.fitted)}; the fit is {found.fit_percent:.1f} %."
    ) + "".join(failed)
