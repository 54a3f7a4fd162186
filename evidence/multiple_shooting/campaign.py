"""The campaign `multiple-shooting`: three examples after Carbonell et al., with settings of ours.

The parts: `multiple_shooting_plan` (settings and data), `multiple_shooting_runs` (what is
measured), `multiple_shooting_tables` and `multiple_shooting_figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evidence.multiple_shooting.figures import multiple_shooting_figures
from evidence.multiple_shooting.plan import OPTIONS, Setting
from evidence.multiple_shooting.runs import fits
from evidence.multiple_shooting.tables import multiple_shooting_tables
from evidence.running.campaign import Campaign, Task


def tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return the tasks of Henon and Heiles, FitzHugh and Nagumo, and Rikitake."""
    return list(Setting().with_options(options or {}).tasks())


# The campaign that measures bias, standard errors and convergence of multiple shooting
MULTIPLE_SHOOTING = Campaign(
    "multiple-shooting",
    "noisy data of two chaotic systems and a spiking neuron: own settings, after Carbonell et al.",
    tasks,
    fits,
    multiple_shooting_tables,
    multiple_shooting_figures,
    seconds=1800.0,
    options=OPTIONS,
)
