"""The table of estimates in the formats of papers: CSV, Markdown, LaTeX."""

from __future__ import annotations

from collections.abc import Callable

from odefit.reporting.estimates.row import Row
from odefit.reporting.parameters import (
    interval_level,
    parameter_rows,
    parameter_table,
    shortened,
)
from odefit.result_data import ResultData

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # LaTeX would read it as an argument of the previous line
    "]": "{]}",
}
"""Characters that are LaTeX commands, with their escaped forms."""

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def estimates_csv(result: ResultData) -> str:
    """Return ``result.parameters`` as CSV, all numbers at full precision."""
    return parameter_table(result).to_csv(index_label="key", lineterminator="\n")


def estimates_markdown(result: ResultData) -> str:
    """Return the table as Markdown, each number rounded according to its standard error."""
    head, rows = _cells(result, in_markdown, number_in_words)
    aligned = [":--", *["--:"] * (len(head) - 2), ":--"]
    lines = [head, aligned, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def estimates_latex(result: ResultData) -> str:
    """Return the table as LaTeX: a ``tabular`` in the style of the package booktabs."""
    head, rows = _cells(result, in_latex, number_in_latex)
    body = "\n".join(f"    {' & '.join(row)} \\\\" for row in rows)
    return (
        "% \\usepackage{booktabs}\n"
        f"\\begin{{tabular}}{{l{'r' * (len(head) - 2)}l}}\n"
        "    \\toprule\n"
        f"    {' & '.join(head)} \\\\\n"
        "    \\midrule\n"
        f"{body}\n"
        "    \\bottomrule\n"
        "\\end{tabular}\n"
    )


WRITERS: dict[str, Callable[[ResultData], str]] = {
    ".csv": estimates_csv,
    ".md": estimates_markdown,
    ".tex": estimates_latex,
}
"""Writers of the table, by the end of the file's name."""


def in_latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIAL.get(c, c) for c in _one_line(text))


def in_markdown(text: str) -> str:
    """Return a text for a cell of a table in Markdown."""
    escaped = _one_line(text)
    for special in ("\\", "|", "`", "*", "_", "<", "["):
        escaped = escaped.replace(special, f"\\{special}")
    return escaped


def number_in_latex(text: str) -> str:
    """Return a number such as ``5.9e-05`` for LaTeX."""
    if not text:
        return ""
    mantissa, _, exponent = text.partition("e")
    power = rf" \times 10^{{{int(exponent)}}}" if exponent else ""
    shown = mantissa.replace("inf", r"\infty")
    return f"${shown}{power}$"


def number_in_words(text: str) -> str:
    """Return a number such as ``5.9e-05`` with its power of ten raised."""
    mantissa, _, exponent = text.partition("e")
    shown = mantissa.replace("-", "−").replace("inf", "∞")
    return f"{shown} × 10{str(int(exponent)).translate(RAISED)}" if exponent else shown


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _cells(
    result: ResultData, words: Callable[[str], str], number: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table."""
    rows = shortened(parameter_rows(result))
    units = any(row.unit for row in rows)
    level = words(f"{interval_level(result)} interval")
    head = ["Quantity", "Estimate", "Standard error", words("RSE %"), level]
    head += ["Unit"] if units else []
    dates = any(row.dated for row in rows)
    head += ["Date"] if dates else []
    head.append("Remark")
    body = [_row(row, words, number, units=units, dates=dates) for row in rows]
    return head, body


def _row(
    row: Row,
    words: Callable[[str], str],
    number: Callable[[str], str],
    *,
    units: bool,
    dates: bool,
) -> list[str]:
    estimate, error, low, high = row.shown
    interval = f"{words('[')}{number(low)}, {number(high)}{words(']')}" if low and high else ""
    cells = [words(row.key), number(estimate), number(error), number(row.rse_shown), interval]
    if units:
        cells.append(words(row.unit))
    if dates:
        cells.append(words(row.dates_shown))
    return [*cells, words(row.flag)]
