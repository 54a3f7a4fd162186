"""Figures of a result, one module each; no figure changes matplotlib's global state."""
