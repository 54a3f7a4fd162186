"""The benchmark of Bassik et al., Robust parameter estimation for rational ODEs.

Ten models, ten data sets each, no guess and no bounds, by the algebraic method. The parts:
`rational_plan` (models, true values, data), `rational_runs` (what is measured), `rational_tables`
and `rational_figures`, `rational_paper` (what the paper published).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evidence.rational.figures import rational_figures
from evidence.rational.plan import GIVEN, LEVELS, OPTIONS, Setting
from evidence.rational.runs import measured, prepared
from evidence.rational.tables import rational_tables
from evidence.running.campaign import Campaign, Task

EXACT = Setting()  # the settings of the paper: 21 points, no noise
NOISY = Setting(noise=LEVELS, points=(1001,), sets=GIVEN)


def tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return the tasks; preparations come first, because what they find is kept for the runs."""
    setting = EXACT.with_options(options or {})
    return [*setting.preparations(), *setting.tasks()]


def noisy_tasks(options: Mapping[str, str] | None = None) -> Sequence[Task]:
    """Return the tasks of five sets of 1001 points at four levels of noise."""
    return list(NOISY.with_options(options or {}).tasks())


def run(task: Task) -> Mapping[str, Any]:
    """Run a preparation or a fit."""
    return prepared(task) if task["what"] == "preparation" else measured(task)


# The campaign of data without noise, unless options say otherwise
RATIONAL = Campaign(
    "rational",
    "the algebraic method on 10 rational models, 10 data sets each: Table 1 of Bassik et al.",
    tasks,
    run,
    rational_tables,
    rational_figures,
    seconds=600.0,
    options=OPTIONS,
)

# The campaign that measures how much noise the derivatives tolerate, and how much the data
RATIONAL_NOISE = Campaign(
    "rational-noise",
    "the same with 1001 points and noise of 1e-8 to 1e-2, 5 data sets each",
    noisy_tasks,
    run,
    rational_tables,
    rational_figures,
    seconds=600.0,
    options=OPTIONS,
)
