"""Estimated functions of time or of a state, expanded into unknowns and expressions."""
