"""The campaign `automatic`: the default method beside every single method and other programs.

Four parts are fits: dense series of systems from textbooks, the library, published problems, a
cascade of thirty states; one breaks fits off at random moments. The parts: `automatic_plan` (what
is run), `dense_systems`, `dense_data` and `cascade` (the problems that no one else has),
`automatic_problems`, `automatic_runs` and `automatic_interrupts` (what is measured),
`automatic_peers` (what other programs can state), `automatic_script` and `automatic_scipy` (SciPy,
by hand), `automatic_copasi_model` and `automatic_copasi` (COPASI), `automatic_judge` (when a fit is
right), `automatic_tables` and `automatic_page` (what is told).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evidence.front_door.plan import OPTIONS, Setting
from evidence.front_door.runs import run
from evidence.front_door.tables import tables
from evidence.running.campaign import Campaign, Task


def tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return the tasks of all parts; the default method comes first."""
    return list(Setting().with_options(options or {}).tasks())


# The campaign that measures the default method; `--set` chooses parts of it
AUTOMATIC = Campaign(
    "automatic",
    "the default method beside all others, COPASI and SciPy: dense series, library, published",
    tasks,
    run,
    tables,
    seconds=600.0,
    options=OPTIONS,
)
