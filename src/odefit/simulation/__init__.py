"""The forward map: trajectories, sensitivities, residuals."""

from typing import TYPE_CHECKING

from odefit.common.lazy_names import lazy_names

if TYPE_CHECKING:
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

_MODULES = {
    "engines.failure": "Failure SimulationError",
    "evaluation": "Evaluation",
    "forward": "ForwardMap",
    "simulations": "Residuals Simulation residual_table simulate simulated",
    "trajectories.trajectory": "Trajectory",
}

__getattr__ = lazy_names(__name__, _MODULES)
