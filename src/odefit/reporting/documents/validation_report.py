"""Reports of validations and cross-validations: a page with a figure, or Markdown without."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

from odefit.assessment.predictions.cross_validation import CrossValidationData
from odefit.assessment.predictions.validation_data import ValidationData, Verdict
from odefit.common.partial_files import write_atomically
from odefit.reporting.documents.estimate_tables import in_markdown
from odefit.reporting.documents.file_kinds import check_report
from odefit.reporting.numbers import significant
from odefit.reporting.validations import (
    TITLES,
    cross_validation_notes,
    cross_validation_sentence,
    fold_table,
    measurement_table,
    one_step_sentence,
    validation_notes,
    validation_table,
    verdict_sentence,
)

MOST_ROWS = 2000
"""Largest number of measurements in a table."""

DIGITS = 4
"""Significant digits of numbers in tables."""

TONES = {Verdict.AS_WELL: "good", Verdict.WORSE: "bad", Verdict.UNKNOWN: "caution"}
"""The tone of each verdict."""

COLUMNS = {
    "experiment": "experiment",
    "observable": "observable",
    "t": "time",
    "measured": "measured",
    "predicted": "predicted",
    "pi_low": "band from",
    "pi_high": "to",
    "one_step": "one step ahead",
    "residual": "residual / sd",
}
"""Titles of the table of measurements."""

Found = ValidationData | CrossValidationData


def write_validation_report(validation: Found, path: str | Path, date: str | None = None) -> None:
    """Write a report in the format of its suffix.

    `date` is that of the report, by default today. Raises InputError for another suffix, a missing
    package, and a file that cannot be written.
    """
    suffix = check_report(path)
    values = _values(validation) | {
        "date": datetime.date.today().isoformat() if date is None else date
    }
    write_atomically(path, _markdown(values) if suffix == ".md" else _html(validation, values))


def _values(validation: Found) -> dict[str, Any]:
    """Return the words and tables of a report, as texts."""
    if isinstance(validation, ValidationData):
        shown = list(measurement_table(validation).to_dict("records"))
        sentence = verdict_sentence(validation)
        ahead = one_step_sentence(validation)
        absent = set() if validation.one_step else {"one_step", "one_step_percent"}
        return {
            "title": "Validation",
            "headline": sentence,
            "tone": TONES[validation.verdict],
            "sentences": [ahead] if ahead else [],
            "notes": list(validation_notes(validation)),
            "tables": [
                _table(
                    "Goodness of prediction",
                    validation_table(validation).to_dict("records"),
                    {name: title for name, title in TITLES.items() if name not in absent},
                ),
                _table(
                    _caption(len(shown)),
                    shown[:MOST_ROWS],
                    {name: title for name, title in COLUMNS.items() if name not in absent},
                ),
            ],
        }
    folds = fold_table(validation).drop(columns="failure")
    titles = {str(name): str(name) for name in folds.columns} | {"mean_square": "mean square"}
    incomplete = not validation.folds or any(fold.failure for fold in validation.folds)
    return {
        "title": "Cross-validation",
        "headline": cross_validation_sentence(validation),
        "tone": "caution" if incomplete else "good",
        "sentences": [],
        "notes": list(cross_validation_notes(validation)),
        "tables": [
            _table(
                "Parts left out, and the estimates of the rest", folds.to_dict("records"), titles
            )
        ],
    }


def _caption(count: int) -> str:
    first = f"the first {MOST_ROWS} of " if count > MOST_ROWS else ""
    return f"Measurements and their predictions ({first}{count})"


def _table(caption: str, records: Any, titles: dict[str, str]) -> dict[str, Any]:
    """Return a table of texts; its columns of numbers are `numeric`."""
    rows = [[_word(record[name]) for name in titles] for record in records]
    first = records[0] if records else dict.fromkeys(titles, "")
    numeric = [k for k, name in enumerate(titles) if not isinstance(first[name], str)]
    return {"caption": caption, "columns": list(titles.values()), "rows": rows, "numeric": numeric}


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    number = float(value)
    if math.isnan(number):
        return ""
    return significant(number, DIGITS)


def _markdown(values: dict[str, Any]) -> str:
    parts = [f"# {values['title']}", values["headline"], *values["sentences"]]
    if values["notes"]:
        parts.append("\n".join(f"- {in_markdown(note)}" for note in values["notes"]))
    for table in values["tables"]:
        rules = ["---:" if k in table["numeric"] else "---" for k in range(len(table["columns"]))]
        lines = [table["columns"], rules, *([in_markdown(c) for c in r] for r in table["rows"])]
        parts.append(f"## {table['caption']}")
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    parts.append(f"Written by odefit on {values['date']}.")
    return "\n\n".join(parts) + "\n"


def _html(validation: Found, values: dict[str, Any]) -> str:
    from odefit.reporting.documents.html import environment
    from odefit.reporting.documents.svg import drawing
    from odefit.reporting.figures.validation import plot_cross_validation, plot_validation

    figure = (
        plot_validation(validation)
        if isinstance(validation, ValidationData)
        else plot_cross_validation(validation)
    )
    dashed = isinstance(validation, ValidationData) and validation.one_step is not None
    ahead = ", dashed ones those one step ahead" if dashed else ""
    description = f"Lines are predictions with their bands{ahead}; squares are measurements."
    drawn = drawing(figure, "course", "Measurements, predictions and residuals", description)
    page: str = environment().get_template("validation.html").render(values, drawn=drawn)
    return page
