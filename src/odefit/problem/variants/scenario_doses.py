"""The doses of a scenario, converted to events like doses in data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.errors import did_you_mean, one_of, shown
from odefit.problem.building.columns import as_table
from odefit.problem.building.preparation import experiment_place
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.dosing.subjects import DOSING, with_subjects
from odefit.problem.experiment import Cycle, Doses, Experiment
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.problem.variants.scenario import Scenario

RECORD = {
    "time": "TIME", "times": "TIME", "amount": "AMT", "into": "CMT", "rate": "RATE",
    "duration": "DUR", "every": "II", "count": "ADDL",
}  # fmt: skip
"""The fields of a dose, and the columns of long tables that hold them."""

STEADY = "SS"
"""The column that marks doses repeated until the steady state."""


def _long(scenario: Scenario) -> bool:
    """Tell whether the table of a scenario has dose records."""
    names = [n.upper() for n in as_table(scenario.data) or {}]
    return any(name in DOSING for name in names) or (
        scenario.dosing is not None and any(name in ROLES for name in names)
    )


def with_doses(
    problem: Problem,
    scenario: Scenario,
    experiment: Experiment,
    model: Model,
    issues: Issues,
) -> tuple[Experiment, Model, bool]:
    """Return the experiment with doses as events, the equations, and whether it has a dose table.

    Doses replace all events of the modified experiment.
    """
    place = experiment_place(experiment.name)
    long = _long(scenario)
    if scenario.doses is None and not long:
        if scenario.dosing is not None:
            issues.error(
                f"{place} dosing",
                "there are no dose records that doses could act on; give doses, or data with a "
                "column AMT",
            )
        return experiment, model, False
    if scenario.doses is not None and long:
        issues.error(f"{place} doses", "the table has dose records, too; keep one of the two")
        return experiment, model, True
    at_steady = scenario.steady_state is True
    records = None if long else _records(scenario.doses, model, place, issues, at_steady)
    columns = scenario.data if long else records
    if columns is None:
        return experiment, model, False
    dosing = Doses() if scenario.dosing is None else scenario.dosing
    events = tuple(scenario.events or ())
    replaced = {n for n in experiment.constants if _names_infusion(n, model)}
    constants = {n: v for n, v in experiment.constants.items() if n not in replaced}
    steady = experiment.steady_state
    if isinstance(steady, Cycle) and scenario.steady_state is None:
        steady = False  # the rate of the doses that these replace
    alone = replace(
        experiment,
        data=columns,
        doses=dosing,
        events=(),
        constants=constants,
        steady_state=False,
        source=experiment.source if long else f"{place} doses",
    )
    initial = {**problem.initial, **experiment.initial}
    tables: dict[str, Mapping[str, Any]] = {
        "parameters": problem.parameters,
        "initial": initial,
        "noise": problem.noise,
    }
    experiments, model = with_subjects([alone], model, tables, issues, measured=False)
    one = experiments[0]
    return (
        replace(
            one,
            events=(*events, *one.events),
            steady_state=one.steady_state or steady,
            t0=experiment.t0,
            source=experiment.source,
        ),
        model,
        long,
    )


def _names_infusion(name: str, model: Model) -> bool:
    """Tell whether a constant is the rate of an infusion already running at the start."""
    return any(name.rstrip("_") == f"{state}_infusion" for state in model.ode)


def _records(
    doses: Any, model: Model, place: str, issues: Issues, at_steady: bool
) -> dict[str, list[Any]] | None:
    """Return doses as the columns of a long table; None with the reason noted.

    With `at_steady`, a dose with ``every`` alone has been repeated so until the steady state.
    """
    before = len(issues.errors)
    rows: list[dict[str, Any]] = []
    if isinstance(doses, (Mapping, str)) or not isinstance(doses, Sequence) or not doses:
        issues.expected(
            f"{place} doses", 'a list such as [{ time = 0, amount = 100, into = "gut" }]', doses
        )
        return None
    for number, dose in enumerate(doses, 1):
        at = f"{place} doses {number}"
        if not isinstance(dose, Mapping):
            issues.expected(at, "a table with time and amount", dose)
            continue
        for key in [str(k) for k in dose if k not in RECORD]:
            issues.error(f"{at} {key}", f"unknown key '{key}'{one_of(key, tuple(RECORD))}")
        if dose.get("into") is not None and dose["into"] not in model.ode:
            issues.error(
                f"{at} into",
                f"there is no state {shown(dose['into'])}"
                f"{did_you_mean(str(dose['into']), model.ode)}",
            )
        numbers = {
            key: finite_number(value, f"{at} {key}", issues)
            for key, value in dose.items()
            if key in RECORD and key not in ("into", "times")
        }
        times = dose.get("times", [numbers.get("time")])
        times = times if isinstance(times, (list, tuple, np.ndarray)) else [times]
        for key in ("time", "amount"):
            if key not in dose and not (key == "time" and "times" in dose):
                issues.error(f"{at} {key}", f"missing; write {key} = NUMBER")
        repeated = at_steady and "every" in dose and "count" not in dose
        if ("count" in dose) != ("every" in dose) and not repeated:
            issues.error(
                at,
                "every and count belong together; write both, or list times; for doses repeated "
                "until the steady state, write every alone, and steady_state = true",
            )
        count = numbers.get("count")
        if count is not None and not (count >= 1 and count == int(count)):
            issues.error(f"{at} count", f"expected a whole number from 1, got {count:g}")
            continue
        row = {RECORD[k]: v for k, v in numbers.items() if k not in ("time", "count")}
        row |= {"CMT": dose.get("into"), "ADDL": None if count is None else count - 1}
        row |= {STEADY: 1} if repeated else {}
        rows += [{**row, "TIME": time} for time in times]
    if len(issues.errors) > before:
        return None
    names = [
        n
        for n in dict.fromkeys((*RECORD.values(), STEADY))
        if any(r.get(n) is not None for r in rows)
    ]
    return {n: [row.get(n) for row in rows] for n in names}
