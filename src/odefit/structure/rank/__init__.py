"""Ranks of the map from unknowns to outputs, and what they say of single unknowns."""
