"""Designs that discriminate between two models: T-optimal ones, and one measurement at a time."""
