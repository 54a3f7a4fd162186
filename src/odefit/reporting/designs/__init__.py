"""Designs in words, as tables and as JSON."""
