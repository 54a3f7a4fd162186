"""Modes: which of the fields that a switching right-hand side has is in force, and until when."""
