"""Shooting nodes: a problem cut into intervals, and the iteration that joins them (Bock)."""
