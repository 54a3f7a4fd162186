"""The estimation methods, each family in a module or package of its own."""

from typing import TYPE_CHECKING

from odefit.common.lazy_names import lazy_names

if TYPE_CHECKING:
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

_MODULES = {
    "estimate": "Estimate Route Start Status",
    "method": "Method",
    "multi_start": "MultiStart",
    "running.control": "Control Progress",
    "single_shooting": "SingleShooting",
}

__getattr__ = lazy_names(__name__, _MODULES)
