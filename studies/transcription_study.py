"""The study of Fernandez de Dios et al.: which discretised problems do which solvers solve?

Twelve problems, five schemes, three formulations in five settings, two meshes (Table 2), every
solver that is installed. The parts: `study_plan` (the runs), `study_metrics` (what is measured of
one), `study_tables` and `study_figures`, `study_paper` (what the paper published).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.campaign import Campaign, Task
from studies.study_figures import study_figures
from studies.study_plan import Configuration, configurations, solve, solvers
from studies.study_tables import study_tables

SECONDS = 600.0
"""The paper's time limit of a solver."""

QUICK_SECONDS = 60.0

MORE = 180.0
"""Seconds that a task has beyond its solver's limit, to build the model and to come to an end."""


def tasks() -> Sequence[Task]:
    """All runs of the paper, local solvers first, each on coarse meshes and then on fine ones."""
    return [c.task for name in solvers() for c in configurations(name, ("coarse", "fine"))]


def quick_tasks() -> Sequence[Task]:
    """Local solvers on all meshes, global ones on coarse meshes alone."""
    found: list[Task] = []
    for name, solver in solvers().items():
        meshes = ("coarse",) if solver.scope == "global" else ("coarse", "fine")
        found += [c.task for c in configurations(name, meshes)]
    return found


def run(task: Task) -> Mapping[str, Any]:
    """One run with the paper's time limit."""
    return solve(Configuration.of(task["key"]), SECONDS)


def quick_run(task: Task) -> Mapping[str, Any]:
    """One run with a time limit of a minute."""
    return solve(Configuration.of(task["key"]), QUICK_SECONDS)


TRANSCRIPTION_STUDY = Campaign(
    "transcription-study",
    "direct transcription: 12 problems, 5 schemes, 5 formulations, 2 meshes, all solvers, 600 s",
    tasks,
    run,
    study_tables,
    study_figures,
    seconds=SECONDS + MORE,
)
"""The whole study with the paper's settings."""

TRANSCRIPTION_STUDY_QUICK = Campaign(
    "transcription-study-quick",
    "the same with 60 s a solve, global solvers on coarse meshes alone",
    quick_tasks,
    quick_run,
    study_tables,
    study_figures,
    seconds=QUICK_SECONDS + MORE / 2,
)
"""The same in hours instead of days."""
