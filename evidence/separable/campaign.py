"""The study of Dattner et al., Separable nonlinear least-squares parameter estimation.

Four models, two sample sizes, two levels of noise, three qualities of prior information, 500 data
sets each; separable against nonlinear least squares on the integral criterion. The parts:
`separable_plan` (settings, data and starts), `separable_runs` (what is measured),
`separable_published` (the optimisers of the authors' program), `separable_tables` and
`separable_figures`, `separable_paper` (what the paper published).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evidence.running.campaign import Campaign, Task
from evidence.separable.figures import separable_figures
from evidence.separable.plan import OPTIONS, Setting
from evidence.separable.runs import measured
from evidence.separable.tables import separable_tables


def tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return the tasks: chunks of runs of all settings, in three parts."""
    return list(Setting().with_options(options or {}).tasks())


# The campaign that compares separable with nonlinear least squares
SEPARABLE = Campaign(
    "separable",
    "separable against nonlinear least squares on 4 models: Tables 1 to 4 of Dattner et al.",
    tasks,
    measured,
    separable_tables,
    separable_figures,
    seconds=1800.0,
    options=OPTIONS,
)
