"""Structural analysis: conclusions from the equations alone, whatever is measured."""
