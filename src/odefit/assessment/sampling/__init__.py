"""Uncertainty by sampling: the bootstrap and the posterior."""
