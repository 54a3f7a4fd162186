"""Designs of experiments: which measurements would make the unknowns known."""
