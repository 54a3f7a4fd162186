"""What both versions of PEtab say, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from odefit.problem.noise_distributions.registry import DISTRIBUTIONS, Distribution, Transform

STEADY = float("-inf")
"""The time of a first period that lasts until the steady state (pre-equilibration)."""


@dataclass(frozen=True)
class ParameterRow:
    """A row of the parameter table."""

    name: str
    # the scale on which it is searched; None where the file does not say
    scale: Literal["linear", "log10"] | None
    # bounds; infinite where there are none
    lower: float
    upper: float
    nominal: float | None  # its nominal value; None if there is none
    estimate: bool  # whether it is estimated
    prior: Mapping[str, Any] | None  # its prior as format 1 writes it; None if there is none
    place: str


@dataclass(frozen=True)
class ObservableRow:
    """A row of the observable table."""

    name: str
    # what is measured, and the scale of its noise, as texts in PEtab's mathematics
    formula: str
    noise: str
    transform: Transform | None  # residuals are those of the logarithm
    # the distribution of the noise, on the scale of the transform
    distribution: Distribution
    # names in the formulas that each measurement replaces
    placeholders: tuple[str, ...]
    noise_placeholders: tuple[str, ...]
    place: str

    @property
    def sd_over_scale(self) -> float:
        """The standard deviation over the scale, which PEtab gives."""
        return DISTRIBUTIONS[self.distribution].distribution.petab_sd


@dataclass(frozen=True)
class Period:
    """What holds from a time on."""

    # the time at which it begins; :data:`STEADY` for one that lasts until the steady state
    time: float
    # new values, as texts in PEtab's mathematics, by the id of what they are assigned to
    assign: Mapping[str, str]
    place: str


@dataclass(frozen=True)
class ExperimentRows:
    """An experiment."""

    name: str  # its name in results
    periods: tuple[Period, ...]  # its periods, in the order of time


@dataclass(frozen=True)
class Measurement:
    """A row of the measurement table."""

    observable: str  # the id of the observable
    experiment: str  # the name of the experiment
    time: float  # the time; infinite for the steady state
    value: float  # the measured value
    # what replaces the placeholders of the observable and of its noise: numbers and ids
    parameters: tuple[str, ...]
    noise_parameters: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Description:
    """A PEtab problem."""

    name: str
    version: Literal[1, 2]  # the version of PEtab
    model: Path  # the path of the SBML file
    model_label: str
    parameters: tuple[ParameterRow, ...]
    observables: tuple[ObservableRow, ...]
    experiments: tuple[ExperimentRows, ...]
    measurements: tuple[Measurement, ...]
    # names in the tables for ids of the model (PEtab's mapping table)
    aliases: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences: what was read how
