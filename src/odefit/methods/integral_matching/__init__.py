"""Integral matching, after Dattner, Gugushvili, Ship and Voit."""

from odefit.methods.integral_matching.bootstrap import MatchErrors
from odefit.methods.integral_matching.integral_matching import IntegralMatching
from odefit.methods.integral_matching.matching import Match

__all__ = ["IntegralMatching", "Match", "MatchErrors"]
