"""The estimation methods, each family in a module or package of its own."""

from odefit.methods.estimate import Estimate, Route, Start, Status
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control, Progress
from odefit.methods.single_shooting import SingleShooting

__all__ = [
    "Control",
    "Estimate",
    "Method",
    "MultiStart",
    "Progress",
    "Route",
    "SingleShooting",
    "Start",
    "Status",
]
