"""Rigorous enclosures of solutions over whole boxes of unknowns."""

from odefit.enclosure.residuals import Enclosure, Residuals

__all__ = ["Enclosure", "Residuals"]
