"""Functionals of curves over time: areas, extrema, times at which something happens."""
