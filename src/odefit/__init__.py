"""odefit: parameters of ODE models from data, and how far the answer can be trusted.

>>> import odefit
>>> problem = odefit.library.load("harmonic")
>>> result = odefit.fit(problem, seed=1)
>>> round(result.best.parameters["p1"], 6)
9.8
"""

from odefit import library
from odefit.fit import fit
from odefit.methods import Control, MultiStart, Progress, SingleShooting, Start, Status
from odefit.problem import (
    Event,
    Experiment,
    InputError,
    Model,
    Noise,
    Parameter,
    Prior,
    Problem,
    load,
)
from odefit.result import Result, Solution
from odefit.result_file import load_result
from odefit.simulation import Failure, ForwardMap, simulate

__all__ = [
    "Control",
    "Event",
    "Experiment",
    "Failure",
    "ForwardMap",
    "InputError",
    "Model",
    "MultiStart",
    "Noise",
    "Parameter",
    "Prior",
    "Problem",
    "Progress",
    "Result",
    "SingleShooting",
    "Solution",
    "Start",
    "Status",
    "fit",
    "library",
    "load",
    "load_result",
    "simulate",
]
