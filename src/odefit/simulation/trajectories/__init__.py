"""Trajectories of conditions, single and many at once."""
