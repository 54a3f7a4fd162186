"""Proved bounds, beside the tables of Miro et al."""
