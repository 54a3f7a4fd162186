"""The default method beside all others, COPASI and SciPy."""
