"""SBML models and formulas of PEtab as expressions."""

from odefit.problem.sbml.antimony import read_antimony
from odefit.problem.sbml.formulas import condition_text, formula_text
from odefit.problem.sbml.math_trees import expression_text
from odefit.problem.sbml.sbml_model import SbmlEvent, SbmlModel, Start
from odefit.problem.sbml.sbml_reading import read_sbml
from odefit.problem.sbml.terms import substituted

__all__ = [
    "SbmlEvent",
    "SbmlModel",
    "Start",
    "condition_text",
    "expression_text",
    "formula_text",
    "read_antimony",
    "read_sbml",
    "substituted",
]
