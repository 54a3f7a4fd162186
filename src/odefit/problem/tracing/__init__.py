"""Right-hand sides that exist elsewhere, as Python functions or in SymPy, read into expressions."""
