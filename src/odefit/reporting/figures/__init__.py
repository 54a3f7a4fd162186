"""Figures of a result, one module each; none touches matplotlib's global state for good."""
