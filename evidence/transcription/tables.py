"""The tables of the study of Fernandez de Dios et al., beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evidence.running.campaign import Record
from evidence.transcription import paper as paper
from evidence.transcription.measures import proportions
from evidence.transcription.page_tables import page_tables
from evidence.transcription.plan import OWN, Configuration

# The paper's solvers shown beside ours, by their names in small letters
BESIDE: dict[str, tuple[str, ...]] = {
    "ipopt": ("Ipopt",),
    "bonmin": ("BONMIN",),
    "scip": ("BARON", "Couenne"),
    "couenne": ("Couenne",),
    "baron": ("BARON",),
    "octeract-engine": ("Octeract",),
    "knitro": ("Knitro",),
    "knitroampl": ("Knitro",),
    "conopt": ("CONOPT",),
    "snopt": ("SNOPT",),
    **dict.fromkeys(OWN, ("BARON", "Couenne")),
}

# Global solvers; all others are local
GLOBAL_SOLVERS = (
    *("scip", "maingo", "couenne", "baron", "octeract-engine"),
    *("gurobi", "gurobi_ampl"),
    *OWN,
)

OURS = ("runs", *paper.COLUMNS, "CERTIFIED")
Group = tuple[str, ...]


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return Tables 3 to 6 and B.7 to B.12 in full, a summary of times, and every run.

    A run without a result (stopped, crashed) counts in the denominators, and nowhere else.
    """
    runs = frame(records)
    pairs: dict[tuple[str, ...], Mapping[Any, paper.Figures]] = {
        ("problem",): paper.PROBLEMS,
        ("solver",): paper.SOLVERS,
        ("scheme",): paper.SCHEMES,
        ("formulation",): paper.FORMULATIONS,
        ("scope",): paper.scopes(),
        ("scope", "mesh"): {},
        ("problem", "solver"): paper.pairs("PROBLEM_SOLVER"),
        ("problem", "scheme"): paper.pairs("PROBLEM_SCHEME"),
        ("problem", "formulation"): paper.pairs("PROBLEM_FORMULATION"),
        ("solver", "scheme"): paper.pairs("SOLVER_SCHEME"),
        ("solver", "formulation"): paper.pairs("SOLVER_FORMULATION"),
        ("scheme", "formulation"): paper.pairs("SCHEME_FORMULATION"),
    }
    found = {"times": _times(runs)}
    found |= {"-".join(by): compared(runs, by, published) for by, published in pairs.items()}
    for scope in ("local", "global"):
        part = runs[runs["scope"] == scope]
        if len(part):
            found[scope] = compared(part, ("problem",), {})
    return {**found, **page_tables(runs), "runs": runs}


def scope_of(solver: str) -> str:
    """Return whether a solver is local or global, also without a result."""
    return "global" if solver.lower() in GLOBAL_SOLVERS else "local"


def frame(records: Sequence[Record]) -> pd.DataFrame:
    rows = []
    for record in records:
        c = Configuration.of(record.key)
        r: Mapping[str, Any] = record.result or {}
        rows.append(
            {
                "problem": c.problem,
                "scheme": c.scheme,
                "formulation": c.formulation,
                "value": c.value,
                "mesh": c.mesh,
                "M": c.steps,
                "solver": c.solver,
                "scope": scope_of(c.solver),
                "solved": bool(r.get("solved")),
                "success": bool(r.get("success")),
                "place": str(r.get("place", "")),
                "certified": bool(r.get("certified")),
                "ended": r.get("outcome", record.outcome),
                "message": r.get("message", record.reason),
            }
            | {
                name: r.get(name)
                for name in (
                    *("max_re", "nrmse", "objective", "cost", "lower_bound", "gap", "violation"),
                    *("seconds", "build_seconds", "iterations"),
                )
            }
            | {"wall": record.seconds}
        )
    table = pd.DataFrame(rows)
    start = list(table.columns).index("max_re")
    for column in table.columns[start:]:
        table[column] = pd.to_numeric(table[column])
    return table


def compared(
    runs: pd.DataFrame, by: Sequence[str], published: Mapping[Any, paper.Figures]
) -> pd.DataFrame:
    """Return a row for each group beside the paper's figures; the best by FOUND come first.

    Where `by` has solvers, a row has one of ours and one of the paper's (see `BESIDE`), named in
    the column ``paper solver``. The paper's other rows follow without ours.
    """
    known: dict[Group, paper.Figures] = {
        (k,) if isinstance(k, str) else k: v for k, v in published.items()
    }
    rows: list[dict[str, Any]] = []
    used: set[Group] = set()
    for key, part in runs.groupby(list(by), sort=False):
        group = tuple(map(str, key))
        theirs: list[Group | None] = [t for t in _beside(by, group) if t in known]
        used |= {t for t in theirs if t is not None}
        rows += [_row(by, group, part, t, known) for t in theirs or [None]]
    rows += [_row(by, None, None, t, known) for t in known if t not in used]
    columns = [*by, *OURS]
    if known:
        solver = ["paper solver"] if "solver" in by else []
        columns += [*solver, *(f"paper {name}" for name in paper.COLUMNS)]
    table = pd.DataFrame(rows, columns=columns)
    for name in [c for c in columns if c.split()[-1] in OURS and c != "runs"]:
        table[name] = pd.to_numeric(table[name])
    order = ["FOUND", "paper FOUND"] if known else ["FOUND"]
    return table.sort_values(order, ascending=False, kind="stable").reset_index(drop=True)


def _row(
    by: Sequence[str],
    group: Group | None,
    part: pd.DataFrame | None,
    theirs: Group | None,
    known: Mapping[Group, paper.Figures],
) -> dict[str, Any]:
    row: dict[str, Any] = {"runs": 0}
    if group is not None and part is not None:
        row = dict(zip(by, group, strict=True)) | proportions(part)
    if theirs is not None:
        row |= {
            f"paper {name}": figure
            for name, figure in zip(paper.COLUMNS, known[theirs], strict=True)
        }
        names = dict(zip(by, theirs, strict=True))
        row |= {name: value for name, value in names.items() if name not in (*row, "solver")}
        row |= {"paper solver": names["solver"]} if "solver" in names else {}
    return row


def _beside(by: Sequence[str], group: Group) -> list[Group]:
    """Return the paper's groups that correspond to one of ours."""
    if "solver" not in by:
        return [group]
    at = list(by).index("solver")
    return [(*group[:at], name, *group[at + 1 :]) for name in BESIDE.get(group[at].lower(), ())]


def _times(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the times of runs, and the number stopped at their limit."""
    groups = runs.groupby(["solver", "mesh"], sort=False)
    return (
        groups.agg(
            runs=("wall", "size"),
            without_result=("seconds", lambda s: int(s.isna().sum())),
            median_seconds=("wall", "median"),
            mean_seconds=("wall", "mean"),
            most_seconds=("wall", "max"),
            median_building=("build_seconds", "median"),
        )
        .reset_index()
        .rename(columns=lambda name: str(name).replace("_", " "))
    )
