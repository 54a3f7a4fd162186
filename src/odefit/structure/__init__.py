"""Structural analysis: what the equations alone say, whatever is measured."""
