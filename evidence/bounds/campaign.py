"""The campaign `global`: how close lower and upper bounds come by three methods.

After A. Miró et al., Deterministic global optimization algorithm based on outer approximation, and
the problems of Fernandez de Dios et al. The parts: `global_plan` (problems and limits),
`global_runs` (what is measured), `global_tables` and `global_figures`, `global_paper` (what the
former published).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evidence.bounds.figures import global_figures
from evidence.bounds.plan import OPTIONS, Setting
from evidence.bounds.runs import bounds
from evidence.bounds.tables import global_tables
from evidence.running.campaign import Campaign, Task


def tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return a task for each problem and method."""
    return list(Setting().with_options(options or {}).tasks())


# The campaign that measures how close lower and upper bounds come, in what time
GLOBAL = Campaign(
    "global",
    "proved bounds of 13 problems by 3 methods: Tables 1 to 4 of Miró et al., and more",
    tasks,
    bounds,
    global_tables,
    global_figures,
    seconds=2700.0,
    options=OPTIONS,
)
