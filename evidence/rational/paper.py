"""The errors that Bassik et al. published in appendix B, read from errors.csv.

Root mean square relative errors in per cent, by data set, of four programs, three of which need
a range to search in. Their Table 1 has the medians and means of these figures.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import mean, median

with Path(__file__).with_name("errors.csv").open(encoding="utf-8", newline="") as _file:
    _HEAD, *_ROWS = csv.reader(_file)
COLUMNS = tuple(_HEAD[2:])  # software that needs a search range has one for each of its ranges
SEARCHES = COLUMNS[:-1]

# The errors by problem, a row for each data set, in the order of :data:`COLUMNS`
ERRORS: dict[str, tuple[tuple[float, ...], ...]] = {
    problem: tuple(tuple(map(float, row[2:])) for row in _ROWS if row[0] == problem)
    for problem in dict.fromkeys(row[0] for row in _ROWS)
}


def medians(problem: str) -> dict[str, float]:
    """Return a row of the upper half of Table 1."""
    return dict(zip(COLUMNS, map(median, zip(*ERRORS[problem], strict=True)), strict=True))


def means(problem: str) -> dict[str, float]:
    """Return a row of the lower half of Table 1."""
    return dict(zip(COLUMNS, map(mean, zip(*ERRORS[problem], strict=True)), strict=True))
