"""Seconds and megabytes."""
