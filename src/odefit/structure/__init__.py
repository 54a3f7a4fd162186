"""Structural analysis: conclusions from the equations alone, for any measurements."""
