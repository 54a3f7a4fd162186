"""Local linearization: each step solves the linearized equations exactly."""
