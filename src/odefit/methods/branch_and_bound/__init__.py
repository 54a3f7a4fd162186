"""Deterministic global optimisation in the space of the unknowns."""

from odefit.methods.branch_and_bound.branch_and_bound import BranchAndBound

__all__ = ["BranchAndBound"]
