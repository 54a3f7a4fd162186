"""The page docs/benchmarks/front-door.md, made of the results of `automatic`.

    python -m evidence.front_door.page DIR [DIR ...] > section.md

Reads what is stored in the directories, whatever options their runs had, also while they go on.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.front_door.judge import runs
from evidence.front_door.plan import DEFAULT, PUBLISHED, SLOW_LIBRARY
from evidence.front_door.tables import methods, speed, tables
from evidence.running.campaign import Record
from evidence.running.output import markdown
from odefit.common.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

HEAD = """\
## One front door

What `odefit fit` does where nothing else is said, beside every single method, COPASI (scatter
search, then Levenberg-Marquardt) and SciPy (`solve_ivp` with LSODA, `least_squares` from ten
starts), with equal data, weights, bounds and time limits. Where standard deviations are estimated,
SciPy estimates them too; COPASI, which fits none, is told those that the published values imply,
and its answer is judged with the best ones:

```console
python -m evidence run automatic --jobs 1
python -m evidence run automatic --set parts=published folder=FOLDER
python -m evidence run automatic --set parts=dense draws=1 systems=pendulum methods=automatic
python -m evidence.front_door.page study-automatic
```

The dense series are {systems} systems from textbooks with 1,001 or 1,501 points
(`dense_systems.py`): true values drawn from [0.1, 0.9], bounds [1e-5, 10], no guess. A
fit with noise is right where its objective is within 3.84 of the best that any method or a search
from the truth has found; without noise, where the residuals are below 1e-6 of the data. A library
problem is right at the best objective known or with every promised solution, a published one
within 0.1 log-units of the published values or above. A status is right where "converged" stands
beside what is right, and beside nothing else; a time limit that was reached is one.

"""

# For each part the least share of right fits, the longest median, and the longest fit in seconds,
# where a problem has no limit of its own
TARGETS = {
    "library": (0.99, 1.0, 60.0),
    "dense": (0.98, 1.0, 20.0),
    "published": (1.0, math.nan, math.nan),
    "cascade": (1.0, math.nan, 60.0),
}


def stored(folder: Path) -> list[Record]:
    """Return all records in a directory."""
    file = folder / "results.sqlite"
    if not file.is_file():
        raise InputError(f"{folder}: holds no results")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        rows = database.execute("select key, task, outcome, result, reason, seconds from results")
        return [
            Record(k, json.loads(t), o, json.loads(r) if r else None, why, s)
            for k, t, o, r, why, s in rows
        ]


def section(records: Sequence[Record], place: str) -> str:
    """Return the section in Markdown; `place` says where and when the fits were made."""
    from evidence.front_door.dense_systems import SYSTEMS

    judged = runs(records)
    made = tables(records)
    parts = [HEAD.format(systems=len(SYSTEMS)), place, "\n\n"]
    parts += [markdown(targets(judged)), "\n"]
    for title, table in (
        ("### Dense series", made["dense"]),
        ("### Published problems", made["published"]),
        ("### Published problems by method", made["published by method"]),
        ("### Methods side by side", methods(judged)),
        ("### Seconds beside the faster right program", speed(judged)),
        ("### Broken off", made["interrupts"]),
        ("### What failed", made["failures"].drop(columns="message")),
    ):
        if len(table):
            parts += [title, "\n\n", markdown(table), "\n"]
    return "".join(parts)


def targets(judged: pd.DataFrame) -> pd.DataFrame:
    """Return what was to be shown of each part, beside what was seen of the default method."""
    import pandas as pd

    default = judged[judged["method"] == DEFAULT]
    own_limits = {*PUBLISHED, *SLOW_LIBRARY}
    rows = []
    for part, (share, median, longest) in TARGETS.items():
        group = default[default["part"] == part]
        if not len(group):
            continue
        usual = group[~group["problem"].isin(own_limits)]
        most = usual["seconds"].max()
        seen = {
            "part": part,
            "fits": len(group),
            "right": int(group["right"].sum()),
            "to be right": f"{share:.0%}",
            "right, %": round(100 * float(group["right"].mean()), 1),
            "status right": int(group["honest"].sum()),
            "median, s": group["seconds"].median(),
            "median to be below": median,
            "median, s of the processor": group["processor"].median(),
            "longest, s": most if len(usual) else group["seconds"].max(),
            "longest to be below": longest,
        }
        reached = [group["right"].mean() >= share]
        if not math.isnan(median):
            reached.append(group["seconds"].median() < median)
        if not math.isnan(longest):
            reached.append(most <= longest)
        rows.append(seen | {"reached": bool(all(reached))})
    return pd.DataFrame(rows)


def place() -> str:
    """Return a sentence on date, machine and versions."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("odefit", "numpy", "scipy", "heyoka", "numba", "python-copasi"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return (
        f"Made on {date.today():%d %B %Y}, {os.cpu_count()} cores (load {load:.1f} when this was "
        f"written), Python {platform.python_version()}, {', '.join(found)}."
    )


def main(arguments: Iterable[str]) -> int:
    """Print the section."""
    folders = [Path(a) for a in arguments]
    try:
        if not folders:
            raise InputError(
                "expected a directory of results: python -m evidence.front_door.page DIR"
            )
        records = {r.key: r for folder in folders for r in stored(folder)}
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(section(list(records.values()), place()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
