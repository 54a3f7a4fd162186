"""Rigorous enclosures of discretised problems over boxes of unknowns."""
