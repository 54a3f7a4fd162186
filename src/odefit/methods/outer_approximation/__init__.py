"""Deterministic global optimisation by outer approximation.

The modules follow the paper (A. Miró et al., Deterministic global optimization algorithm based on
outer approximation for the parameter estimation of nonlinear dynamic biological systems, 2012). It
has the standard form (18)-(25), its relaxation (26)-(40) and the algorithm. Its additions in the
case studies are bound contraction, the cutoff of the objective (47) and cuts by temporal
decomposition.
"""

from odefit.methods.outer_approximation.mixed_integer import Highs, Scip
from odefit.methods.outer_approximation.outer_approximation import OuterApproximation

__all__ = ["Highs", "OuterApproximation", "Scip"]
