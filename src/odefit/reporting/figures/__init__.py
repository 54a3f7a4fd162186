"""Figures of a result, one module each; none leaves matplotlib's global state changed."""
