"""The algebraic method, after Bassik et al., Robust parameter estimation for rational ODEs."""

from odefit.methods.algebraic.algebraic import Algebraic

__all__ = ["Algebraic"]
