"""odefit: parameters of ODE models from data, and how far the answer can be trusted.

>>> import odefit
>>> problem = odefit.library.load("harmonic")
>>> result = odefit.fit(problem, seed=1)
>>> round(result.best.parameters["p1"], 6)
9.8
"""

from typing import TYPE_CHECKING, Any

from odefit import library
from odefit.fitting.fit import fit
from odefit.formats.files import load, save
from odefit.methods import Control, MultiStart, Progress, SingleShooting, Start, Status
from odefit.methods.registry import METHODS
from odefit.problem import (
    Doses,
    Event,
    Experiment,
    InputError,
    Model,
    Noise,
    Parameter,
    Prior,
    Problem,
)
from odefit.problem.sbml import SbmlModel, read_antimony, read_sbml
from odefit.result.profiles import Profiles
from odefit.result.result import Result, Solution, load_result
from odefit.simulation import Failure, ForwardMap, SimulationError, simulate

if TYPE_CHECKING:
    from odefit.explorer import Explorer, explore
    from odefit.methods.algebraic import Algebraic
    from odefit.methods.automatic import Automatic
    from odefit.methods.branch_and_bound import BranchAndBound
    from odefit.methods.integral_matching import IntegralMatching
    from odefit.methods.multiple_shooting import Constraint, MultipleShooting
    from odefit.methods.outer_approximation import OuterApproximation
    from odefit.methods.transcription import AdaptiveMesh, Collocation, Transcription
    from odefit.problem.unit_check import UnitReport, check_units
    from odefit.reporting.comparison import compare
    from odefit.structure.identifiability import structural_identifiability as identifiability
    from odefit.structure.structural_identifiability import StructuralIdentifiability

_LATER = {
    **{entry.class_name: entry.module for entry in METHODS.values()},
    "AdaptiveMesh": "odefit.methods.transcription",
    "Collocation": "odefit.methods.transcription",
    "Constraint": "odefit.methods.multiple_shooting",
    "Explorer": "odefit.explorer",
    "StructuralIdentifiability": "odefit.structure.structural_identifiability",
    "UnitReport": "odefit.problem.unit_check",
    "check_units": "odefit.problem.unit_check",
    "compare": "odefit.reporting.comparison",
    "explore": "odefit.explorer",
    "identifiability": "odefit.structure.identifiability:structural_identifiability",
}
"""The modules of public names that load much (SciPy, CasADi); they are imported at first use.

After a colon stands the name in the module, where that is another one.
"""

__all__ = [
    "AdaptiveMesh",
    "Algebraic",
    "Automatic",
    "BranchAndBound",
    "Collocation",
    "Constraint",
    "Control",
    "Doses",
    "Event",
    "Experiment",
    "Explorer",
    "Failure",
    "ForwardMap",
    "InputError",
    "IntegralMatching",
    "Model",
    "MultiStart",
    "MultipleShooting",
    "Noise",
    "OuterApproximation",
    "Parameter",
    "Prior",
    "Problem",
    "Profiles",
    "Progress",
    "Result",
    "SbmlModel",
    "SimulationError",
    "SingleShooting",
    "Solution",
    "Start",
    "Status",
    "StructuralIdentifiability",
    "Transcription",
    "UnitReport",
    "check_units",
    "compare",
    "explore",
    "fit",
    "identifiability",
    "library",
    "load",
    "load_result",
    "read_antimony",
    "read_sbml",
    "save",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        module, _, inside = _LATER[name].partition(":")
        return getattr(import_module(module), inside or name)
    raise AttributeError(f"module 'odefit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
