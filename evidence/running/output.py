"""The tables and figures of a campaign, written to files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.running.campaign import Campaign, Record
from odefit.common.partial_files import write_atomically
from odefit.reporting.numbers import significant

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 5  # significant digits in Markdown; CSV has them all


def write_outputs(
    campaign: Campaign, records: Sequence[Record], folder: Path
) -> dict[str, pd.DataFrame]:
    """Write every table as CSV and Markdown, every figure as SVG and PNG; return the tables."""
    tables = dict(campaign.tables(records))
    troubles = trouble_table(records)
    if len(troubles):
        tables["troubles"] = troubles
    for name, table in tables.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False))
        write_atomically(folder / f"{name}.md", markdown(table))
    if not len(troubles):
        for ending in ("csv", "md"):  # of an earlier run
            (folder / f"troubles.{ending}").unlink(missing_ok=True)
    if campaign.figures is not None:
        import matplotlib as mpl

        # without these, each writing of a figure gives a different file
        with mpl.rc_context({"svg.hashsalt": campaign.name}):
            for name, figure in campaign.figures(records).items():
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
                figure.savefig(folder / f"{name}.png", dpi=150)
    return tables


def trouble_table(records: Sequence[Record]) -> pd.DataFrame:
    """Return a table of the tasks without a result, with the reasons."""
    import pandas as pd

    rows = [(r.key, r.outcome, r.seconds, r.reason) for r in records if r.result is None]
    return pd.DataFrame(rows, columns=["task", "outcome", "seconds", "reason"])


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown, with numbers aligned to the right."""
    columns = [str(c) for c in table.columns]
    numeric = [all(map(_is_number, table.iloc[:, k])) for k in range(len(columns))]
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('---:' if n else '---' for n in numeric)}|",
    ]
    lines += [f"| {' | '.join(map(shown, row))} |" for row in table.itertuples(index=False)]
    lines += [line for note in table.attrs.get("notes", ()) for line in ("", note)]
    return "\n".join(lines) + "\n"


def listed(
    head: Sequence[str], source: Sequence[Record] | Iterable[Sequence[str]], *notes: str
) -> pd.DataFrame:
    """Return a table of texts: given rows, or ``rows`` and ``notes`` of all results."""
    import pandas as pd

    rows: list[Sequence[str]] = []
    said = list(notes)
    for entry in source:
        if isinstance(entry, Record):
            rows += (entry.result or {}).get("rows", [])
            said += (entry.result or {}).get("notes", [])
        else:
            rows.append(entry)
    full = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    table = pd.DataFrame(full, columns=list(head), dtype=object)
    table.attrs["notes"] = said
    return table


def one_table(name: str, head: Sequence[str], records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return the table of a measurement with a single table."""
    return {name: listed(head, records)}


def _is_number(value: Any) -> bool:
    """Return whether a cell is a number, or a text, perhaps in italics, that begins with one."""
    if isinstance(value, str):
        first = value.strip("*").lstrip("+-").partition(" ")[0]
        return not value or first.replace(".", "", 1).isdigit()
    return isinstance(value, int | float) or hasattr(value, "dtype")


def shown(value: Any) -> str:
    """Return the text of a cell: few digits, yes and no, empty where there is no value."""
    if value is None:
        return ""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) or hasattr(value, "dtype"):
        number = float(value)
        if math.isnan(number):
            return ""
        return (
            str(int(number))
            if number.is_integer() and abs(number) < 1e6
            else significant(number, DIGITS)
        )
    return str(value).replace("|", "\\|").replace("\n", " ")
