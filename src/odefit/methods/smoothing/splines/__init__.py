"""Smoothing splines by B-splines with a penalty."""
