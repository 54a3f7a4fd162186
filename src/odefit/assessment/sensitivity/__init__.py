"""Sensitivity of observables, quantities and the fit to the unknowns: local and global."""
