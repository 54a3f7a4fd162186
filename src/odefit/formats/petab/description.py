"""The content of PEtab files of both versions, in one form."""

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
    scale: Literal["linear", "log10"] | None  # of the search; None if the file does not give it
    lower: float
    upper: float
    nominal: float | None
    estimate: bool
    prior: Mapping[str, Any] | None  # in the form of format 1
    place: str


@dataclass(frozen=True)
class ObservableRow:
    """A row of the observable table."""

    name: str
    formula: str  # in PEtab's mathematics
    noise: str  # the scale of the noise
    transform: Transform | None  # residuals are those of the logarithm
    distribution: Distribution  # of the noise, on the scale of the transform
    placeholders: tuple[str, ...]  # names in the formula that each measurement replaces
    noise_placeholders: tuple[str, ...]
    place: str
    title: str = ""  # a name for people

    @property
    def sd_over_scale(self) -> float:
        """The standard deviation over the scale, which PEtab gives."""
        return DISTRIBUTIONS[self.distribution].distribution.petab_sd


@dataclass(frozen=True)
class Period:
    """The conditions that apply from a time on."""

    time: float  # of its beginning; STEADY for one that lasts until the steady state
    assign: Mapping[str, str]  # new values in PEtab's mathematics, by id
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
    parameters: tuple[str, ...]  # numbers and ids that replace the placeholders
    noise_parameters: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Description:
    """A PEtab problem."""

    name: str
    version: Literal[1, 2]  # the version of PEtab
    model: Path  # the path of the SBML file
    parameters: tuple[ParameterRow, ...]
    observables: tuple[ObservableRow, ...]
    experiments: tuple[ExperimentRows, ...]
    measurements: tuple[Measurement, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)  # ids of the model by name
    notes: tuple[str, ...] = ()  # sentences on how parts were read
