"""Right-hand sides given as Python functions or in SymPy, converted to expressions."""
