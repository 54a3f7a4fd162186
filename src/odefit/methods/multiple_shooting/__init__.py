"""Multiple shooting, after Bock, and Carbonell, Iturria-Medina and Jimenez."""

from odefit.methods.multiple_shooting.multiple_shooting import History, MultipleShooting
from odefit.methods.shooting.constraints import Constraint

__all__ = ["Constraint", "History", "MultipleShooting"]
