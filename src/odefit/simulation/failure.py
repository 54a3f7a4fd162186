"""A failed integration is a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Why a trajectory could not be computed.

    Attributes
    ----------
    experiment
        Of the trajectory.
    time
        How far it got.
    reason
        In words.
    """

    experiment: str
    time: float
    reason: str

    def __str__(self) -> str:
        return f'experiment "{self.experiment}", t = {self.time:.6g}: {self.reason}'
