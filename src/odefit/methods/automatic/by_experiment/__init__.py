"""Searches that fit experiments one by one: for parts of a problem, and before all together."""
