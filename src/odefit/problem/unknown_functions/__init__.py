"""Functions of time or of a state that are estimated, written out as unknowns and expressions."""
