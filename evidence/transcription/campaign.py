"""The study of Fernandez de Dios et al.: which solvers solve which discretised problems.

Twelve problems, five schemes, three formulations in five settings, two meshes (Table 2), every
solver that is installed. The parts: `study_plan` (the runs), `study_metrics` (what is measured of
one), `study_tables` and `study_figures`, `study_paper` (what the paper published).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evidence.running.campaign import Campaign, Task
from evidence.transcription.figures import study_figures
from evidence.transcription.plan import Configuration, configurations, solve, solvers
from evidence.transcription.tables import study_tables

SECONDS = 600.0  # the paper's time limit of a solver in seconds
QUICK_SECONDS = 60.0

# Time in seconds beyond the solver's limit that a task has to build the model and to end
MORE = 180.0


def tasks() -> Sequence[Task]:
    """Return all runs of the paper, local solvers first, each on coarse and then on fine meshes."""
    return [c.task for name in solvers() for c in configurations(name, ("coarse", "fine"))]


def quick_tasks() -> Sequence[Task]:
    """Return runs of local solvers on all meshes, of global ones on coarse meshes alone."""
    found: list[Task] = []
    for name, solver in solvers().items():
        meshes = ("coarse",) if solver.scope == "global" else ("coarse", "fine")
        found += [c.task for c in configurations(name, meshes)]
    return found


def run(task: Task) -> Mapping[str, Any]:
    """Make a run with the paper's time limit."""
    return solve(Configuration.of(task["key"]), SECONDS)


def quick_run(task: Task) -> Mapping[str, Any]:
    """Make a run with a time limit of a minute."""
    return solve(Configuration.of(task["key"]), QUICK_SECONDS)


# The campaign of the whole study with the paper's settings
TRANSCRIPTION_STUDY = Campaign(
    "transcription-study",
    "direct transcription: 12 problems, 5 schemes, 5 formulations, 2 meshes, all solvers, 600 s",
    tasks,
    run,
    study_tables,
    study_figures,
    seconds=SECONDS + MORE,
)

# The same campaign in hours instead of days
TRANSCRIPTION_STUDY_QUICK = Campaign(
    "transcription-study-quick",
    "the same with 60 s a solve, global solvers on coarse meshes alone",
    quick_tasks,
    quick_run,
    study_tables,
    study_figures,
    seconds=QUICK_SECONDS + MORE / 2,
)
