"""Scenarios: experiments that were not performed, given by changes of a fitted one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from odefit.common.errors import InputError, shown
from odefit.problem.building.columns import column_names
from odefit.problem.building.layout import laid_out, layout_of
from odefit.problem.experiment import Cycle, Doses, Event, Experiment, Value

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "scenario"
"""The name of an unnamed scenario."""


@dataclass(frozen=True)
class Scenario:
    """An experiment to predict, given by changes of a fitted one.

    Attributes
    ----------
    name
        Its name in tables and figures, different from all experiments.
    like
        The name of the experiment that it modifies; None for the first one. Unknowns that differ
        between experiments have the values of that one.
    initial
        Initial values that differ: numbers, or expressions in parameters and constants.
    constants
        Constants and parameters that differ, in the same form.
    inputs
        Inputs that differ, by name: a number where the input is constant, or a mapping with the
        lists ``t`` and ``value``.
    data
        A table with the column ``t`` and all inputs that are not among `inputs`; or a long table
        of dose records, as :class:`odefit.Experiment` takes it. None keeps the inputs.
    events
        Its events instead of those of the experiment; None keeps these.
    doses
        Its doses instead of the events of the experiment: mappings with the keys ``time`` (or
        ``times``), ``amount`` and ``into`` (a state). An infusion also has ``duration`` or
        ``rate``, and repeated doses have ``every`` and ``count``.
    dosing
        The action of dose records, a :class:`odefit.Doses` or a mapping of its fields.
    times
        Times of the predictions; by default those of `data`, or of the experiment.
    t0
        The time of the initial values; by default that of the experiment.
    steady_state
        Whether it begins at a steady state, see :class:`odefit.Experiment`; by default as in the
        experiment.
    source
        Its origin, for messages.
    covariates
        Constants that differ, as `constants`, to which they are added.
    notes
        Sentences on its file, such as on columns that are not used.

    Examples
    --------
    >>> Scenario("twice the dose", doses=[{"time": 0, "amount": 200, "into": "gut"}]).name
    'twice the dose'
    """

    name: str = UNNAMED
    like: str | None = None
    initial: Mapping[str, Value] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] | pd.DataFrame | None = None
    events: Sequence[Event] | None = None
    doses: Sequence[Mapping[str, Any]] | None = None
    dosing: Doses | Mapping[str, Any] | None = None
    times: Any = None
    t0: float | None = None
    steady_state: bool | Cycle | None = None
    source: str | None = None
    covariates: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.covariates:
            return
        twice = self.covariates.keys() & self.constants.keys()
        if twice:
            raise InputError(
                [
                    f"covariates: constants has '{n}', too; keep one of the two"
                    for n in sorted(twice)
                ]
            )
        object.__setattr__(self, "constants", {**self.constants, **self.covariates})
        object.__setattr__(self, "covariates", {})


def as_scenario(value: Any) -> Scenario:
    """Return a scenario from one, from an experiment, or from a mapping of its fields.

    Raises InputError for anything else, and for unknown fields.
    """
    if isinstance(value, Scenario):
        return value
    if isinstance(value, Experiment):
        t0: Any = value.t0  # dates are refused later
        return Scenario(
            name=value.name,
            initial=dict[str, Any](value.initial),  # unknowns are refused later
            constants=value.constants,
            data=laid_out(value.data, layout_of(value), column_names(value.data) or ()),
            events=value.events,
            dosing=value.doses,
            t0=t0,
            steady_state=value.steady_state,
            source=value.source,
        )
    if not isinstance(value, Mapping):
        raise InputError(
            "scenario: expected an odefit.Scenario, an odefit.Experiment or a mapping of fields, "
            f"got {shown(value)}"
        )
    known = [f.name for f in fields(Scenario)]
    unknown = [str(key) for key in value if key not in known]
    if unknown:
        from odefit.common.errors import one_of

        raise InputError(
            [f"scenario: unknown field '{key}'{one_of(key, known)}" for key in unknown]
        )
    return Scenario(**value)
