"""Ranks of the map from unknowns to outputs, and their implications for single unknowns."""
