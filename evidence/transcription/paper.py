"""Tables 3 to 6 and B.7 to B.12 as Fernandez de Dios et al. published them, read from paper.toml.

Names of problems are those of odefit's library. The tables of appendix B hold the ten best rows by
FOUND only.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

Figures = tuple[float, ...]  # in the order of COLUMNS

COLUMNS = ("SOLVED", "FOUND", "NEAR", "ALTERN", "TIME", "SUCCESS")
GLOBAL_SOLVERS = ("Couenne", "BARON", "Octeract")  # all others are local
EXECUTIONS = 5280  # number of runs in all: 660 for each of eight solvers

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PROBLEMS, SOLVERS, SCHEMES, FORMULATIONS = (
    {name: tuple(row) for name, row in _TABLES[table].items()}
    for table in ("PROBLEMS", "SOLVERS", "SCHEMES", "FORMULATIONS")
)


def pairs(table: str) -> dict[tuple[str, ...], Figures]:
    """Return a table of appendix B by pairs of names."""
    return {tuple(names.split(", ")): tuple(row) for names, row in _TABLES[table].items()}


def scopes() -> dict[str, Figures]:
    """Return means of Table 4's rows over local and over global solvers, with the smallest TIME.

    The paper does not print them; all its solvers have the same number of runs.
    """
    found: dict[str, Figures] = {}
    for scope in ("local", "global"):
        rows = [f for s, f in SOLVERS.items() if (s in GLOBAL_SOLVERS) == (scope == "global")]
        columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
        found[scope] = tuple(
            min(column) if name == "TIME" else round(sum(column) / len(rows), 3)
            for name, column in columns.items()
        )
    return found
