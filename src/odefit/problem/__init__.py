"""The estimation problem: equations, data, parameters, and the files they come in."""

from typing import TYPE_CHECKING

from odefit.common.errors import InputError
from odefit.common.lazy_names import lazy_names
from odefit.expressions.expressions import Expression, ExpressionError, parse

if TYPE_CHECKING:
    from odefit.problem.experiment import Cycle, Doses, Event, Experiment
    from odefit.problem.model import Model
    from odefit.problem.noise import Noise
    from odefit.problem.parameters import Parameter, Unknown
    from odefit.problem.priors import Prior
    from odefit.problem.problem import Problem
    from odefit.problem.toml.files import load, problem_from_mapping, problem_to_mapping

__all__ = [
    "Cycle",
    "Doses",
    "Event",
    "Experiment",
    "Expression",
    "ExpressionError",
    "InputError",
    "Model",
    "Noise",
    "Parameter",
    "Prior",
    "Problem",
    "Unknown",
    "load",
    "parse",
    "problem_from_mapping",
    "problem_to_mapping",
]

_MODULES = {
    "experiment": "Cycle Doses Event Experiment",
    "model": "Model",
    "noise": "Noise",
    "parameters": "Parameter Unknown",
    "priors": "Prior",
    "problem": "Problem",
    "toml.files": "load problem_from_mapping problem_to_mapping",
}

__getattr__ = lazy_names(__name__, _MODULES)
