"""Residuals of measurements under their noise models."""
