"""A failed integration is a value, which is returned and not raised."""

from __future__ import annotations

from dataclasses import dataclass, field

from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice


@dataclass(frozen=True)
class Failure:
    """The reason why a trajectory could not be computed.

    Attributes
    ----------
    experiment
        Name of the trajectory's experiment.
    time
        The time at which the integration stopped.
    reason
        The reason for stopping there, in words.
    choice
        The choice of an engine for the next integration.
    """

    experiment: str
    time: float
    reason: str
    choice: EngineChoice = field(default=UNDECIDED, compare=False, repr=False)

    def __str__(self) -> str:
        return f'experiment "{self.experiment}", t = {self.time:.6g}: {self.reason}'


class SimulationError(RuntimeError):
    """A simulation failed; ``failure`` has the experiment, the time and the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"the simulation fails: {failure}")
        self.failure = failure

    def __reduce__(self) -> tuple[type[SimulationError], tuple[Failure]]:
        return SimulationError, (self.failure,)
