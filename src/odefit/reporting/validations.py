"""Validations and cross-validations as tables and in sentences."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from odefit.assessment.predictions.cross_validation import CrossValidationData, Fold
from odefit.assessment.predictions.obstacles import MOST_STEPS, NoOneStep, Obstacle
from odefit.assessment.predictions.validation_data import (
    SIGNIFICANT,
    Undecided,
    ValidatedSeries,
    ValidationData,
    Verdict,
)
from odefit.common.errors import counted
from odefit.methods.estimate import Status
from odefit.reporting.numbers import significant
from odefit.reporting.tables import Column, columns_that_fit

if TYPE_CHECKING:
    import pandas as pd

GAP = 2
"""Number of spaces between two columns of a table."""

DIGITS = 3
"""Significant digits of numbers in texts."""

TITLES = {
    "experiment": "experiment",
    "observable": "observable",
    "measurements": "n",
    "fit_percent": "fit %",
    "one_step_percent": "1-step %",
    "r_squared": "R²",
    "reduced_chi_square": "chi²/n",
    "coverage": "inside",
    "bias": "bias",
    "autocorrelation": "autocorr.",
    "runs_p": "runs p",
}
"""Titles of the columns of a validation's table; the last ones are left out first."""

FIXED_COLUMNS = 4
"""Number of columns that are never left out."""

CORRELATED = 2.0
"""Smallest autocorrelation, in standard deviations of independent residuals, that is noted."""

FORMAT = 1
"""The format of the JSON file of a validation."""


def validation_table(validation: ValidationData) -> pd.DataFrame:
    """Return one row for each observable of each run."""
    import pandas as pd

    return pd.DataFrame([_row(one) for one in validation.series])


def _row(one: ValidatedSeries) -> dict[str, Any]:
    return {
        "experiment": one.experiment,
        "observable": one.observable,
        "measurements": len(one.times),
        "fit_percent": one.fit_percent,
        "one_step_percent": one.ahead_percent,
        "r_squared": one.r_squared,
        "reduced_chi_square": one.reduced_chi_square,
        "coverage": one.coverage,
        "bias": one.bias,
        "autocorrelation": one.autocorrelation,
        "runs_p": one.runs,
    }


def measurement_table(validation: ValidationData) -> pd.DataFrame:
    """Return one row for each new measurement, with its prediction band and its residual."""
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
                "one_step": one.ahead if len(one.ahead) else np.nan,
            }
        )
        for one in validation.series
    ]
    return pd.concat(parts, ignore_index=True)


UNDECIDED = {
    Undecided.NOT_NORMAL: "the test needs normal noise without limits of quantification",
    Undecided.CORRELATED: "the test needs noise that is not correlated in time",
    Undecided.UNDETERMINED: "the uncertainty of its predictions is not known",
    Undecided.NO_FREEDOM: "the fit leaves no degrees of freedom to estimate the noise",
}
"""The reasons for the absence of a verdict, in words."""


def verdict_sentence(validation: ValidationData) -> str:
    """Return a sentence on whether a model predicts as well as it fits."""
    ratio = (
        f"the mean square of new residuals is {significant(validation.reduced_chi_square, DIGITS)} "
        f"variances of the noise, that of the fit {significant(validation.fitted, DIGITS)}"
    )
    if validation.verdict is Verdict.UNKNOWN:
        reason = UNDECIDED.get(validation.undecided or Undecided.UNDETERMINED)
        return (
            f"Whether the model predicts as well as it fits is not decided: {ratio}, but {reason}."
        )
    p = validation.probability
    chance = f"p = {significant(p, DIGITS)}" if p >= 1e-4 else "p < 0.0001"
    if validation.verdict is Verdict.AS_WELL:
        return (
            f"The model predicts as well as it fits: {ratio}, which noise and uncertain estimates "
            f"explain ({chance})."
        )
    return (
        f"The model does not predict as well as it fits: {ratio}, more than noise and uncertain "
        f"estimates explain ({chance}, limit {significant(SIGNIFICANT)})."
    )


def one_step_sentence(validation: ValidationData) -> str:
    """Return a sentence on predictions one step ahead beside the free run, or on their absence.

    It is empty if they were not requested.
    """
    ahead = validation.one_step
    if ahead is None:
        return "" if validation.no_one_step is None else _no_one_step(validation.no_one_step)
    if ahead.disturbance == 0 or ahead.probability >= SIGNIFICANT:
        return (
            "One step ahead, from the measurements before, the model predicts no better than in "
            "free run: earlier measurements add no information."
        )
    p = ahead.probability
    chance = f"p = {significant(p, DIGITS)}" if p >= 1e-4 else "p < 0.0001"
    free = float(np.mean(np.concatenate([one.residuals for one in validation.series]) ** 2))
    return (
        "One step ahead, from the measurements before, the mean square of residuals is "
        f"{significant(ahead.mean_square, DIGITS)} variances of the noise, in free run "
        f"{significant(free, DIGITS)}: with the estimates as they are, the states drift away "
        f"from the equations by {significant(100 * ahead.disturbance, 2)} % of their size "
        f"in a run ({chance})."
    )


OBSTACLES = {
    Obstacle.ALGEBRAIC: "the model has algebraic equations",
    Obstacle.TRIGGERED: "{experiment} has events that a condition triggers",
    Obstacle.PERIODIC: "{experiment} is in a periodic state",
    Obstacle.STEADY: "{experiment} begins in a steady state",
    Obstacle.AT_INFINITY: "{experiment} is measured in its steady state",
    Obstacle.LONG: f"{{experiment}} has more than {MOST_STEPS} measured times",
    Obstacle.CHANGED: "an event of {experiment} changes {name} in a way that cannot be followed",
    Obstacle.CENSORED: "{name} of {experiment} has values beyond a limit of quantification",
    Obstacle.CORRELATED: "the noise of {name} is correlated in time",
    Obstacle.NOISE: "the noise of {name} is not normal",
    Obstacle.FAILED: "the states of {experiment} cannot be followed along the measurements",
}
"""Obstacles to predictions one step ahead, in words."""


def _no_one_step(absence: NoOneStep) -> str:
    reason = OBSTACLES[absence.obstacle].format(experiment=absence.experiment, name=absence.name)
    return f"There are no predictions one step ahead, as {reason}."


def solutions_note(validation: ValidationData) -> str:
    """Return which of the solutions that fit the new measurements speak for; empty for one."""
    chances = {1: (validation.verdict, validation.probability)}
    chances |= {o.number: (o.verdict, o.probability) for o in validation.others}

    def with_verdict(verdict: Verdict) -> list[str]:
        return [
            str(n) if verdict is Verdict.UNKNOWN else f"{n} (p = {significant(p, DIGITS)})"
            for n, (v, p) in chances.items()
            if v is verdict
        ]

    if len(chances) < 2:
        return ""
    well, worse, unknown = map(with_verdict, (Verdict.AS_WELL, Verdict.WORSE, Verdict.UNKNOWN))
    parts = [f"predict as well as they fit: {', '.join(well)}"] if well else []
    parts += [f"do not: {', '.join(worse)}"] if worse else []
    parts += [f"not decided: {', '.join(unknown)}"] if unknown else []
    advice = ""
    if well and worse:
        advice = ". The measurements tell solutions apart: fit them together with the others"
    return f"of {len(chances)} solutions that fit, {'; '.join(parts)}{advice}"


def validation_notes(validation: ValidationData) -> Iterator[str]:
    """Yield the verdicts on several solutions, fitted initial values, and patterns of residuals."""
    if several := solutions_note(validation):
        yield several
    if validation.freed:
        values = ", ".join(f"{k} = {significant(v, DIGITS)}" for k, v in validation.freed.items())
        yield f"fitted to the new measurements, all else being held: {values}"
    for one in validation.series:
        where = f"{one.observable} of {one.experiment}"
        limit = CORRELATED / math.sqrt(max(len(one.times), 1))
        if one.autocorrelation > limit or one.runs < SIGNIFICANT:
            yield (
                f"the residuals of {where} run in a pattern (autocorrelation "
                f"{significant(one.autocorrelation, DIGITS)}, p of their changes of sign "
                f"{significant(one.runs, DIGITS)}), as those of a wrong model do"
            )
        if abs(one.bias) > 2.0 * max(1.0, math.sqrt(one.reduced_chi_square)) / math.sqrt(
            len(one.times)
        ):
            side = "above" if one.bias > 0 else "below"
            yield f"the measurements of {where} are {side} their predictions on average"


def _table_text(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """Return rows as a table that fits the terminal; the last columns are left out first."""
    columns = []
    for place, (name, title) in enumerate(titles.items()):
        values = [row[name] for row in rows]
        words = [c if isinstance(c, str) else significant(float(c), DIGITS) for c in values]
        columns.append(
            Column(
                title,
                [Text(word) for word in words],
                side="left" if isinstance(values[0], str) else "right",
                gives_way=None if place < FIXED_COLUMNS else len(titles) - place,
            )
        )
    width = shutil.get_terminal_size().columns
    fitting_columns = columns_that_fit(columns, width, GAP) or columns[:FIXED_COLUMNS]
    lines = []
    for cells in (
        [c.title for c in fitting_columns],
        *zip(*([t.plain for t in c.cells] for c in fitting_columns), strict=True),
    ):
        padded = [
            cell.ljust(c.natural) if c.side == "left" else cell.rjust(c.natural)
            for c, cell in zip(fitting_columns, cells, strict=True)
        ]
        lines.append((" " * GAP).join(padded).rstrip())
    left_out = [c.title for c in columns if c not in fitting_columns]
    if left_out:
        lines += textwrap.wrap(f"(no room for {', '.join(left_out)})", max(width, 20))
    return "\n".join(lines)


def validation_text(validation: ValidationData) -> str:
    """Return a validation as text."""
    titles = dict(TITLES)
    if validation.one_step is None:
        del titles["one_step_percent"]
    table = _table_text([_row(one) for one in validation.series], titles)
    coverage = ""
    if math.isfinite(validation.coverage):
        coverage = (
            f"{100 * validation.coverage:.0f} % of {counted(validation.count, 'measurement')} "
            f"are inside the prediction band of {100 * validation.level:g} %. "
        )
    notes = "".join(f"\nnote: {note}" for note in validation_notes(validation))
    ahead = one_step_sentence(validation)
    words = f"{coverage}{verdict_sentence(validation)}{f' {ahead}' if ahead else ''}"
    return f"{table}\n\n{words}{notes}"


def validation_mapping(validation: ValidationData) -> dict[str, Any]:
    """Return a validation for a JSON file; None for unknown values."""
    rows = [
        {key: _plain(value) for key, value in _row(one).items()}
        | {
            name: [_plain(v) for v in getattr(one, name).tolist()]
            for name in ("times", "measured", "predicted", "low", "high", "residuals")
        }
        | {"one_step": [_plain(v) for v in one.ahead.tolist()]}
        for one in validation.series
    ]
    ahead = validation.one_step
    return {
        "format": FORMAT,
        "verdict": validation.verdict.value,
        "sentence": verdict_sentence(validation),
        "probability": _plain(validation.probability),
        "reduced_chi_square": _plain(validation.reduced_chi_square),
        "fitted": _plain(validation.fitted),
        "coverage": _plain(validation.coverage),
        "level": validation.level,
        "freed": dict(validation.freed),
        "one_step": None
        if ahead is None
        else {
            "sentence": one_step_sentence(validation),
            "mean_square": _plain(ahead.mean_square),
            "disturbance": ahead.disturbance,
            "probability": _plain(ahead.probability),
        },
        "no_one_step": None if validation.no_one_step is None else one_step_sentence(validation),
        "other_solutions": [
            {
                "solution": other.number,
                "verdict": other.verdict.value,
                "probability": _plain(other.probability),
                "reduced_chi_square": _plain(other.reduced_chi_square),
            }
            for other in validation.others
        ],
        "series": rows,
        "notes": list(validation_notes(validation)),
    }


def cross_validation_mapping(validation: CrossValidationData) -> dict[str, Any]:
    """Return a cross-validation for a JSON file; None for unknown values."""
    return {
        "format": FORMAT,
        "by": validation.by,
        "status": validation.status.value,
        "sentence": cross_validation_sentence(validation),
        "mean_square": _plain(validation.mean_square),
        "fitted": _plain(validation.fitted),
        "fit_percent": _plain(validation.fit_percent),
        "folds": [
            {
                "fold": fold.name,
                "failure": fold.failure,
                "mean_square": _plain(_mean_square(fold)),
                "estimates": dict(
                    zip(validation.keys, map(_plain, fold.vector.tolist()), strict=True)
                ),
                "experiments": list(fold.experiments),
                "observables": list(fold.observables),
                **{
                    name: [_plain(v) for v in getattr(fold, name).tolist()]
                    for name in ("times", "measured", "predicted", "residuals")
                },
            }
            for fold in validation.folds
        ],
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fold_table(validation: CrossValidationData) -> pd.DataFrame:
    """Return one row for each part that was left out, with the estimates from the rest."""
    import pandas as pd

    columns = ["fold", "measurements", "mean_square", "failure", *validation.keys]
    return pd.DataFrame(
        [
            {
                "fold": fold.name,
                "measurements": len(fold.times),
                "mean_square": _mean_square(fold),
                "failure": fold.failure,
                **dict(zip(validation.keys, fold.vector.tolist(), strict=True)),
            }
            for fold in validation.folds
        ],
        columns=columns,
    )


def _mean_square(fold: Fold) -> float:
    return float(np.mean(fold.residuals**2)) if len(fold.times) else math.nan


def cross_validation_sentence(validation: CrossValidationData) -> str:
    """Return a sentence on how well the rest of the data predicts each part."""
    if not validation.folds:
        return f"Left out by {validation.by}: no part was predicted."
    parts = counted(len(validation.folds), "part")
    return (
        f"Left out by {validation.by}, {parts}: the mean square of residuals is "
        f"{significant(validation.mean_square, DIGITS)} variances of the noise, that of the fit "
        f"{significant(validation.fitted, DIGITS)}; the fit is {validation.fit_percent:.1f} %."
    )


def cross_validation_notes(validation: CrossValidationData) -> Iterator[str]:
    """Yield the parts that could not be predicted, and how the work ended."""
    for fold in validation.folds:
        if fold.failure:
            yield f"{fold.name}: {fold.failure}"
    if validation.status is not Status.CONVERGED:
        yield "the work ended before all parts were predicted"


def cross_validation_text(validation: CrossValidationData) -> str:
    """Return a cross-validation as text."""
    table_of_folds = fold_table(validation).drop(columns="failure")
    rows = [{str(k): v for k, v in row.items()} for row in table_of_folds.to_dict("records")]
    table = ""
    if rows:
        titles = {str(name): str(name) for name in rows[0]} | {"mean_square": "square"}
        table = f"{_table_text(rows, titles)}\n\n"
    notes = "".join(f"\nnote: {note}" for note in cross_validation_notes(validation))
    return f"{table}{cross_validation_sentence(validation)}{notes}"
