"""Compiled enclosures of solutions: the same bounds as NumPy's, box by box."""
