"""Engines, which integrate the equations of one segment."""
