"""Steady states from which experiments begin."""
