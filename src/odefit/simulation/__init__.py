"""The forward map: trajectories, sensitivities, residuals."""

from odefit.simulation.engines.failure import Failure, SimulationError
from odefit.simulation.evaluation import Evaluation
from odefit.simulation.forward import ForwardMap
from odefit.simulation.simulations import (
    Residuals,
    Simulation,
    residual_table,
    simulate,
    simulated,
)
from odefit.simulation.trajectories.trajectory import Trajectory

__all__ = [
    "Evaluation",
    "Failure",
    "ForwardMap",
    "Residuals",
    "Simulation",
    "SimulationError",
    "Trajectory",
    "residual_table",
    "simulate",
    "simulated",
]
