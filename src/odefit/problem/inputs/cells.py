"""Cells of tables: numbers, missing values, and the remedy for anything else."""

from __future__ import annotations

import math
import re
from typing import Any

from odefit.problem.inputs.issues import LARGEST

INFINITE = frozenset({"inf", "infinity"})
"""Lower-case words for infinity: as a time, that of the steady state."""

NOT_MEASURED = frozenset(
    {"nan", "na", "n/a", "n.a.", "#n/a", "null", "none", "missing", ".", "-", "--", "?"}
)
"""Cells that count as empty, with a warning, in upper or lower case."""

MISSING = NOT_MEASURED | {""}
"""Lower-case cells that hold nothing."""

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\Z")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?\Z")
_OTHER_THOUSANDS = re.compile(
    r"[+-]?[0-9]{1,3}([ '\u2019\xa0\u202f][0-9]{3})+([.,][0-9]*)?\Z"
    r"|[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]*\Z"
)
_MONTH_NAME = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_DATE = re.compile(
    r"[0-9]{1,4}([-/.][0-9]{1,4})+([T ].*)?\Z|[0-9]{4}-?W[0-9]{2}"
    rf"|[0-9]{{1,4}}[- ./]?{_MONTH_NAME}|{_MONTH_NAME}[a-z]*[- .']*[0-9]",
    re.IGNORECASE,
)
_MONTH = re.compile(r"([0-9]{4})[-/.](0?[1-9]|1[0-2])\Z")
_QUARTER = re.compile(r"([0-9]{4})[-/. ]?Q([1-4])\Z", re.IGNORECASE)
_CLOCK = re.compile(r"[0-9]{1,3}:[0-9]{2}|[0-9.]+\s*(d|h|hr|min|m|s)\w*\s*[0-9]", re.IGNORECASE)
_FORTRAN = re.compile(r"[+-]?[0-9]*\.?[0-9]*[dD][+-]?[0-9]+\Z")
_NUMBER_AND_MORE = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*/?[A-Za-z%µ°]+")
_ABOVE = re.compile(r"[>≥]|above\b|over|(a|>)?uloq\b|alq\b|o\.?r\.?\Z", re.IGNORECASE)
_LIMIT = re.compile(
    r"[<>≤≥]|(below|above|under|over)\b|(b|a)?[lu]{0,2}loq\b|[bau]lq\b|<?lod\b|bd[lq]?\b|n\.?d\.?\Z"
    r"|not\s*det|overflow\b|o\.?r\.?\Z",
    re.IGNORECASE,
)


def plain_number(cell: Any) -> float | None:
    """Return a finite number, or the number in a text in plain notation; otherwise None."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return None
    try:
        number = float(cell.replace("\u2212", "-") if isinstance(cell, str) else cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def is_missing(cell: Any) -> bool:
    """Return whether a cell of a table holds nothing."""
    if isinstance(cell, str):
        return cell.strip().casefold() in MISSING
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def subject_key(cell: Any) -> str:
    """Return the text by which a cell names a subject: 3 for 3.0, and texts without spaces."""
    if isinstance(cell, str):
        bare = cell.strip()
        number = plain_number(bare)
        return bare if number is None or not number.is_integer() else str(int(number))
    return str(int(cell)) if float(cell).is_integer() else str(cell)


def beyond_limit(cell: str) -> tuple[float | None, int] | None:
    """Return the limit and the code of a value such as ``<0.5`` or ``> 100``; None for other texts.

    The code is that of a column ``_cens``: 1 below the limit, -1 above it. The limit is None where
    the text has only words, such as ``BLQ``.
    """
    match = _LIMIT.match(cell)
    if match is None:
        return None
    code = -1 if _ABOVE.match(cell) else 1
    number = _limit_in(cell)
    if number is not None:
        return float(number), code
    return None if re.search("[0-9]", cell) else (None, code)


def _limit_in(cell: str) -> str | None:
    """Return the number behind the signs or the words of a limit."""
    match = re.match(r"[<>≤≥]|(below|above|under|over)\b", cell, re.IGNORECASE)
    number = "" if match is None else cell[match.end() :].lstrip("<>≤≥= ").replace(",", ".")
    return number if _FLOAT.match(number) else None


CORRECT = "correct it, or leave the field empty if it was not measured"
"""The remedy for a text that has no known meaning."""


def remedy(
    cell: str, column: str, *, time: bool = False, mark: str = "", otherwise: str = CORRECT
) -> str:
    """Return what to write instead of a text in a column of numbers or of times.

    `mark` is the column that marks censored values, if it is not the one with the suffix ``_cens``;
    `otherwise` is the remedy for a text without known meaning.
    """
    if column.endswith("_cens"):
        return "write 1 for a value below its limit, -1 for one above it, else 0"
    if _DECIMAL_COMMA.match(cell):
        point = cell.replace(",", ".")
        if _THOUSANDS.match(cell):
            return f"write {point} if the comma is a decimal one, else {cell.replace(',', '')}"
        return f"write a decimal point: {point}"
    if _FLOAT.match(cell):
        return f"it is beyond {LARGEST:g}: correct it, or choose another unit"
    if _THOUSANDS.match(cell):
        return f"write it without separators of thousands: {cell.replace(',', '')}"
    if _OTHER_THOUSANDS.match(cell):
        bare = re.sub(r"[^0-9.,+-]", "", cell)
        bare = bare.replace(".", "") if "," in bare else bare
        return f"write it without separators of thousands: {bare.replace(',', '.')}"
    if time and (period := _MONTH.match(cell) or _QUARTER.match(cell)):
        year, number = int(period[1]), int(period[2])
        quarter = period.re is _QUARTER
        month = 3 * number - 2 if quarter else number
        whole = "quarter" if quarter else "month"
        return f"it names a whole {whole}: write a day of it, such as {year}-{month:02}-01"
    if time and _DATE.match(cell):
        return (
            "write dates as year-month-day, such as 2024-01-31 or 2024-01-31 14:30, or times as "
            "numbers"
        )
    if _FORTRAN.match(cell):
        return f"write the exponent with e: {re.sub('[dD]', 'e', cell)}"
    if time and _CLOCK.match(cell):
        return "give times as numbers, such as the hours since the first one"
    if _LIMIT.match(cell):
        above = _ABOVE.match(cell) is not None
        limit, code = ("upper_limit", -1) if above else ("lower_limit", 1)
        value = _limit_in(cell) or "the limit"
        mark = mark or f"{column}_cens"
        return (
            f"if it is beyond a limit of quantification, write {value} here and either {limit} = "
            f"{value} for the observable in [noise] or {code} in a column {mark}; if it was "
            "not measured, leave the field empty"
        )
    if "±" in cell or "+/-" in cell or "+-" in cell:
        return "write the standard deviation in a column of its own, with _sd after the name"
    if _NUMBER_AND_MORE.match(cell):
        return "give the number without a unit"
    if cell.lstrip("+-").casefold() in INFINITE:
        return "leave the field empty if it was not measured"
    return otherwise


def have_decimal_commas(texts: list[str]) -> bool:
    """Return whether the commas in texts must be decimal points.

    They may separate thousands if points occur too, or if three digits follow each comma.
    """
    commas = [text for text in texts if _DECIMAL_COMMA.match(text)]
    if all(_THOUSANDS.match(text) for text in commas):
        return False
    return not any("." in text and _FLOAT.match(text) for text in texts)


def with_decimal_point(cell: str) -> str:
    """Return a cell with a point for its decimal comma."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.match(cell.strip()) else cell
