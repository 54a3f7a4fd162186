"""Rigorous enclosures of solutions over whole boxes of unknowns."""

from odefit.enclosure.continuous import Enclosure
from odefit.enclosure.residuals import Residuals

__all__ = ["Enclosure", "Residuals"]
