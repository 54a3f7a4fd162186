"""The tables of docs/benchmarks/transcription.md, of those solvers that have runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from evidence.running.output import listed
from evidence.transcription import paper as paper
from evidence.transcription.measures import DIGITS, proportions
from evidence.transcription.plan import BRANCH, CONTINUOUS, OUTER, SCHEMES, STEPS

PLAIN = ("SOLVED", "FOUND", "NEAR", "ALTERN", "SUCCESS")  # columns of all solvers
PROVED = ("SOLVED", "FOUND", "CERTIFIED")  # of solvers that prove bounds
FORMULATIONS = ("Baseline", "ExtraTol", "SoftCons")
PAIRS = paper.pairs("SOLVER_FORMULATION")


def page_tables(runs: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
    """Return the tables by name; a solver without runs has none."""
    ipopt, scip = (runs[runs["solver"] == name] for name in ("Ipopt", "SCIP"))
    own = runs[runs["solver"].isin((BRANCH, OUTER))]
    found = {}
    if len(ipopt):
        found["ipopt"] = listed(("IPOPT", "runs", *PLAIN), _of_ipopt(ipopt))
        counts = ipopt.groupby("problem").size()
        head = f"IPOPT, {counts.min()} to {counts.max()} runs: FOUND"
        theirs = ("paper, eight solvers: FOUND", "NEAR", "ALTERN")
        rows = _problems_of_ipopt(ipopt)
        found["ipopt-problems"] = listed(("problem", head, "NEAR", "ALTERN", *theirs), rows)
    if len(scip) or len(own):
        rows = [*_of_scip(scip), *_of_own_methods(own)]
        found["proving"] = listed(("", "runs", *PROVED), rows)
        found["proving-problems"] = listed(
            (
                *("problem", "SCIP: FOUND", "CERTIFIED", "branch and bound: FOUND", "CERTIFIED"),
                *("continuous time, s", "outer approximation, s"),
            ),
            _problems_of_proving(scip, own),
        )
    return found


def _cells(part: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the number of runs, and proportions by name."""
    found = proportions(part)
    return [str(len(part)), *(_text(found[name]) for name in names)]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.{DIGITS}f}"


def _published(
    name: str, figures: paper.Figures, runs: str, columns: Sequence[str] = PLAIN
) -> list[str]:
    """Return a row of the paper, in italics; it has no certificates."""
    by_name = dict(zip(paper.COLUMNS, figures, strict=True))
    cells = [f"*{_text(by_name[c])}*" if c in by_name else "" for c in columns]
    return [f"*{name}*", runs and f"*{runs}*", *cells]


def _of_ipopt(runs: pd.DataFrame) -> Iterator[list[str]]:
    yield ["all", *_cells(runs, PLAIN)]
    yield _published("the paper's Ipopt", paper.SOLVERS["Ipopt"], "660")
    for mesh in ("coarse", "fine"):
        part = runs[runs["mesh"] == mesh]
        if len(part):
            yield [f"{mesh} meshes", *_cells(part, PLAIN)]
    for column, names in (("scheme", SCHEMES), ("formulation", FORMULATIONS)):
        for name in names:
            part = runs[runs[column] == name]
            if len(part):
                yield [name, *_cells(part, PLAIN)]


def _problems_of_ipopt(runs: pd.DataFrame) -> list[list[str]]:
    columns = ("FOUND", "NEAR", "ALTERN")
    places = [paper.COLUMNS.index(column) for column in columns]
    rows = [
        [
            str(problem),
            *_cells(part, columns)[1:],
            *(_text(paper.PROBLEMS[problem][k]) for k in places),
        ]
        for problem, part in runs.groupby("problem", sort=False)
    ]
    return sorted(rows, key=lambda row: -float(row[1]))


def _of_scip(runs: pd.DataFrame) -> Iterator[list[str]]:
    """Return rows by formulation, and the paper's global solvers."""
    if not len(runs):
        return
    yield ["SCIP", *_cells(runs, PROVED)]
    for name in FORMULATIONS:
        part = runs[runs["formulation"] == name]
        if len(part):
            yield [f"SCIP, {name}", *_cells(part, PROVED)]
    for solver in ("BARON", "Couenne"):
        yield _published(f"the paper's {solver}", paper.SOLVERS[solver], "660", PROVED)
        yield _published(f"{solver}, Baseline", PAIRS[solver, "Baseline"], "", PROVED)


def _of_own_methods(runs: pd.DataFrame) -> Iterator[list[str]]:
    continuous = runs["scheme"] == CONTINUOUS
    branch = runs["solver"] == BRANCH
    for words, part in (
        ("branch and bound, continuous time", runs[branch & continuous]),
        ("branch and bound, Baseline", runs[branch & ~continuous]),
        ("outer approximation, Legendre collocation", runs[runs["solver"] == OUTER]),
    ):
        if len(part):
            yield [words, *_cells(part, PROVED)]


def _problems_of_proving(scip: pd.DataFrame, own: pd.DataFrame) -> Iterator[list[str]]:
    """Return a row for each problem; seconds are those of runs that were certified."""
    branch, continuous = own["solver"] == BRANCH, own["scheme"] == CONTINUOUS
    for problem in STEPS:
        row = [problem]
        for runs in (scip, own[branch & ~continuous]):
            part = runs[runs["problem"] == problem]
            row += _cells(part, ("FOUND", "CERTIFIED"))[1:] if len(part) else ["", ""]
        for runs in (own[branch & continuous], own[own["solver"] == OUTER]):
            proved = runs[(runs["problem"] == problem) & runs["certified"]]
            row += [f"{one:.1f}" for one in proved["seconds"]][:1] or ["-"]
        yield row
