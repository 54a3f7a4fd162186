"""Predictions of runs and of quantities, their bands and intervals, and their test by new data."""
