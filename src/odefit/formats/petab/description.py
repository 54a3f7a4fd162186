"""What both versions of PEtab say, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

STEADY = float("-inf")
"""The time of a first period that lasts until the steady state (pre-equilibration)."""


@dataclass(frozen=True)
class ParameterRow:
    """A row of the parameter table.

    Attributes
    ----------
    name
        Its id.
    scale
        The scale on which it is searched; None where the file does not say.
    lower, upper
        Bounds; infinite where there are none.
    nominal
        Its nominal value; None if there is none.
    estimate
        Whether it is estimated.
    prior
        Its prior as format 1 writes it; None if there is none.
    place
        File and line, for messages.
    """

    name: str
    scale: Literal["linear", "log10"] | None
    lower: float
    upper: float
    nominal: float | None
    estimate: bool
    prior: Mapping[str, Any] | None
    place: str


@dataclass(frozen=True)
class ObservableRow:
    """A row of the observable table.

    Attributes
    ----------
    name
        Its id.
    formula, noise
        What is measured, and the scale of its noise, as texts in PEtab's mathematics.
    transform
        Residuals are those of the logarithm.
    distribution
        The distribution of the noise, on the scale of the transform.
    placeholders, noise_placeholders
        Names in the formulas that each measurement replaces.
    place
        File and line, for messages.
    """

    name: str
    formula: str
    noise: str
    transform: Literal["log", "log10"] | None
    distribution: Literal["normal", "laplace"]
    placeholders: tuple[str, ...]
    noise_placeholders: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Period:
    """What holds from a time on.

    Attributes
    ----------
    time
        The time at which it begins; :data:`STEADY` for one that lasts until the steady state.
    assign
        New values, as texts in PEtab's mathematics, by the id of what they are assigned to.
    place
        File and line, for messages.
    """

    time: float
    assign: Mapping[str, str]
    place: str


@dataclass(frozen=True)
class ExperimentRows:
    """An experiment.

    Attributes
    ----------
    name
        Its name in results.
    periods
        Its periods, in the order of time.
    """

    name: str
    periods: tuple[Period, ...]


@dataclass(frozen=True)
class Measurement:
    """A row of the measurement table.

    Attributes
    ----------
    observable
        The id of the observable.
    experiment
        The name of the experiment.
    time
        The time; infinite for the steady state.
    value
        The measured value.
    parameters, noise_parameters
        What replaces the placeholders of the observable and of its noise: numbers and ids.
    place
        File and line, for messages.
    """

    observable: str
    experiment: str
    time: float
    value: float
    parameters: tuple[str, ...]
    noise_parameters: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Description:
    """A PEtab problem.

    Attributes
    ----------
    name
        Its name.
    version
        The version of PEtab.
    model
        The path of the SBML file.
    model_label
        Its name in messages.
    parameters, observables, experiments, measurements
        The tables.
    aliases
        Names in the tables for ids of the model (PEtab's mapping table).
    notes
        Sentences: what was read how.
    """

    name: str
    version: Literal[1, 2]
    model: Path
    model_label: str
    parameters: tuple[ParameterRow, ...]
    observables: tuple[ObservableRow, ...]
    experiments: tuple[ExperimentRows, ...]
    measurements: tuple[Measurement, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
