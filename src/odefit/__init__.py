"""odefit: parameters of ODE models from data, and how far the answer can be trusted.

>>> import odefit
>>> problem = odefit.library.load("harmonic")
>>> result = odefit.fit(problem, seed=1)
>>> round(result.best.parameters["p1"], 6)
9.8
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; `typing` would delay the handlers of signals
if TYPE_CHECKING:
    from typing import Any

    from odefit import library
    from odefit.explorer import Explorer, explore
    from odefit.fitting.fit import fit
    from odefit.formats.files import load, save
    from odefit.methods import Control, MultiStart, Progress, SingleShooting, Start, Status
    from odefit.methods.algebraic import Algebraic
    from odefit.methods.automatic import Automatic
    from odefit.methods.branch_and_bound import BranchAndBound
    from odefit.methods.integral_matching import IntegralMatching
    from odefit.methods.multiple_shooting import Constraint, MultipleShooting
    from odefit.methods.outer_approximation import OuterApproximation
    from odefit.methods.transcription import AdaptiveMesh, Collocation, Transcription
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
    from odefit.problem.unit_check import UnitReport, check_units
    from odefit.problem.variants.scenario import Scenario
    from odefit.reporting.comparison import compare
    from odefit.result.designs import Design, design
    from odefit.result.profiles import Profiles
    from odefit.result.result import Result, Solution, load_result
    from odefit.result.sensitivities import Sensitivities, sensitivity
    from odefit.simulation import Failure, ForwardMap, SimulationError, simulate
    from odefit.structure.identifiability import structural_identifiability as identifiability
    from odefit.structure.structural_identifiability import StructuralIdentifiability

_TOGETHER = {
    "fitting.fit": "fit",
    "formats.files": "load save",
    "methods": "Control MultiStart Progress SingleShooting Start Status",
    "problem": "Doses Event Experiment InputError Model Noise Parameter Prior Problem",
    "problem.sbml": "SbmlModel read_antimony read_sbml",
    "problem.variants.scenario": "Scenario",
    "result.profiles": "Profiles",
    "result.result": "Result Solution load_result",
    "simulation": "Failure ForwardMap SimulationError simulate",
}
"""Modules and their public names, which are all imported when the first of them is used: so the
command line heeds signals before it imports anything."""

_LATER = {
    "explorer": "Explorer explore",
    "methods.algebraic": "Algebraic",
    "methods.automatic": "Automatic",
    "methods.branch_and_bound": "BranchAndBound",
    "methods.integral_matching": "IntegralMatching",
    "methods.multiple_shooting": "Constraint MultipleShooting",
    "methods.outer_approximation": "OuterApproximation",
    "methods.transcription": "AdaptiveMesh Collocation Transcription",
    "problem.unit_check": "UnitReport check_units",
    "reporting.comparison": "compare",
    "result.designs": "Design design",
    "result.sensitivities": "Sensitivities sensitivity",
    "structure.structural_identifiability": "StructuralIdentifiability",
}
"""Modules that load much (SciPy, CasADi), and their public names, each imported at its use."""

_PLACES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = [
    "AdaptiveMesh",
    "Algebraic",
    "Automatic",
    "BranchAndBound",
    "Collocation",
    "Constraint",
    "Control",
    "Design",
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
    "Scenario",
    "Sensitivities",
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
    "design",
    "explore",
    "fit",
    "identifiability",
    "library",
    "load",
    "load_result",
    "read_antimony",
    "read_sbml",
    "save",
    "sensitivity",
    "simulate",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in __all__ and "fit" not in globals():
        for module, names in _TOGETHER.items():
            place = import_module(f"odefit.{module}")
            globals().update({one: getattr(place, one) for one in names.split()})
    if name in globals():
        return globals()[name]
    if name == "identifiability":
        return import_module("odefit.structure.identifiability").structural_identifiability
    if name in _PLACES:
        return getattr(import_module(f"odefit.{_PLACES[name]}"), name)
    if not name.startswith("_"):
        from importlib.util import find_spec

        if find_spec(f"odefit.{name}") is not None:
            return import_module(f"odefit.{name}")
    raise AttributeError(f"module 'odefit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
