"""Standard errors and intervals of the unknowns."""
